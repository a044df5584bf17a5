"""MIHash: the mutual information between Hamming distance and "is a neighbour", maximised over the batch.

Every sample of the batch queries the others. Distances to its neighbours and to the rest fall into two histograms;
the less they overlap, the more informative the distance. Triangular bins make the histograms differentiable.

Cakir, He, Bargal & Sclaroff, "MIHash: Online hashing with mutual information", ICCV 2017, and "Hashing with mutual
information", TPAMI 2019.

    φ_i        relaxed codes   (n, b)       2σ(s·u_i) - 1
    D_ij       distances       (n, n)       (b - φ_iᵀφ_j) / 2, in [0, b]
    δ_l        bins            l = 0 … L    triangles on the L + 1 centres l·b/L, each 0 at the next
    p⁺_i, p⁻_i histograms      (n, L + 1)   of i's distances to neighbours and to the rest, i itself in neither
    I_i        H(p_i) - P(+)H(p⁺_i) - P(-)H(p⁻_i), in bits
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
from hbmp.methods._shared.pairs import at_least, full_precision, inner, similar_and_not

MOST_BINS = 6  # of n_bins=None on features


def mutual_information(
    distances: torch.Tensor, neighbours: torch.Tensor, strangers: torch.Tensor, n_bits: int, n_bins: int
) -> torch.Tensor:
    """I_i of each query in bits: distances (n, m), two bool matrices of the same shape; returns (n,)."""
    near, far = histograms(distances * (n_bins / n_bits), neighbours, strangers, n_bins)
    n_near, n_far = neighbours.sum(dim=1), strangers.sum(dim=1)
    total = (n_near + n_far).clamp(min=1)
    given = n_near * _entropy(near, n_near) + n_far * _entropy(far, n_far)
    return _entropy(near + far, total) - given / total


def histograms(
    place: torch.Tensor, neighbours: torch.Tensor, strangers: torch.Tensor, n_bins: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """p⁺ and p⁻ before they are normalised, (n, L + 1) each, of distances in bins (n, m)."""
    if place.is_cuda:  # additions to one place in any order would not be reproducible
        return _dense_histograms(place, neighbours, strangers, n_bins)
    place = place.clamp(0, n_bins)
    low = place.detach().floor().clamp(max=n_bins - 1)  # a triangle covers two bins: its own and the next
    counted = (neighbours | strangers).to(place.dtype)
    upper = (place - low) * counted
    columns = low.long() + (n_bins + 1) * strangers
    out = place.new_zeros(len(place), 2 * (n_bins + 1)).scatter_add(1, columns, counted - upper)
    return out.scatter_add(1, columns + 1, upper).split(n_bins + 1, dim=1)


def _dense_histograms(
    place: torch.Tensor, neighbours: torch.Tensor, strangers: torch.Tensor, n_bins: int
) -> tuple[torch.Tensor, torch.Tensor]:
    centres = torch.arange(n_bins + 1, device=place.device)
    share = F.relu(1 - (place[:, :, None] - centres).abs())  # (n, m, L + 1); sums to 1 over bins
    with full_precision(share):
        near, far = (torch.bmm(chosen.float()[:, None, :], share)[:, 0] for chosen in (neighbours, strangers))
    return near, far


def _entropy(mass: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Entropy in bits of histograms with so many entries each; 0 for an empty one."""
    p = mass / count.clamp(min=1)[:, None]  # clamped below, so that the slope at an empty bin stays finite
    return -(p * p.clamp(min=1e-12).log()).sum(dim=1) / math.log(2)


class _MIHashLoss(nn.Module):
    """The negative mean of I_i over the batch: minimising it maximises the information."""

    def __init__(self, n_bits: int, n_bins: int, slope: float):
        super().__init__()
        self.n_bits, self.n_bins, self.slope = n_bits, n_bins, slope

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        relaxed = torch.tanh(self.slope / 2 * scores.float())  # = 2σ(s·u) - 1
        distances = (self.n_bits - inner(relaxed, relaxed)) / 2
        neighbours, strangers = similar_and_not(labels, rows)
        return -mutual_information(distances, neighbours, strangers, self.n_bits, self.n_bins).mean()


class MIHash(DeepHasher):
    """Mutual information between Hamming distance and neighbourhood, maximised over each batch.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    n_bins : int or None, default=None
        L, intervals between the bins of the distance histograms. None is n_bits / 2, as the authors recommend; on
        features at most 6.
    slope : float, default=4.0
        s of the sigmoid that relaxes bits.
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
    With a slope of 1 all bits of a network became equal (cifar-1, 12 bits: mAP 0.195). With 4 they stay different
    (0.631), and functions of features lose nothing.

    Departs from the authors' number of bins, n_bits / 2, where that is more than 6, but for images: a sample has few
    neighbours in a batch, and they leave most of many bins empty. Whole networks lose by fewer bins. See
    docs/changed-numbers.md.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import MIHash
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = MIHash(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Cakir, He, Bargal & Sclaroff, ICCV 2017"
    smoke = {"function": Linear(epochs=2)}
    search = {"n_bins": [None, 16], "slope": [1.0, 2.0, 4.0]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_bins: int | None = None,
        slope: float = 4.0,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.n_bins = n_bins
        self.slope = slope
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """Every sample of the batch as a query against the others."""
        usual = max(1, self.n_bits // 2)
        function = getattr(self, "function_", None)
        if function is None or not function.takes_images:
            usual = min(usual, MOST_BINS)
        n_bins = usual if self.n_bins is None else self.n_bins
        at_least(1, n_bins=n_bins)
        return _MIHashLoss(self.n_bits, n_bins, self.slope)
