"""HashNet: a weighted likelihood of pairs on tanh(βz), with β raised during training until codes are nearly binary.

Similar pairs are few, so similar and dissimilar ones get the same weight in total; a pair of
multi-label samples counts by the fraction of their labels that they share.

Cao, Long, Wang & Yu, "HashNet: Deep learning to hash by continuation", ICCV 2017.

    z_i     scores         (n, b)
    h_i     relaxed codes  (n, b)   tanh(β z_i)
    s_ij    similar        (n, n)   whether i and j share a label
    c_ij    share          (n, n)   labels in both over labels in either, of similar pairs; 1 for dissimilar ones
    w_ij    weights        (n, n)   c_ij |S|/|S₁| or c_ij |S|/|S₀|, from the numbers of similar and dissimilar pairs
    α       steepness      10/b
    β_t     sharpness      (1 + γt)^p, held for 200 steps at a time; γ = 0.005, p = ½
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import at_least, inner, jaccard, mean_over, similar_and_not


def sharpness(step: torch.Tensor, growth: float, power: float, hold: int) -> torch.Tensor:
    """β after so many steps, raised every `hold` of them."""
    return (1 + growth * (step // hold * hold)) ** power


class _HashNetLoss(nn.Module):
    """Eq. 4 divided by the number of pairs: with w that is the mean over similar pairs plus that over the others."""

    step: torch.Tensor

    def __init__(self, n_bits: int, steepness: float, growth: float, power: float, hold: int):
        super().__init__()
        self.steepness, self.growth, self.power, self.hold = steepness / n_bits, growth, power, hold
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        relaxed = torch.tanh(sharpness(self.step, self.growth, self.power, self.hold) * scores.float())
        agreement = self.steepness * inner(relaxed, relaxed)
        alike, unlike = similar_and_not(labels, rows)
        share = jaccard(labels, labels)
        return mean_over(share * F.softplus(-agreement), alike) + mean_over(F.softplus(agreement), unlike)

    def after_step(self) -> None:
        """Count a step of the optimiser: t of β_t, regardless of the number of calls of the loss."""
        self.step += 1


class HashNet(DeepHasher):
    """Codes by continuation: a likelihood of pairs on tanh(βz), with β raised during training.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    steepness : float, default=10.0
        α times the number of bits.
    growth : float, default=0.005
        γ of β = (1 + γt)^p.
    power : float, default=0.5
        p of β = (1 + γt)^p.
    hold : int, default=200
        Steps between updates of β.
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
    function_ : HashFunction
        The fitted hash function.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import HashNet
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = HashNet(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Cao, Long, Wang & Yu, ICCV 2017"
    smoke = {"function": Linear(epochs=2), "hold": 2}
    search = {"steepness": [5.0, 10.0, 20.0], "growth": [0.005, 0.02]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        steepness: float = 10.0,
        growth: float = 0.005,
        power: float = 0.5,
        hold: int = 200,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.steepness = steepness
        self.growth = growth
        self.power = power
        self.hold = hold
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """Pairs of the batch under the weights of their kind."""
        at_least(1, hold=self.hold)
        return _HashNetLoss(self.n_bits, self.steepness, self.growth, self.power, self.hold)
