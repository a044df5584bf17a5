"""OrthoHash: one loss, cross-entropy over the cosines between a sample's scores and the orthogonal codes of classes.

A large cosine with a ±1 code means scores of equal size on the right sides, so that the loss also does the work of a
quantisation term; batch normalisation of the scores balances the bits.
Hoe, Ng, Zhang, Chan, Song & Xiang, "One Loss for All: Deep Hashing with a Single Cosine Similarity based Learning
Objective", NeurIPS 2021.

    v      v          (n, b)   scores after batch normalisation
    o_c    centres    (c, b)   code of each class, ±1
    s, m   scale, margin       √b and 0.2
    L      −Σ_c y_c log softmax_c(s (cos(v, o_c) − m [y_c > 0])),  y spread evenly over the labels of a sample
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from hbmp.functions.linear import Linear
from hbmp.methods._shared.centres import make_centres
from hbmp.methods._shared.cosines import cosine_cross_entropy
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.score_norm import ScoreNorm


class _OrthogonalLoss(nn.Module):
    """Batch normalisation, then the cosine cross-entropy."""

    centres: torch.Tensor

    def __init__(self, centres, scale, margin):
        super().__init__()
        self.scale, self.margin = scale, margin
        self.register_buffer("centres", torch.from_numpy(centres))
        self.normalise = ScoreNorm(centres.shape[1])

    def forward(self, scores, labels, rows):
        labelled = labels.any(dim=1).sum().clamp(min=1)
        losses = cosine_cross_entropy(self.normalise(scores), labels, self.centres, self.scale, self.margin)
        return losses.sum() / labelled


class OrthoHash(DeepHasher):
    """Cross-entropy over cosines to orthogonal codes, one a class, with batch-normalised scores.

    Parameters
    ----------
    n_bits : length of the codes
    scale : s, factor of the cosines; "auto" is √n_bits, which is the released code's 8 at its 64 bits. On CIFAR-10
        features (cifar-1) it gives mAP 0.831 and 0.841 at 16 and 32 bits, 8 gives 0.806 and 0.826
    margin : m, taken off the cosine with the right code
    centres : the codes: "auto" (orthogonal rows of a Hadamard matrix where there is one, random ones otherwise),
        "hadamard" or "bernoulli"
    function : "auto" (kernel or mlp), a name from `hbmp.functions` or an object from there, trained by gradients
    device : "auto", "cpu" or "cuda"
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr

    Attributes: centres_ (c, n_bits), in the order of the sorted classes, or of the columns of y.

    Once trained the normalisation is a factor and a shift of each bit; they are folded into the hash function.
    """

    citation = "Hoe, Ng, Zhang, Chan, Song & Xiang, NeurIPS 2021"
    smoke = {"function": Linear(epochs=2)}
    search = {"scale": ["auto", 3.0, 8.0], "margin": [0.2, 0.3]}

    def __init__(
        self,
        n_bits=32,
        *,
        scale="auto",
        margin=0.2,
        centres="auto",
        function="auto",
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.scale = scale
        self.margin = margin
        self.centres = centres
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels, seed):
        """The cosine cross-entropy with centres drawn from the seed."""
        centres = make_centres(self.centres, labels.shape[1], self.n_bits, np.random.default_rng(seed))
        scale = self.n_bits**0.5 if self.scale == "auto" else self.scale
        return _OrthogonalLoss(centres, scale, self.margin)

    def finish(self, loss):
        """Fold the normalisation into the hash function; keep the centres."""
        self.function_.rescale(*loss.normalise.affine())
        self.centres_ = loss.centres.cpu().numpy().astype(np.int8)
