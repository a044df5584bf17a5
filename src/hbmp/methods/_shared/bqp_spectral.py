"""Relaxed solutions of min zᵀAz, z in {-1, +1}ⁿ: the sphere ‖z‖² = n first, then the box [-1, 1]ⁿ.

On the sphere the answer is the eigenvector of the smallest eigenvalue. The box is tighter but not convex, so a bounded
quasi-Newton search (L-BFGS-B) starts from that eigenvector (Lin et al., ICCV 2013, Eq. 11 and 12).

    A      matrix     (n, n)   symmetric, zero diagonal, dense or sparse
    z      signs      (n,)     int8
    x      relaxed    (n,)     real-valued
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from hbmp.methods._shared.bqp_losses import bqp_value
from hbmp.pursuit.spectral import Eigenspace, canonical_signs, spectral_starts

_SAME = 1e-3  # eigenvalues this close, relatively, count as equal, the limit of single precision


def sphere_solution(matrix: Any, rng: np.random.Generator) -> np.ndarray:
    """The eigenvector of the smallest eigenvalue, of length √n; drawn at random from a degenerate eigenspace."""
    values, vectors = _smallest(matrix, rng)
    top = vectors[:, values >= values[0] - _SAME * abs(values[0])]
    relaxed = top @ (top.T @ rng.standard_normal(len(top)).astype(top.dtype))
    length = float(np.linalg.norm(relaxed))
    return relaxed * (np.sqrt(len(relaxed)) / length if length > 0 else 1.0)


def spectral_signs(matrix: Any, rng: np.random.Generator, n_starts: int = 16) -> np.ndarray:
    """The best signs among mixtures of the eigenvectors around the smallest eigenvalue. Shape (n,), int8.

    With classes of unequal size one eigenvector separates only few of them; its signs are a poor start.
    """
    values, vectors = _smallest(matrix, rng)
    starts = spectral_starts(values, vectors, n_starts, rng)
    reached = np.einsum("nk,nk->k", starts, matrix @ starts.astype(matrix.dtype), dtype=np.float64)
    return starts[:, reached.argmin()]


def _smallest(matrix: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(values, vectors) of -A, largest first."""
    space = Eigenspace(matrix.shape[0], matrix.dtype, rng, exact=True)
    return space.update(lambda block: -(matrix @ block))


def box_solution(matrix: Any, start: np.ndarray, max_iter: int) -> np.ndarray:
    """A local minimum of xᵀAx in [-1, 1]ⁿ, searched from a start."""

    def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        field = (matrix @ x.astype(matrix.dtype)).astype(np.float64)
        return x @ field, 2 * field

    start = np.clip(start, -1, 1).astype(np.float64)
    found = minimize(
        value_and_slope,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-1, 1)] * len(start),
        options={"maxiter": max_iter},
    )
    return found.x


def relaxed_signs(matrix: Any, rng: np.random.Generator, max_iter: int) -> np.ndarray:
    """Signs of the box solution, or of the sphere solution if its rounded value is better. Shape (n,), int8."""
    relaxed = sphere_solution(matrix, rng)
    tried = [canonical_signs(relaxed), canonical_signs(box_solution(matrix, relaxed, max_iter))]
    return min(tried, key=lambda signs: bqp_value(matrix, signs))
