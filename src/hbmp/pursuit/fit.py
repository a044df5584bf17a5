"""The fit of bits to an affinity, through a Gram matrix of bits instead of pairs of items.

The design matrix of HBMP Eq. 10 has one row per pair of items, n² in all. Its normal equations are small. With weights
c and D = diag(c),

    G_jk = ⟨v_j v_jᵀ, v_k v_kᵀ⟩ = (v_jᵀ D v_k)² - m          h_k = ⟨v_k v_kᵀ, R⟩ = v_kᵀ D R D v_k - tr

with m = Σ c_i² and tr = Σ c_i² R_ii where the diagonal is ignored, and both 0 where it is fitted. Weights, step
sizes and residuals all follow from G, h and ‖R‖², so a bit costs one product with R.

    v_k    directions   (n, t)   sign vectors; where the intercept is free, direction 0 is all ones
    α      weights      (t,)     of the directions
    G, h   gram, match  (t, t), (t,)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, get_blas_funcs
from scipy.optimize import nnls

SMALL_ITEMS = 1024  # up to here the residual is computed as a matrix, shared by all searches of a bit
HELD_ITEMS = 8192  # up to here the matrix of a dense affinity is held and updated in place


def solve_weights(gram: np.ndarray, match: np.ndarray, weighting: str, ridge: float, free: int = 0) -> np.ndarray:
    """Weights of least squared error for directions with this Gram matrix and match (HBMP Eq. 9).

    If the affinity does not determine all weights, the solution of least norm is taken. `weighting` can keep the
    weights non-negative, because a distance must not fall when a bit differs, and shrink them too (by `ridge` times
    the mean diagonal of G). The first `free` directions (the intercept) are neither bounded nor shrunk.
    """
    if len(match) == 0:
        return match
    if weighting == "ridge":
        penalty = np.full(len(match), ridge * np.diag(gram).mean())
        penalty[:free] = 0
        return _non_negative(gram + np.diag(penalty), match, free)
    if weighting == "non-negative":
        return _non_negative(gram, match, free)
    return _least_norm(gram, match)


def _least_norm(gram: np.ndarray, match: np.ndarray) -> np.ndarray:
    """G⁺ h by the eigenvalues of the scaled Gram matrix, so that the rank is decided alike for any n."""
    values, vectors = eigh(gram)
    keep = values > values[-1] * 1e-10
    vectors = vectors[:, keep]
    # HBMP Eq. 10
    return vectors @ ((vectors.T @ match) / values[keep])


def _non_negative(gram: np.ndarray, match: np.ndarray, free: int) -> np.ndarray:
    """argmin αᵀGα - 2αᵀh with α ≥ 0, as a non-negative least-squares problem on a square root of G."""
    values, vectors = eigh(gram)
    keep = values > values[-1] * 1e-10
    root = vectors[:, keep] * np.sqrt(values[keep])  # G = root rootᵀ
    target = (vectors[:, keep].T @ match) / np.sqrt(values[keep])
    columns = np.vstack([root, -root[:free]])  # a free weight is the difference of two non-negative ones
    solution = nnls(columns.T, target)[0]
    solution[:free] -= solution[len(match) :]
    return solution[: len(match)]


class HeldResidual:
    """D R D - Σ α_k (D v_k)(D v_k)ᵀ without its diagonal; a new bit changes it in place."""

    def __init__(self, affinity: np.ndarray, item_weights: np.ndarray):
        self.values, self._c = affinity, item_weights
        self._directions = np.empty((len(affinity), 0), dtype=affinity.dtype, order="F")
        self._weights = np.empty(0)  # that have been taken off
        (self._gemm,) = get_blas_funcs(("gemm",), (affinity,))

    def less(self, directions: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The matrix for these directions, of which earlier ones are known unless they were forgotten."""
        taken = np.zeros(len(weights))
        taken[: len(self._weights)] = self._weights
        self._take_off(directions, weights - taken)
        self._directions, self._weights = directions, weights.copy()
        return self.values

    def forget(self, position: int) -> None:
        """Remove a direction from the fit, because its signs are about to change."""
        if position < len(self._weights):
            back = np.zeros(len(self._weights))
            back[position] = -self._weights[position]
            self._take_off(self._directions, back)
            self._weights[position] = 0

    def _take_off(self, directions: np.ndarray, weights: np.ndarray) -> None:
        changed = np.flatnonzero(weights)
        if changed.size:
            sides = np.asfortranarray(self._c[:, None] * directions[:, changed])
            sized = np.asfortranarray(sides * weights[changed].astype(sides.dtype))
            # the matrix is symmetric, so its transpose, which is what BLAS can change in place, is the same matrix
            self._gemm(-1, sized, sides, beta=1, c=self.values.T, trans_b=True, overwrite_c=True)
        np.fill_diagonal(self.values, 0)


