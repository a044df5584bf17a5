"""Two solvers of min zᵀAz over z in {-1, +1}ⁿ: semidefinite relaxation with rounding, and an augmented Lagrangian.

The first lifts z to X = zzᵀ and drops its rank; what is left is convex in X, and Gaussian vectors with covariance X
give signs back. The second keeps z a vector and drives z_i² to 1 by multipliers (Do et al., ECCV 2016, Sections 3.1
and 3.2).

    A      matrix        (n, n)   symmetric, zero diagonal
    X      V Vᵀ          (n, n)   X ⪰ 0, diag X = 1, never formed
    V      vectors       (n, p)   rows of length 1
    Φ_i    broken        (n,)     x_i² - 1, what an entry lacks of a sign
    λ, μ   multipliers   (n,), penalty
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from hbmp.methods._shared.bqp_losses import bqp_value
from hbmp.methods._shared.bqp_spectral import sphere_solution
from hbmp.pursuit.spectral import canonical_signs


def enough_rank(n_items: int) -> int:
    """The least p with p(p+1)/2 > n: then the factorised problem has, for almost every A, only global minima."""
    return int(np.floor((np.sqrt(8 * n_items + 1) - 1) / 2)) + 1


def relaxed_vectors(matrix: Any, rank: int, rng: np.random.Generator, max_iter: int) -> np.ndarray:
    """V that minimises tr(VᵀAV) over rows of length 1, (n, rank) float32.

    Departs from the publication, which hands the problem in X to an interior-point solver, because that takes O(n³)
    time and more memory than X: the factorised problem (Burer & Monteiro 2003) takes products with A alone and has the
    same minimum at the rank of `enough_rank`. It is solved over free rows that are scaled to length 1.
    """
    n_items = matrix.shape[0]
    start = rng.standard_normal((n_items, rank)).astype(np.float32)

    def value_and_slope(flat: np.ndarray) -> tuple[float, np.ndarray]:
        free = flat.reshape(n_items, rank).astype(np.float32)
        lengths = np.linalg.norm(free, axis=1, keepdims=True)
        vectors = free / lengths
        field = matrix @ vectors
        along = np.einsum("np,np->n", field, vectors)
        slope = 2 * (field - along[:, None] * vectors) / lengths
        return along.sum(dtype=np.float64), slope.astype(np.float64).ravel()

    found = minimize(
        value_and_slope,
        start.astype(np.float64).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": 1e-6},  # the limit of products in single precision
    )
    vectors = found.x.reshape(n_items, rank)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def rounded(matrix: Any, vectors: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """The best signs among `draws` Gaussian vectors of covariance VVᵀ. Shape (n,), int8."""
    directions = rng.standard_normal((vectors.shape[1], draws)).astype(np.float32)
    tried = np.where(vectors @ directions >= 0, np.float32(1), np.float32(-1))
    values = np.einsum("nk,nk->k", tried, matrix @ tried, dtype=np.float64)
    return canonical_signs(tried[:, values.argmin()])


def lagrangian_signs(matrix: Any, rng: np.random.Generator, max_iter: int, rounds: int = 20) -> np.ndarray:
    """Signs of the augmented Lagrangian's solution, started from the spectral one. Shape (n,), int8.

    min_x xᵀAx - λᵀΦ + μ/2 ‖Φ‖², then λ ← λ - μΦ; μ doubles where Φ fell too little. A is divided by the size of its
    smallest eigenvalue, so that one penalty fits all.
    """
    x = sphere_solution(matrix, rng).astype(np.float64)
    scale = max(abs(bqp_value(matrix, x)) / len(x), 1e-12)
    multipliers, penalty, last = np.zeros(len(x)), 0.1, np.inf

    def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        field = (matrix @ x.astype(matrix.dtype)).astype(np.float64) / scale
        broken = x**2 - 1
        value = x @ field - multipliers @ broken + penalty / 2 * (broken @ broken)
        return value, 2 * field - 2 * multipliers * x + 2 * penalty * broken * x

    for _ in range(rounds):
        x = minimize(value_and_slope, x, jac=True, method="L-BFGS-B", options={"maxiter": max_iter}).x
        broken = x**2 - 1
        size = float(np.abs(broken).max())
        if size < 1e-3:
            break
        multipliers = multipliers - penalty * broken
        penalty, last = penalty * (2 if size > last / 4 else 1), size
    return canonical_signs(x)
