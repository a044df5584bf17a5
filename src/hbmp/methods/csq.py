"""Central Similarity Quantization: far apart centres, one a class, and cross-entropy of every bit with its centre's.

Samples that share a centre meet there, so that similarity is learned from samples and centres, never from pairs.
Yuan, Wang, Zhang, Tay, Jie, Liu & Feng, "Central Similarity Quantization for Efficient Image and Video Retrieval",
CVPR 2020.

    h      h          (n, b)   ½(tanh(scores) + 1), in (0, 1)
    c'     targets    (n, b)   centre of the sample's labels, ±1; in the paper 0/1
    L_C    mean over samples and bits of −[c log h + (1 − c) log(1 − h)], c = ½(c' + 1)
    L_Q    mean of log cosh(|2h − 1| − 1), how far h is from 0 and 1
    λ_1    quantisation
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp.functions.linear import Linear
from hbmp.methods._shared.centres import majority, make_centres
from hbmp.methods._shared.deep import DeepHasher


def central_similarity(scores, targets):
    """Cross-entropy of the bits of each sample with those of its centre, (n,)."""
    # ½(tanh u + 1) = σ(2u): with the logit 2u no bit is ever so sure that its logarithm overflows.
    return F.binary_cross_entropy_with_logits(2 * scores, (targets + 1) / 2, reduction="none").mean(dim=1)


def quantisation_error(scores):
    """log cosh of the distance of |tanh u| from 1, the mean over the bits of each sample, (n,)."""
    return torch.log(torch.cosh(torch.tanh(scores).abs() - 1)).mean(dim=1)


class _CentralSimilarityLoss(nn.Module):
    """Central similarity plus quantisation; samples without a label have no centre and take no part."""

    centres: torch.Tensor
    ties: torch.Tensor

    def __init__(self, centres, ties, quantisation):
        super().__init__()
        self.quantisation = quantisation
        self.register_buffer("centres", torch.from_numpy(centres))
        self.register_buffer("ties", torch.from_numpy(ties))

    def forward(self, scores, labels, rows):
        scores = scores.float()
        values = central_similarity(scores, majority(labels, self.centres, self.ties))
        values = values + self.quantisation * quantisation_error(scores)
        labelled = labels.any(dim=1)
        return (values * labelled).sum() / labelled.sum().clamp(min=1)


class CSQ(DeepHasher):
    """Each class has a centre in Hamming space, far from all others, and every bit learns its centre's bit.

    The centre of a label set is the majority of its labels' centres, bit by bit; where they are equal, one random
    vector decides, the same for all sets.

    Parameters
    ----------
    n_bits : length of the codes
    quantisation : λ_1, weight of the quantisation loss
    centres : "auto" (rows of a Hadamard matrix and their negatives where there is one that holds all classes, random
        ones otherwise), "hadamard" or "bernoulli"
    function : "auto" (kernel or mlp), a name from `hbmp.functions` or an object from there, trained by gradients
    device : "auto", "cpu" or "cuda"
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr

    Attributes: centres_ (c, n_bits), in the order of the sorted classes, or of the columns of y.

    Departs from the paper: Hadamard matrices serve at 12, 20, 24, 28 … bits as well and not at powers of two alone,
    because Paley's construction gives them there: on CIFAR-10 features (cifar-1) 12 bits of Hadamard centres give mAP
    0.824, of random ones 0.805.
    """

    citation = "Yuan, Wang, Zhang, Tay, Jie, Liu & Feng, CVPR 2020"
    smoke = {"function": Linear(epochs=2)}
    search = {"quantisation": [1e-4, 0.05, 0.5], "centres": ["auto", "bernoulli"]}

    def __init__(
        self,
        n_bits=32,
        *,
        quantisation=1e-4,
        centres="auto",
        function="auto",
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.quantisation = quantisation
        self.centres = centres
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels, seed):
        """Central similarity with centres drawn from the seed."""
        rng = np.random.default_rng(seed)
        centres = make_centres(self.centres, labels.shape[1], self.n_bits, rng)
        ties = rng.choice(np.array([-1, 1], dtype=np.float32), self.n_bits)
        return _CentralSimilarityLoss(centres, ties, self.quantisation)

    def finish(self, loss):
        """Keep the centres."""
        self.centres_ = loss.centres.cpu().numpy().astype(np.int8)
