"""The relaxed step (Eq. 7): the top of the residual's spectrum, and sign vectors to start a search from.

The top eigenvalue of a class affinity is (C-1)-fold, so *the* eigenvector is whatever a library returns. Starts
are therefore projections of seeded random vectors onto the eigenspace, which do not depend on its basis.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, qr

DENSE_ITEMS = 512  # up to here a full eigendecomposition costs less than iterating
_SIZE = 4  # eigenvectors kept


class Eigenspace:
    """The leading eigenvectors of a residual that changes a little from bit to bit, each time from the last ones."""

    def __init__(self, n_items: int, dtype, rng: np.random.Generator, *, exact: bool):
        self.exact = exact  # a start of a search need not be: one shallow cycle from the last vectors does
        self.dense = n_items <= DENSE_ITEMS
        self.vectors = rng.standard_normal((n_items, min(_SIZE, n_items))).astype(dtype)

    def update(self, apply) -> tuple[np.ndarray, np.ndarray]:
        """(values, vectors) of the residual `apply`, largest first; all of them for small problems."""
        if self.dense:
            matrix = apply(np.eye(len(self.vectors), dtype=self.vectors.dtype))
            values, vectors = eigh((matrix + matrix.T) / 2)
            return values[::-1], vectors[:, ::-1]
        if not self.exact:
            values, self.vectors, _ = _krylov_cycle(apply, self.vectors, depth=2)
            return values, self.vectors
        for _ in range(20):
            values, self.vectors, error = _krylov_cycle(apply, self.vectors, depth=8)
            if error <= 1e-3 * max(abs(values[0]), 1e-30):
                break
        return values, self.vectors


def _krylov_cycle(apply, start: np.ndarray, *, depth: int) -> tuple[np.ndarray, np.ndarray, float]:
    """One cycle of block Krylov and Rayleigh-Ritz: (values, better vectors, error of the first)."""
    basis: list[np.ndarray] = []
    images: list[np.ndarray] = []
    block = start
    for _ in range(depth):
        for earlier in basis * 2:  # orthogonalise twice: once is not enough in single precision
            block = block - earlier @ (earlier.T @ block)
        block = qr(block, mode="economic", check_finite=False)[0]
        basis.append(block)
        block = apply(block)
        images.append(block)
    span, image = np.hstack(basis), np.hstack(images)
    projected = (span.T @ image).astype(np.float64)
    values, rotation = eigh((projected + projected.T) / 2)
    best = rotation[:, ::-1][:, : start.shape[1]].astype(start.dtype)
    vectors = span @ best
    error = np.linalg.norm(image @ best[:, 0] - vectors[:, 0] * values[-1])
    return values[::-1][: start.shape[1]], vectors, float(error)


def spectral_starts(values, vectors, n_starts: int, rng: np.random.Generator) -> np.ndarray:
    """Sign vectors to start from, (n, n_starts): the first from the top eigenspace, the others from around it."""
    top = values >= values[0] - 1e-6 * abs(values[0])
    draws = rng.standard_normal((len(vectors), n_starts)).astype(vectors.dtype)
    starts = np.empty((len(vectors), n_starts), dtype=np.int8)
    starts[:, 0] = canonical_signs(vectors[:, top] @ (vectors[:, top].T @ draws[:, 0]))
    if n_starts > 1:
        positive = values > 0
        pull = (values[positive] / values[0]).astype(vectors.dtype)
        mixed = vectors[:, positive] @ (pull[:, None] * (vectors[:, positive].T @ draws[:, 1:]))
        starts[:, 1:] = np.stack([canonical_signs(column) for column in mixed.T], axis=1)
    return starts


def canonical_signs(vector: np.ndarray) -> np.ndarray:
    """Signs with the first item at +1: v and -v are the same bit, and rounding noise around 0 counts as +1."""
    level = 1e-5 if vector.dtype == np.float32 else 1e-9
    signs = np.where(vector >= -level * np.abs(vector).max(initial=0), 1, -1).astype(np.int8)
    return signs * signs[0]
