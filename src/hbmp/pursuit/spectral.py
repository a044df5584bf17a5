"""The relaxed step (HBMP Eq. 7): the top of the residual's spectrum, and sign vectors to start a search from.

The top eigenvalue of a class affinity is (C-1)-fold, so *the* eigenvector depends on the library. Starts are therefore
projections of seeded random vectors onto the eigenspace, which do not depend on its basis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh, qr

DENSE_ITEMS = 64  # up to here a full eigendecomposition costs less than iterating
_SIZE = 4  # eigenvectors kept


class Eigenspace:
    """The leading eigenvectors of a residual, by a few block Krylov steps from one random block.

    Every bit starts from the same block instead of the last eigenvectors. The basis of a degenerate eigenspace is
    arbitrary; carried over, it would make the codes depend on the BLAS.
    """

    def __init__(self, n_items: int, dtype: Any, rng: np.random.Generator, *, exact: bool) -> None:
        self.dense, self.exact = n_items <= DENSE_ITEMS, exact
        self.random = rng.standard_normal((n_items, min(_SIZE, n_items))).astype(dtype)

    def update(self, apply: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """(values, vectors) of the residual `apply`, largest first."""
        if self.dense:
            matrix = apply(np.eye(len(self.random), dtype=self.random.dtype))
            values, vectors = eigh((matrix + matrix.T) / 2)
            return values[::-1], vectors[:, ::-1]
        if not self.exact:  # a search does not need an exact start
            return _krylov_cycle(apply, self.random, depth=3)[:2]
        start = self.random
        for _ in range(20):
            values, vectors, error = _krylov_cycle(apply, start, depth=8)
            if error <= 1e-3 * max(abs(values[0]), 1e-30):
                break
            start = vectors[:, : self.random.shape[1]]
        return values, vectors


def _pull(values: np.ndarray) -> np.ndarray:
    """Weight of each eigenvector: its value relative to the largest one, 0 below 0."""
    return np.maximum(values / max(values[0], 1e-30), 0)


def _krylov_cycle(
    apply: Callable[[np.ndarray], np.ndarray], start: np.ndarray, *, depth: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """One cycle of block Krylov and Rayleigh-Ritz: (values, vectors, error of the first)."""
    basis: list[np.ndarray] = []
    images: list[np.ndarray] = []
    block = start
    for _ in range(depth):
        block = _orthonormal(block, basis)
        if block.shape[1] == 0:
            break  # the space is closed under A, so its eigenvectors are exact
        basis.append(block)
        block = apply(block)
        images.append(block)
    if not basis:  # A is zero up to rounding
        return np.zeros(1), start[:, :1], 0.0
    span, image = np.hstack(basis), np.hstack(images)
    projected = (span.T @ image).astype(np.float64)
    values, rotation = eigh((projected + projected.T) / 2)
    values, rotation = values[::-1], rotation[:, ::-1].astype(start.dtype)
    vectors = span @ rotation
    error = np.linalg.norm(image @ rotation[:, 0] - vectors[:, 0] * values[0])
    return values.astype(start.dtype), vectors, float(error)


def _orthonormal(block: np.ndarray, basis: list[np.ndarray]) -> np.ndarray:
    """An orthonormal basis of the part of `block` outside `basis`, without directions of rounding noise."""
    size = np.linalg.norm(block, axis=0).max()
    for earlier in basis * 2:  # orthogonalise twice: once is not enough in single precision
        block = block - earlier @ (earlier.T @ block)
    vectors, triangle, _ = qr(block, mode="economic", pivoting=True, check_finite=False)
    noise = 1e-4 if block.dtype == np.float32 else 1e-8
    return vectors[:, np.abs(np.diag(triangle)) > noise * size]


def spectral_starts(values: np.ndarray, vectors: np.ndarray, n_starts: int, rng: np.random.Generator) -> np.ndarray:
    """Initial sign vectors, (n, n_starts): the first from the top eigenspace, the others from all leading ones."""
    top = values >= values[0] - 1e-6 * abs(values[0])
    draws = rng.standard_normal((len(vectors), n_starts)).astype(vectors.dtype)
    starts = np.empty((len(vectors), n_starts), dtype=np.int8)
    starts[:, 0] = canonical_signs(vectors[:, top] @ (vectors[:, top].T @ draws[:, 0]))
    if n_starts > 1:
        mixed = vectors @ (_pull(values)[:, None] * (vectors.T @ draws[:, 1:]))
        starts[:, 1:] = np.stack([canonical_signs(column) for column in mixed.T], axis=1)
    return starts


def canonical_signs(vector: np.ndarray) -> np.ndarray:
    """Signs with the first item at +1, because v and -v are the same bit. Rounding noise around 0 counts as +1."""
    level = 1e-5 if vector.dtype == np.float32 else 1e-9
    signs = np.where(vector >= -level * np.abs(vector).max(initial=0), 1, -1).astype(np.int8)
    return signs * signs[0]  # HBMP Alg. 1, line 4
