"""GreedyHash: the signs themselves are classified, and the gradient of the signs is taken for that of the scores.

The sign is met in every step and never relaxed; a cubic penalty keeps the scores near ±1, where handing the gradient
through the sign is nearly right.
Su, Zhang, Han & Tian, "Greedy Hash: Towards Fast Optimization for Accurate Hash Coding in CNN", NeurIPS 2018.

    H      scores        (n, b)
    B      codes         (n, b)   sgn(H) forward, ∂L/∂H = ∂L/∂B backward
    α      quantisation           0.1
    W      classifier    (c, b)   linear, trained along
    L      cross-entropy of W B, plus α · mean |H − B|³, plus ½ classifier_decay ‖W‖²
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from hbmp.functions.linear import Linear
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.straight_through import signs_of, straight_through


def cubic_penalty(scores):
    """Mean over samples and bits of |h − sgn(h)|³."""
    return (scores - signs_of(scores)).abs().pow(3).mean()


class _GreedyLoss(nn.Module):
    """A classifier on the codes, trained along, and the cubic penalty.

    Label sets: the paper has classes alone. Here the probability is spread evenly over the labels of a sample, which on
    COCO features at 32 bits gives mAP@5K 0.753; a logistic loss for every label gives 0.692.
    """

    def __init__(self, n_bits, n_labels, quantisation, classifier_decay):
        super().__init__()
        self.quantisation, self.classifier_decay = quantisation, classifier_decay
        self.classifier = nn.Linear(n_bits, n_labels)

    def forward(self, scores, labels, rows):
        scores = scores.float()
        with torch.autocast(device_type=scores.device.type, enabled=False):
            logits = self.classifier(straight_through(scores))
        shares = labels / labels.sum(dim=1, keepdim=True).clamp(min=1)
        value = F.cross_entropy(logits, shares, reduction="sum") / labels.any(dim=1).sum().clamp(min=1)
        decay = 0.5 * self.classifier_decay * self.classifier.weight.square().sum()
        return value + self.quantisation * cubic_penalty(scores) + decay


class GreedyHash(DeepHasher):
    """A classifier learns on binary codes; its gradient passes through the sign as if that were not there.

    Parameters
    ----------
    n_bits : length of the codes
    quantisation : α, weight of the penalty |h − sgn(h)|³
    classifier_decay : weight of the classifier's squared norm. Departs from the paper's 5e-4, because a classifier
        that may grow separates classes by a few bits and leaves the codes of a class scattered: on CIFAR-10 features
        (cifar-1, 32 bits) 0 and 0.1 give mAP 0.809 and 0.842, with a linear function 0.644 and 0.808
    function : "auto" (kernel or mlp), a name from `hbmp.functions` or an object from there, trained by gradients
    device : "auto", "cpu" or "cuda"
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr
    """

    citation = "Su, Zhang, Han & Tian, NeurIPS 2018"
    smoke = {"function": Linear(epochs=2)}
    search = {"quantisation": [0.1, 1.0], "classifier_decay": [5e-4, 0.03, 0.1]}

    def __init__(
        self,
        n_bits=32,
        *,
        quantisation=0.1,
        classifier_decay=0.1,
        function="auto",
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.quantisation = quantisation
        self.classifier_decay = classifier_decay
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels, seed):
        """The classification loss; its classifier starts from the seed."""
        return _GreedyLoss(self.n_bits, labels.shape[1], self.quantisation, self.classifier_decay)
