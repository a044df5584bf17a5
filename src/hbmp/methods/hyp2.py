"""HyP²: a learned proxy for every label pulls its samples near; samples that share no label push each other apart.

Proxies alone cannot separate multi-label samples: a sample between two proxies may fall near one that shares no label
with either. The pair term covers exactly these pairs, so its cost is small.
Xu, Chai, Xu, Yuan, Fan & Wang, "HyP² Loss: Beyond Hypersphere Metric Space for Multi-label Image Retrieval", ACM MM
2022.

    x      scores      (n, b)
    P      proxies     (c, b)   learned
    ζ      threshold            cosine of two codewords at the largest distance that all labels can keep
    β      pair_weight          0.5
    L      mean over labels a sample has of 1 − cos(x, p)
         + mean over labels it has not of max(0, cos(x, p) − ζ)
         + β · mean over pairs without a common label of max(0, cos(x_i, x_j) − ζ)
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import inner, mean_over, similar


def farthest_distance(n_codes: int, n_bits: int) -> int:
    """The largest minimum distance of a linear code with this many codewords, by Griesmer's bound.

    Departs from the paper, which reads the distance of the best known linear code from a table: the bound is
    computed for every length, and is the table's value or just above it.
    """
    dimension = max(1, math.ceil(math.log2(n_codes)))
    fits = (d for d in range(n_bits, 0, -1) if sum(math.ceil(d / 2**i) for i in range(dimension)) <= n_bits)
    return next(fits, 0)


def proxy_loss(
    unit_scores: torch.Tensor, labels: torch.Tensor, unit_proxies: torch.Tensor, threshold: float
) -> torch.Tensor:
    """Near the proxies of a sample's labels, no nearer than the threshold to all others."""
    cosines = inner(unit_scores, unit_proxies)
    has = labels > 0
    return mean_over(1 - cosines, has) + mean_over(F.relu(cosines - threshold), ~has)


def irrelevant_pair_loss(unit_scores: torch.Tensor, labels: torch.Tensor, threshold: float) -> torch.Tensor:
    """Samples of several labels that share none, no nearer than the threshold."""
    several = labels.sum(dim=1) > 1  # with one label each the proxies keep them apart already
    apart = ~similar(labels, labels) & several[:, None] & several
    return mean_over(F.relu(inner(unit_scores, unit_scores) - threshold), apart)


class _HybridLoss(nn.Module):
    """Proxies, trained along, and irrelevant pairs of the batch."""

    def __init__(self, n_bits: int, n_labels: int, threshold: float, pair_weight: float) -> None:
        super().__init__()
        self.threshold, self.pair_weight = threshold, pair_weight
        self.proxies = nn.Parameter(torch.randn(n_labels, n_bits))

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        unit_scores, unit_proxies = F.normalize(scores.float(), dim=1), F.normalize(self.proxies.float(), dim=1)
        value = proxy_loss(unit_scores, labels, unit_proxies, self.threshold)
        return value + self.pair_weight * irrelevant_pair_loss(unit_scores, labels, self.threshold)


class HyP2(DeepHasher):
    """Proxies for labels, and repulsion between multi-label samples that share none.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    pair_weight : float, default=0.5
        β, weight of the pair loss.
    threshold : float or "auto", default="auto"
        ζ, the cosine below which samples and proxies are far enough apart. "auto" computes it from the number of
        labels and bits.
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
    >>> from hbmp.methods import HyP2
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = HyP2(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Xu, Chai, Xu, Yuan, Fan & Wang, ACM MM 2022"
    smoke = {"function": Linear(epochs=2)}
    search = {"pair_weight": [0.5, 1.0], "threshold": ["auto", -0.1, 0.2]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        pair_weight: float = 0.5,
        threshold: float | str = "auto",
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.pair_weight = pair_weight
        self.threshold = threshold
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """The hybrid loss; its proxies start from the seed."""
        n_labels, threshold = labels.shape[1], self.threshold
        if isinstance(threshold, str):
            threshold = 1 - 2 * farthest_distance(n_labels, self.n_bits) / self.n_bits
        return _HybridLoss(self.n_bits, n_labels, threshold, self.pair_weight)
