"""The result of a pursuit: target codes of all items, nested, with the weights of every prefix.

V      codes       (items, bits)   int8
α      weights     (bits,)
β      intercept                   0 unless it was fitted
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from hbmp.pursuit.fit import solve_weights


@dataclass(repr=False)
class CodeBook:
    """Target codes u and weights α such that Σ_k α_k u_ik u_jk + β approximates the affinity of items i and j.

    `hbmp.infer_codes` returns code books.

    Attributes
    ----------
    codes : ndarray of shape (n_items, n_bits), int8
        The codes in {-1, +1}.
    weights : ndarray of shape (n_bits,)
        Weight α of each bit.
    residuals : ndarray of shape (n_bits + 1,)
        Frobenius norm of the part of the affinity that the first t bits do not explain, under the item weights and
        without the diagonal if it was ignored. `residuals[0]` is the norm of the affinity.
    intercept : float
        β, which is 0 unless it was fitted.
    scale : float
        Factor of the affinity: n_bits in the constant scheme, else 1.
    scheme : str
        The scheme of the pursuit.
    weighting : str
        The rule for the weights.
    ridge : float
        The penalty of the weights.
    item_weights : ndarray of shape (n_items,) or None
        Weights of the items; None for equal weights.
    gram : ndarray
        Gram matrix of the bits, with the intercept first if it was fitted.
    match : ndarray
        Inner product of each bit with the affinity.
    affinity : Affinity or None
        The fitted affinity, by which new items get codes.

    Examples
    --------
    Any prefix of the codes is a code with weights of its own, and unseen items get codes too:

    >>> import hbmp
    >>> affinity = hbmp.affinities.SharedLabels().fit(y=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> book = hbmp.infer_codes(affinity, 3)
    >>> book.codes.shape, book.weights_for(2).shape
    ((3, 3), (2,))
    >>> book.encode([[1, 1, 0]]).shape
    (1, 3)
    """

    codes: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    intercept: float = 0.0
    scale: float = 1.0
    scheme: str = "regress"
    weighting: str = "least-squares"
    ridge: float = 0.0
    item_weights: np.ndarray | None = None
    gram: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    match: np.ndarray = field(default_factory=lambda: np.empty(0))
    affinity: Any = field(default=None)

    def __repr__(self) -> str:
        left = self.relative_residuals[-1]
        return f"CodeBook({len(self.codes)} items, {self.n_bits} bits, scheme={self.scheme!r}, {left:.3f} left)"

    @property
    def n_bits(self) -> int:
        """Length of the codes."""
        return int(self.codes.shape[1])

    @property
    def relative_residuals(self) -> np.ndarray:
        """Residuals as fractions of the norm of the affinity, from 1 downwards."""
        relative: np.ndarray = self.residuals / max(self.residuals[0], 1e-300)
        return relative

    def weights_for(self, k: int) -> np.ndarray:
        """Best weights of a prefix of the codes.

        Parameters
        ----------
        k : int
            Length of the prefix.

        Returns
        -------
        weights : ndarray of shape (k,)
        """
        return self._solved_for(k)[1]

    def _solved_for(self, k: int) -> tuple[float, np.ndarray]:
        """The intercept and the weights of the first k bits."""
        if not 1 <= k <= self.n_bits:
            raise ValueError(f"k must lie between 1 and {self.n_bits}, the number of bits; found {k}.")
        if self.scheme == "constant":
            return self.intercept, np.ones(k)
        if self.scheme == "greedy" or k == self.n_bits:
            return self.intercept, self.weights[:k].copy()
        free = len(self.match) - self.n_bits
        size = k + free
        solved = solve_weights(self.gram[:size, :size], self.match[:size], self.weighting, self.ridge, free)
        return float(solved[0]) if free else self.intercept, solved[free:]

    def encode(self, new_items: Any) -> np.ndarray:
        """Codes of classes, label rows or instances, unseen ones included.

        A known item keeps its code. An unseen item gets the code whose weighted agreement with all known codes is
        closest to its affinities, by the same squared error as in the pursuit.

        Parameters
        ----------
        new_items : array-like of length m
            Items in the form that the affinity was fitted on.

        Returns
        -------
        codes : ndarray of shape (m, n_bits), int8
        """
        if self.affinity is None:
            raise ValueError("This code book was saved without its affinity, so it cannot encode new items.")
        known = self.affinity.find(new_items)
        codes = self.codes[known]
        unseen = np.flatnonzero(known < 0)
        if unseen.size:
            rows = (new_items if sparse.issparse(new_items) else np.asarray(new_items))[unseen]
            codes[unseen] = self.codes_from_affinities(self.affinity.cross(rows))
        return codes

    def codes_from_affinities(self, affinities: np.ndarray) -> np.ndarray:
        """Codes of items given by their affinities to all known items, (m, n_items) to (m, n_bits)."""
        weights = np.ones(len(self.codes)) if self.item_weights is None else self.item_weights
        seen = self.codes * self.weights  # (items, bits): contribution of bit k of a new code to each affinity
        target = affinities.astype(np.float64) * self.scale - self.intercept
        weighted = seen * weights[:, None]
        return best_signs(seen.T @ weighted, target @ weighted)

    def prefix(self, k: int) -> CodeBook:
        """The code book of the first k bits."""
        free = len(self.match) - self.n_bits
        intercept, weights = self._solved_for(k)
        return CodeBook(
            codes=np.ascontiguousarray(self.codes[:, :k]),
            weights=weights,
            residuals=self.residuals[: k + 1],
            intercept=intercept,
            scale=self.scale,
            scheme=self.scheme,
            weighting=self.weighting,
            ridge=self.ridge,
            item_weights=self.item_weights,
            gram=self.gram[: k + free, : k + free],
            match=self.match[: k + free],
            affinity=self.affinity,
        )


def best_signs(quadratic: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """min uᵀMu - 2lᵀu over sign vectors u, one per row l of `linear`: relax, round, flip single bits.

    `quadratic` is positive semidefinite, (b, b); `linear` has shape (m, b). There are two starts, the sign of the
    unconstrained minimum and the sign of l. The better result is kept.
    """
    n_bits = len(quadratic)
    ridge = np.eye(n_bits) * 1e-6 * max(np.trace(quadratic) / n_bits, 1e-300)
    relaxed = np.linalg.solve(quadratic + ridge, linear.T).T
    candidates = [_descend(quadratic, linear, np.where(start >= 0, 1.0, -1.0)) for start in (relaxed, linear)]
    costs = [np.einsum("mb,mb->m", u @ quadratic - 2 * linear, u) for u in candidates]
    return np.where((costs[0] <= costs[1])[:, None], *candidates).astype(np.int8)


def _descend(quadratic: np.ndarray, linear: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Flip the best bit of every row, all rows at once, until no flip lowers the cost of any row."""
    rows = np.arange(len(codes))
    own = np.diag(quadratic)
    slope = codes @ quadratic - linear  # half the gradient
    tolerance = 1e-9 * (np.abs(quadratic).sum() + np.abs(linear).max(initial=0))
    while True:
        change = 4 * (own - codes * slope)  # of the cost, by flipping each bit
        best = change.argmin(axis=1)
        wanting = change[rows, best] < -tolerance
        if not wanting.any():
            return codes
        which, bit = rows[wanting], best[wanting]
        codes[which, bit] *= -1
        slope[which] += 2 * codes[which, bit][:, None] * quadratic[bit]
