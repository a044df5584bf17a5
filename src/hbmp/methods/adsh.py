"""ADSH: one side of each pair is the function's score, the other a free code of the training sample.

The codes of all training samples are variables of their own, solved bit by bit after each pass. A batch is compared
with all of them.
Jiang & Li, "Asymmetric Deep Supervised Hashing", AAAI 2018.

    u_i    relaxed      (n, b)   tanh of the scores
    V      codes        (n, b)   ±1, one per training sample, learned
    S      similarity   (n, n)   +1 if two samples share a label, else −r
    r      ratio                 similar pairs over dissimilar pairs, so that both kinds weigh the same
    E      members      (n, g)   which of the g different label rows a sample has, so that S = E S' Eᵀ
    L      Σ_ij (u_i · v_j − b s_ij)² + γ Σ_i ‖v_i − u_i‖²
    Q      −2 b SᵀU − 2 γ U                  V_k = −sgn(2 V_\\k U_\\kᵀ U_k + Q_k)   Eq. 10
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import full_precision


def group_similarity(groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """S' (g, g) of different label rows with so many samples each: 1 for a shared label, −r for none."""
    alike = (groups @ groups.T > 0).astype(np.float64)
    similar = counts @ alike @ counts
    ratio = similar / max(counts.sum() ** 2 - similar, 1.0)
    return (alike - ratio * (1 - alike)).astype(np.float32)


def solve_codes(
    codes: torch.Tensor, relaxed: torch.Tensor, similarity_times_relaxed: torch.Tensor, gamma: float
) -> torch.Tensor:
    """One pass over the bits: each column of V at its minimum with the others fixed. Returns new codes (n, b)."""
    codes, n_bits = codes.clone(), codes.shape[1]
    linear = -2 * n_bits * similarity_times_relaxed - 2 * gamma * relaxed
    products = relaxed.T @ relaxed
    for k in range(n_bits):
        others = codes @ products[:, k] - codes[:, k] * products[k, k]
        field = 2 * others + linear[:, k]
        codes[:, k] = torch.where(field > 0, -1.0, 1.0)
    return codes


class _AsymmetricLoss(nn.Module):
    """L over the batch and all codes, per pair; the codes are solved after each epoch from the latest scores."""

    similarity: torch.Tensor
    member: torch.Tensor
    codes: torch.Tensor
    relaxed: torch.Tensor

    def __init__(self, labels: np.ndarray, codes: np.ndarray, gamma: float):
        super().__init__()
        self.gamma = gamma
        member, first = _groups_of(labels)
        counts = np.bincount(member).astype(np.float64)
        self.register_buffer("similarity", torch.from_numpy(group_similarity(labels[first].astype(np.float64), counts)))
        self.register_buffer("member", torch.from_numpy(member))
        self.register_buffer("codes", torch.from_numpy(codes.astype(np.float32)))
        self.register_buffer("relaxed", torch.zeros_like(self.codes))

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        relaxed = torch.tanh(scores.float())
        self.relaxed[rows] = relaxed.detach()
        n_items, n_bits = self.codes.shape
        with full_precision(relaxed):
            # Σ_j (u·v_j − b s_ij)² = uᵀVᵀVu − 2b u·Σ_j s_ij v_j + b² Σ_j s_ij², so that no row of S is formed
            wanted = (self.similarity @ self._sums(self.codes))[self.member[rows]]
            squares = self.similarity.square() @ self._counts()
            pairs = ((relaxed @ (self.codes.T @ self.codes)) * relaxed).sum(dim=1)
            pairs = pairs - 2 * n_bits * (relaxed * wanted).sum(dim=1) + n_bits**2 * squares[self.member[rows]]
        own = (self.codes[rows] - relaxed).square().sum(dim=1)
        return (pairs + self.gamma * own).mean() / (n_items * n_bits)

    @torch.no_grad()
    def after_epoch(self) -> None:
        """Solve the codes for the scores of this epoch."""
        with full_precision(self.relaxed):
            products = (self.similarity @ self._sums(self.relaxed))[self.member]
            self.codes = solve_codes(self.codes, self.relaxed, products, self.gamma)

    def _sums(self, values: torch.Tensor) -> torch.Tensor:
        """Eᵀ times values: sums over the samples of each group, (g, b)."""
        return torch.zeros(len(self.similarity), values.shape[1], device=values.device).index_add_(
            0, self.member, values
        )

    def _counts(self) -> torch.Tensor:
        return torch.bincount(self.member, minlength=len(self.similarity)).float()


def _groups_of(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(group of each row, first row of each group) of equal label rows."""
    _, first, member = np.unique(labels.astype(np.uint8), axis=0, return_index=True, return_inverse=True)
    return member.reshape(-1), first


class ADSH(DeepHasher):
    """Asymmetric deep supervised hashing: scores are compared with free codes of all training samples.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    gamma : float, default=200.0
        γ, weight of the distance between a sample's code and its own scores.
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
    codes_ : ndarray of shape (n, n_bits)
        The free codes of the training samples.
    function_ : HashFunction
        The fitted hash function.

    Notes
    -----
    The paper searches the free codes with scores of queries. `transform` gives codes of the function for every row, in
    the database too, as all methods here do; the free codes are in `codes_`.

    Departs from the paper: all training samples are visited between two solutions of the codes, instead of 2,000 drawn
    ones. Dissimilar pairs have the similarity −r as in the released code; with −1 one value would fit almost all pairs.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import ADSH
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = ADSH(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.codes_.shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Jiang & Li, AAAI 2018"
    smoke = {"function": Linear(epochs=2)}
    search = {"gamma": [20.0, 200.0, 2000.0, 20000.0]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        gamma: float = 200.0,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.gamma = gamma
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """Scores against codes that start at random."""
        codes = np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), (len(labels), self.n_bits))
        return _AsymmetricLoss(labels, codes, self.gamma)

    def finish(self, loss: Any) -> None:
        """Keep the codes of the training samples."""
        self.codes_ = loss.codes.cpu().numpy().astype(np.int8)
