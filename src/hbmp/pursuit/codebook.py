"""The result of a pursuit: target codes of all items, nested, with the weights of every prefix.

V      codes       (items, bits)   int8
α      weights     (bits,)
β      intercept                   0 unless a free one was asked for
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from hbmp.pursuit.fit import solve_weights


@dataclass(repr=False)
class CodeBook:
    """Codes such that Σ_k α_k u_ik u_jk + β is the affinity of items i and j (times `scale`).

    residuals[t] is the Frobenius norm of what t bits leave unexplained, under the item weights and off the
    diagonal where it was ignored; residuals[0] is the norm of the affinity itself.
    """

    codes: np.ndarray  # (items, bits) int8
    weights: np.ndarray  # (bits,)
    residuals: np.ndarray  # (bits + 1,)
    intercept: float = 0.0
    scale: float = 1.0  # the affinity was multiplied by this: n_bits in the constant scheme, else 1
    scheme: str = "regress"
    weighting: str = "least-squares"
    ridge: float = 0.0
    item_weights: np.ndarray | None = None  # (items,)
    gram: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # intercept first, where free
    match: np.ndarray = field(default_factory=lambda: np.empty(0))
    affinity: Any = field(default=None)  # fitted, to place items met later

    def __repr__(self) -> str:
        left = self.relative_residuals[-1]
        return f"CodeBook({len(self.codes)} items, {self.n_bits} bits, scheme={self.scheme!r}, {left:.3f} left)"

    @property
    def n_bits(self) -> int:
        """Length of the codes."""
        return self.codes.shape[1]

    @property
    def relative_residuals(self) -> np.ndarray:
        """Residuals as a share of the affinity's norm, from 1 downwards."""
        return self.residuals / max(self.residuals[0], 1e-300)

    def weights_for(self, k: int) -> np.ndarray:
        """Best weights for the first k bits: every prefix of the codes is a code of its own."""
        return self._solved_for(k)[1]

    def _solved_for(self, k: int) -> tuple[float, np.ndarray]:
        """The intercept and the weights of the first k bits."""
        if not 1 <= k <= self.n_bits:
            raise ValueError(f"The codes have {self.n_bits} bits; asked for the weights of the first {k}.")
        if self.scheme == "constant":
            return self.intercept, np.ones(k)
        if self.scheme == "greedy" or k == self.n_bits:
            return self.intercept, self.weights[:k].copy()
        free = len(self.match) - self.n_bits
        size = k + free
        solved = solve_weights(self.gram[:size, :size], self.match[:size], self.weighting, self.ridge, free)
        return float(solved[0]) if free else self.intercept, solved[free:]

    def encode(self, new_items) -> np.ndarray:
        """Codes of classes, label sets or instances, never seen ones included. Shape (m, bits), int8.

        A known item keeps its code. A new one gets the code whose weighted agreement with all known codes comes
        closest to its affinities: the same squared error as the pursuit's, one code at a time.
        """
        if self.affinity is None:
            raise ValueError("This code book was saved without its affinity, so it cannot place new items.")
        known = self.affinity.find(new_items)
        codes = self.codes[known]
        unseen = np.flatnonzero(known < 0)
        if unseen.size:
            rows = (new_items if sparse.issparse(new_items) else np.asarray(new_items))[unseen]
            codes[unseen] = self.codes_from_affinities(self.affinity.cross(rows))
        return codes

    def codes_from_affinities(self, affinities: np.ndarray) -> np.ndarray:
        """Codes of items given by their affinities to all known items, (m, items) -> (m, bits)."""
        weights = np.ones(len(self.codes)) if self.item_weights is None else self.item_weights
        seen = self.codes * self.weights  # (items, bits): what bit k of a new code adds to its affinity to each
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
    """min uᵀMu - 2lᵀu over sign vectors u, one for every row l of `linear`: relax, round, flip single bits.

    quadratic: (b, b) positive semidefinite; linear: (m, b). Starts from the sign of the unconstrained minimum and
    from the sign of l, and keeps the better result.
    """
    n_bits = len(quadratic)
    ridge = np.eye(n_bits) * 1e-6 * max(np.trace(quadratic) / n_bits, 1e-300)
    relaxed = np.linalg.solve(quadratic + ridge, linear.T).T
    candidates = [_descend(quadratic, linear, np.where(start >= 0, 1.0, -1.0)) for start in (relaxed, linear)]
    costs = [np.einsum("mb,mb->m", u @ quadratic - 2 * linear, u) for u in candidates]
    return np.where((costs[0] <= costs[1])[:, None], *candidates).astype(np.int8)


def _descend(quadratic, linear, codes):
    """Flip the most helpful bit of every row, all rows at once, until no flip lowers any row's cost."""
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
