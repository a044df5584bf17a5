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

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.centres import make_centres
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import inner
from hbmp.methods._shared.straight_through import signs_of


def polarisation(scores: torch.Tensor, labels: torch.Tensor, centres: torch.Tensor, margin: float) -> torch.Tensor:
    """The loss of each sample, (n,): over bits and over all labels the sample has."""
    # A multi-label sample is pulled to the codes of all its labels. A bit has two kinds of hinge, so counts suffice.
    wanted = inner(labels, (centres > 0).T)  # (n, b): labels whose code has +1 here
    unwanted = inner(labels, (centres < 0).T)
    return (wanted * F.relu(margin - scores) + unwanted * F.relu(margin + scores)).sum(dim=1)


class _PolarisationLoss(nn.Module):
    """Mean polarisation; with `adapt` the centres become the majority of their samples' codes once an epoch."""

    centres: torch.Tensor
    votes: torch.Tensor

    def __init__(self, centres: np.ndarray, margin: float, adapt: bool) -> None:
        super().__init__()
        self.margin, self.adapt = margin, adapt
        self.register_buffer("centres", torch.from_numpy(centres))
        self.register_buffer("votes", torch.zeros_like(self.centres))

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        scores = scores.float()
        value = polarisation(scores, labels, self.centres, self.margin).mean()
        if self.adapt:
            self.votes += inner(labels.T, signs_of(scores).T)
        return value

    def after_epoch(self) -> None:
        """The majority of the epoch's codes becomes the target; where votes are equal it does not change."""
        self.centres = torch.where(self.votes == 0, self.centres, self.votes.sign())
        self.votes.zero_()


class DPN(DeepHasher):
    """Deep polarised network: a hinge pulls every bit past a margin to a random code of its class.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    margin : float, default=1.0
        m, target distance of a score from zero.
    centres : {"bernoulli", "hadamard", "auto"}, default="bernoulli"
        Class codes: random as published, rows of a Hadamard matrix, or Hadamard if there is one.
    adapt : bool, default=False
        Replace each class code once per epoch by the majority of its samples' codes (DPN-A of the paper).
    function : str or HashFunction, default="auto"
        Hash function trained by gradients, by name or as an object. "auto" is a kernel, an MLP from 20,000 samples,
        or a network for images.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where gradients are computed.
    random_state : int, Generator, RandomState or None, default=None
        Seed. The same seed gives the same model.
    verbose : bool, default=False
        Show progress on stderr.

    Attributes
    ----------
    centres_ : ndarray of shape (n_classes, n_bits)
        Code of each class in sorted order, or of each column of y.
    function_ : HashFunction
        The fitted hash function.

    Notes
    -----
    On CIFAR-10 features (cifar-1, 32 bits), "bernoulli" gives mAP 0.835, "auto" 0.841, and `adapt` 0.813.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import DPN
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = DPN(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Fan, Ng, Ju, Zhang & Chan, IJCAI 2020"
    smoke = {"function": Linear(epochs=2), "adapt": True}
    search = {"margin": [0.5, 1.0, 2.0], "centres": ["bernoulli", "auto"]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        margin: float = 1.0,
        centres: str = "bernoulli",
        adapt: bool = False,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.margin = margin
        self.centres = centres
        self.adapt = adapt
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """The polarisation loss towards centres drawn from the seed."""
        if not self.margin > 0:
            raise ValueError(f"margin must be above 0, found {self.margin!r}.")
        centres = make_centres(self.centres, labels.shape[1], self.n_bits, np.random.default_rng(seed))
        return _PolarisationLoss(centres, self.margin, self.adapt)

    def finish(self, loss: Any) -> None:
        """Keep the targets."""
        self.centres_ = loss.centres.cpu().numpy().astype(np.int8)
