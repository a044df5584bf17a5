"""Deep Polarized Network: every class has a random code, and every bit is pushed past a margin on its code's side.

The polarisation loss of a bit is a hinge, so that it is never below the margin where the bit is wrong: divided by
the margin it bounds the number of wrong bits, and with it the distance of two samples of a class, from above.
Fan, Ng, Ju, Zhang & Chan, "Deep Polarized Network for Supervised Learning of Accurate Binary Hashing Codes", IJCAI
2020.

    v      scores    (n, b)   what the network gives
    t      centres   (c, b)   target code of each class, ±1
    m      margin             1
    L      Σ_k max(0, m − v_k t_k)
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp.functions.linear import Linear
from hbmp.methods._shared.centres import make_centres
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import inner
from hbmp.methods._shared.straight_through import signs_of


def polarisation(scores, labels, centres, margin):
    """The loss of each sample, (n,): over bits and over all labels the sample has."""
    # A label set asks for all its labels' codes. Per bit the hinges are of two kinds, so counting them suffices.
    wanted = inner(labels, (centres > 0).T)  # (n, b): labels whose code has +1 here
    unwanted = inner(labels, (centres < 0).T)
    return (wanted * F.relu(margin - scores) + unwanted * F.relu(margin + scores)).sum(dim=1)


class _PolarisationLoss(nn.Module):
    """Mean polarisation; with `adapt` the centres become the majority of their samples' codes once an epoch."""

    centres: torch.Tensor
    votes: torch.Tensor

    def __init__(self, centres, margin, adapt):
        super().__init__()
        self.margin, self.adapt = margin, adapt
        self.register_buffer("centres", torch.from_numpy(centres))
        self.register_buffer("votes", torch.zeros_like(self.centres))

    def forward(self, scores, labels, rows):
        scores = scores.float()
        value = polarisation(scores, labels, self.centres, self.margin).mean()
        if self.adapt:
            self.votes += inner(labels.T, signs_of(scores).T)
        return value

    def after_epoch(self) -> None:
        """The majority of the epoch's codes becomes the target; where votes are equal it stays."""
        self.centres = torch.where(self.votes == 0, self.centres, self.votes.sign())
        self.votes.zero_()


class DPN(DeepHasher):
    """Each class has a target code, drawn at random, and a hinge pulls every bit to it.

    Parameters
    ----------
    n_bits : length of the codes
    margin : m, how far from zero a score should be
    centres : the targets: "bernoulli" (random, as published), "hadamard" or "auto" (Hadamard where there is one; mAP
        0.841 in place of 0.835 on CIFAR-10 features, cifar-1, 32 bits)
    adapt : replace each target once an epoch by the majority of its samples' codes (the paper's DPN-A; mAP 0.813
        there)
    function : "auto" (kernel or mlp), a name from `hbmp.functions` or an object from there, trained by gradients
    device : "auto", "cpu" or "cuda"
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr

    Attributes: centres_ (c, n_bits), the targets in the order of the sorted classes, or of the columns of y.
    """

    citation = "Fan, Ng, Ju, Zhang & Chan, IJCAI 2020"
    smoke = {"function": Linear(epochs=2), "adapt": True}
    search = {"margin": [0.5, 1.0, 2.0], "centres": ["bernoulli", "auto"]}

    def __init__(
        self,
        n_bits=32,
        *,
        margin=1.0,
        centres="bernoulli",
        adapt=False,
        function="auto",
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.margin = margin
        self.centres = centres
        self.adapt = adapt
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels, seed):
        """The polarisation loss towards centres drawn from the seed."""
        if not self.margin > 0:
            raise ValueError(f"margin must be above 0, found {self.margin!r}.")
        centres = make_centres(self.centres, labels.shape[1], self.n_bits, np.random.default_rng(seed))
        return _PolarisationLoss(centres, self.margin, self.adapt)

    def finish(self, loss):
        """Keep the targets."""
        self.centres_ = loss.centres.cpu().numpy().astype(np.int8)