class Fit:
    """Directions found so far, their weights, and the residual operator Q = R - Σ α_k v_k v_kᵀ (HBMP Eq. 4).

    The residual acts as A = D Q D with a zero diagonal: vᵀAv is the match of a sign vector v with the part that is
    not yet explained. The diagonal of Q only adds a constant, so no choice of v depends on it.
    """

    def __init__(
        self, operator: Any, item_weights: np.ndarray, *, diagonal: str, scale: float, intercept: bool
    ) -> None:
        self.operator, self.scale, self.free = operator, scale, int(intercept)
        self.item_weights = item_weights
        self._c = item_weights.astype(operator.dtype)  # the same, in the precision of products
        self._unweighted = bool((item_weights == 1).all())
        self.values_on_diagonal = operator.diagonal() * scale
        self.fits_diagonal = diagonal == "fit"
        out = 0.0 if self.fits_diagonal else item_weights**2  # weight of the ignored diagonal
        self.ignored = float(np.sum(out))
        self.trace = float(np.sum(out * self.values_on_diagonal))
        self.squared_norm = operator.squared_norm(item_weights) * scale**2
        self.squared_norm -= float(np.sum(out * self.values_on_diagonal**2))
        self.directions = np.empty((operator.n_items, 0), dtype=operator.dtype, order="F")
        self._small_affinity: np.ndarray | None = None  # D R D, where it is small
        self._small: np.ndarray | None = None  # A, where it is small
        self._held: HeldResidual | None = None  # A, where it is updated in place
        self.weights = np.empty(0)
        self.gram = np.empty((0, 0))
        self.match = np.empty(0)
        if intercept:
            self.append(np.ones(operator.n_items, dtype=np.int8))

    @property
    def weights(self) -> np.ndarray:
        """α of the directions, as the residual operator uses them."""
        return self._weights

    @weights.setter
    def weights(self, weights: np.ndarray) -> None:
        self._weights, self._small = weights, None

    @property
    def n_bits(self) -> int:
        """Number of bits found, without the intercept."""
        return self.directions.shape[1] - self.free

    @property
    def own_size(self) -> float:
        """⟨vvᵀ, vvᵀ⟩, the same for every sign vector."""
        return float(self.item_weights.sum()) ** 2 - self.ignored

    def gram_column(self, signs: np.ndarray) -> np.ndarray:
        """⟨v_k v_kᵀ, ssᵀ⟩ for every direction so far and one or more sign vectors s. Shape (t,) or (t, k)."""
        weighted = self._c[:, None] * signs.reshape(len(signs), -1)
        products = (self.directions.T @ weighted).astype(np.float64)
        return (products**2 - self.ignored).reshape(-1, *signs.shape[1:])

    def match_of(self, signs: np.ndarray) -> float:
        """⟨ssᵀ, R⟩."""
        product = self.operator.matmul((self._c * signs)[:, None])[:, 0].astype(np.float64)
        return self.scale * float((self.item_weights * signs) @ product) - self.trace

    def diagonal_match(self) -> float:
        """Contribution of the diagonal of the residual to the match of every sign vector; 0 if it is ignored."""
        if not self.fits_diagonal:
            return 0.0
        return float(np.sum(self.item_weights**2 * (self.values_on_diagonal - self.weights.sum())))

    def append(self, signs: np.ndarray) -> None:
        """Add a direction. Its weight is 0 until the weights are set."""
        column = self.gram_column(signs)
        size = len(column) + 1
        gram = np.empty((size, size))
        gram[:-1, :-1], gram[:-1, -1], gram[-1, :-1], gram[-1, -1] = self.gram, column, column, self.own_size
        self.gram, self.match = gram, np.append(self.match, self.match_of(signs))
        grown = np.empty((len(signs), size), dtype=self.directions.dtype, order="F")
        grown[:, :-1], grown[:, -1] = self.directions, signs
        self.directions, self.weights = grown, np.append(self.weights, 0.0)

    def replace(self, position: int, signs: np.ndarray) -> None:
        """Replace the signs of a direction. The weights do not change."""
        self._small = None
        if self._held is not None:
            self._held.forget(position)
        self.directions[:, position] = signs
        self.gram[position] = self.gram[:, position] = self.gram_column(signs)
        self.gram[position, position] = self.own_size
        self.match[position] = self.match_of(signs)

    def residual(self, weights: np.ndarray | None = None) -> float:
        """‖R - Σ α_k v_k v_kᵀ‖_F, by the expansion ‖R‖² - 2αᵀh + αᵀGα over the first len(α) directions."""
        alpha = self.weights if weights is None else weights
        size = len(alpha)
        # HBMP Eq. 3, without its factor of one half
        square = self.squared_norm - 2 * alpha @ self.match[:size] + alpha @ self.gram[:size, :size] @ alpha
        return float(np.sqrt(max(square, 0.0)))

    def decrease(self, signs: np.ndarray, match: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Decrease of the squared residual by each sign vector after all active weights are refitted, (k,).

        match = ⟨ssᵀ, Q⟩ with the present residual, which is orthogonal to the active directions. The new part of ssᵀ
        is orthogonal to them too; its size is a Schur complement of the Gram matrix.
        """
        new = np.full(len(match), self.own_size)
        if active.size:
            columns = self.gram_column(signs)[active]
            gram = self.gram[np.ix_(active, active)]
            factor = cho_factor(gram + np.eye(len(gram)) * 1e-10 * self.own_size)
            new -= np.einsum("tk,tk->k", columns, cho_solve(factor, columns))
        seen_before = new < 1e-8 * self.own_size
        return np.where(seen_before, 0.0, match**2 / np.maximum(new, 1e-300))

    # The residual as an operator -------------------------------------------------------------------------------

    @property
    def has_matrix(self) -> bool:
        """Whether A is available as a matrix."""
        return self.operator.n_items <= SMALL_ITEMS or self.is_held

    @property
    def is_held(self) -> bool:
        """Whether that matrix is held and updated."""
        return self.operator.dense and SMALL_ITEMS < self.operator.n_items <= HELD_ITEMS

    @property
    def steps_at_once(self) -> int:
        """Products that a search may spend on flipping many signs together; none if compiled code makes the flips."""
        return 0 if self.is_held else self.operator.steps_at_once

    def matrix(self) -> np.ndarray | None:
        """A as a matrix if available, else None."""
        if self._small is None and self.is_held:
            if self._held is None:
                affinity = self.operator.block(slice(None)) * self._c.dtype.type(self.scale)
                self._held = HeldResidual(self._weighted(affinity), self._c)
            self._small = self._held.less(self.directions, self.weights)
        elif self._small is None and self.has_matrix:
            if self._small_affinity is None:
                self._small_affinity = self._weighted(self.scale * self.operator.block(slice(None)))
            explained = self._c[:, None] * self.directions
            self._small = self._small_affinity - (explained * self._alpha()) @ explained.T
            np.fill_diagonal(self._small, 0)
        return self._small

    def residual_times(self, vectors: np.ndarray) -> np.ndarray:
        """A @ vectors. vectors: (n, k)."""
        if (small := self.matrix()) is not None:
            return (vectors.T @ small).T  # A is symmetric, and BLAS multiplies few rows faster than few columns
        weighted = self._c[:, None] * vectors
        return self._finish(self.operator.matmul(weighted), self.directions.T @ weighted, vectors)

    def residual_times_columns(self, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        """A[:, columns] @ values, for a few columns. values: (len(columns),)."""
        if (small := self.matrix()) is not None:
            return values @ small[columns]
        weighted = (self._c[columns] * values)[:, None].astype(self._c.dtype)
        vector = np.zeros((len(self._c), 1), dtype=self._c.dtype)
        vector[columns, 0] = values
        product = self.operator.times_columns(columns, weighted)
        return self._finish(product, self.directions[columns].T @ weighted, vector)[:, 0]

    def residual_block(self, items: np.ndarray) -> np.ndarray:
        """A at every pair of the given items."""
        signs = self.directions[items]
        block = self.operator.block(items) * self._c.dtype.type(self.scale) - (signs * self._alpha()) @ signs.T
        block = self._weighted(block, items)
        np.fill_diagonal(block, 0)
        return block

    def _weighted(self, block: np.ndarray, items: Any = slice(None)) -> np.ndarray:
        return block if self._unweighted else block * self._c[items, None] * self._c[items]

    def _finish(self, product: np.ndarray, overlaps: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Subtract the explained part and the diagonal, and weight the rows."""
        explained = self.directions @ (self._alpha()[:, None] * overlaps)
        on_diagonal = self._c**2 * (self.values_on_diagonal - self.weights.sum()).astype(self._c.dtype)
        return (
            self._c[:, None] * (self._c.dtype.type(self.scale) * product - explained) - on_diagonal[:, None] * vectors
        )

    def _alpha(self) -> np.ndarray:
        return self.weights.astype(self._c.dtype)
