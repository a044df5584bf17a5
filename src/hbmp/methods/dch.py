"""DCH: similar pairs within a small Hamming radius, by a Cauchy distribution of the distance.

The usual sigmoid of inner products hardly separates distances of 0 and of a quarter of the bits. The Cauchy
probability falls steeply near 0, so that similar samples are gathered inside a radius of a few bits.
Cao, Long, Liu & Wang, "Deep Cauchy Hashing for Hamming Space Retrieval", CVPR 2018.

    z_i    scores       (n, b)   tanh of what the function gives
    d_ij   distance     (n, m)   ½ b (1 − cos(z_i, z_j))
    σ(d)   γ / (γ + d)           probability that two samples are similar
    w_ij   weight                all pairs over similar or over dissimilar pairs, whichever kind i, j is
    L      mean of w_ij (s_ij log(d/γ) + log(1 + γ/d))
    Q      mean of log(1 + d(|z_i|, 1) / γ)
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.checks import need_positive
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import inner, similar_and_not

_CLOSEST = 1e-3  # bits: dissimilar samples at distance 0 would have an infinite loss


def scaled_distance(scores: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """½ b (1 − cos) of all pairs, (n, m): the Hamming distance if both are codes."""
    cosines = inner(F.normalize(scores, dim=1), F.normalize(others, dim=1))
    return scores.shape[1] / 2 * (1 - cosines)


def cauchy_pairs(distances: torch.Tensor, alike: torch.Tensor, gamma: float) -> torch.Tensor:
    """−log of the Cauchy probability of each pair: log(1 + d/γ) if similar, log(1 + γ/d) if not."""
    distances = distances.clamp(min=_CLOSEST)
    return torch.where(alike, torch.log1p(distances / gamma), torch.log1p(gamma / distances))


def cauchy_quantisation(scores: torch.Tensor, gamma: float) -> torch.Tensor:
    """log(1 + d(|z|, 1)/γ) of each sample, (n,)."""
    ones = torch.ones_like(scores[:1])
    return torch.log1p(scaled_distance(scores.abs(), ones)[:, 0].clamp(min=0) / gamma)


class _CauchyLoss(nn.Module):
    """Both kinds of pairs weigh the same in sum, as w_ij makes them; then the quantisation."""

    def __init__(self, gamma: float, quantisation: float):
        super().__init__()
        self.gamma, self.quantisation = gamma, quantisation

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        relaxed = torch.tanh(scores.float())
        alike, unlike = similar_and_not(labels, rows)
        pairs = cauchy_pairs(scaled_distance(relaxed, relaxed), alike, self.gamma)
        total = sum((pairs * kind).sum() / kind.sum().clamp(min=1) for kind in (alike, unlike))
        return total + self.quantisation * cauchy_quantisation(relaxed, self.gamma).mean()


class DCH(DeepHasher):
    """Deep Cauchy hashing: similar samples are gathered within a few bits of each other.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    gamma : float, default=20.0
        γ, scale of the Cauchy distribution in bits. The smaller, the smaller the radius of similar samples.
    quantisation : float, default=0.1
        λ, weight of the quantisation loss.
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

    Notes
    -----
    The pairs are those of a batch, as in the paper. Distances are at least 0.001 bits in the loss, because dissimilar
    samples at distance 0 would have an infinite one.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import DCH
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = DCH(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Cao, Long, Liu & Wang, CVPR 2018"
    smoke = {"function": Linear(epochs=2)}
    search = {"gamma": [5.0, 10.0, 20.0, 40.0], "quantisation": [0.0, 0.1]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        gamma: float = 20.0,
        quantisation: float = 0.1,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.gamma = gamma
        self.quantisation = quantisation
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """Pairs of the batch under the Cauchy distribution."""
        need_positive(gamma=self.gamma)
        return _CauchyLoss(self.gamma, self.quantisation)
