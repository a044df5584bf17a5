"""Deep semantic ranking hashing: lists ranked by the number of shared labels, with a bound of NDCG's loss.

Each sample of the batch is a query with a list of others. Whenever one of the list shares more labels with the query
than another, its distance should be smaller by a margin, and the pair counts by what the wrong order costs in NDCG.

Zhao, Huang, Wang & Tan, "Deep semantic ranking based hashing for multi-label image retrieval", CVPR 2015.

    h_i           relaxed codes  (n, b)      2σ(u_i) - 1
    r_i           relevance      (n, m)      labels shared with the query
    d(q, i)       distance       (n, m)      (b - h_qᵀh_i) / 2
    ρ             margin
    ω(r_i, r_j)   weight         (n, m, m)   (2^r_i - 2^r_j) / Z, Z the best possible DCG of the list; for r_i > r_j
    α             balance        weight of ½‖mean of h‖²: every bit should be +1 as often as -1
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
from hbmp.methods._shared.pairs import at_least, drawn_partners, inner, shared_counts, similar_and_not


def ranking_loss(distances: torch.Tensor, relevance: torch.Tensor, margin: float) -> torch.Tensor:
    """Mean over queries and their misorderable pairs of ω(r_i, r_j) max(0, ρ + d_i - d_j) (Eq. 4).

    distances, relevance: (n, m), one list per query; empty places in a list have relevance NaN.
    """
    above = relevance[:, :, None] > relevance[:, None, :]  # False wherever one is NaN
    gain = torch.exp2(relevance.nan_to_num(nan=0.0))
    weights = (gain[:, :, None] - gain[:, None, :]) / best_dcg(relevance)[:, None, None]
    slack = F.relu(margin + distances[:, :, None] - distances[:, None, :])
    return torch.where(above, weights * slack, torch.zeros_like(slack)).sum() / above.sum().clamp(min=1)


def best_dcg(relevance: torch.Tensor) -> torch.Tensor:
    """Z of each list: Σ (2^r - 1) / log₂(place + 1) in falling order of r; 1 where nothing is relevant."""
    gains = (torch.exp2(relevance.nan_to_num(nan=0.0)) - 1).sort(dim=1, descending=True).values
    places = torch.arange(2, relevance.shape[1] + 2, device=relevance.device)
    best = (gains / torch.log2(places.float())).sum(dim=1)
    return torch.where(best > 0, best, torch.ones_like(best))


class _DSRHLoss(nn.Module):
    """Ranking loss of lists from the batch, half of them samples that share a label with the query; and balance."""

    def __init__(self, n_bits: int, margin: float, balance: float, length: int):
        super().__init__()
        self.n_bits, self.margin, self.balance, self.length = n_bits, margin, balance, length

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        relaxed = torch.tanh(scores.float() / 2)  # = 2σ(u) - 1
        distances = (self.n_bits - inner(relaxed, relaxed)) / 2
        listed, relevance = self._lists(labels, rows)
        ranking = ranking_loss(distances.gather(1, listed), relevance, self.margin)
        return ranking + self.balance / 2 * relaxed.mean(dim=0).square().sum()

    def _lists(self, labels: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(columns, relevance) of each query's list, (n, m) each."""
        alike, unlike = similar_and_not(labels, rows)
        near, is_near = drawn_partners(alike, self.length // 2)
        far, is_far = drawn_partners(unlike, self.length - self.length // 2)
        listed, real = torch.cat([near, far], dim=1), torch.cat([is_near, is_far], dim=1)
        relevance = shared_counts(labels, labels).gather(1, listed)
        return listed, torch.where(real, relevance, torch.full_like(relevance, torch.nan))


class DSRH(DeepHasher):
    """Deep semantic ranking hashing: codes that rank by the number of shared labels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    margin : float, default=5.0
        ρ, required difference of distances. The default is the value of the released code.
    balance : float, default=1.0
        α, weight of the squared mean of each bit over the batch. The default is the value of the released code.
    length : int, default=32
        Samples in the list of a query, half of them with a shared label.
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
    >>> from hbmp.methods import DSRH
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = DSRH(8, length=8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Zhao, Huang, Wang & Tan, CVPR 2015"
    smoke = {"function": Linear(epochs=2), "length": 6}
    search = {"margin": [2.0, 5.0, 10.0], "balance": [0.1, 1.0]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        margin: float = 5.0,
        balance: float = 1.0,
        length: int = 32,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.margin = margin
        self.balance = balance
        self.length = length
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """Lists drawn from the batch, and the balance of bits."""
        at_least(2, length=self.length)
        return _DSRHLoss(self.n_bits, self.margin, self.balance, self.length)
