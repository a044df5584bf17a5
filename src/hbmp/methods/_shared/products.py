"""Sums over samples in double precision, a block of rows at a time, so that no second copy of the data is made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_ROWS = 8192


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Slices that cover the rows in order."""
    for start in range(0, n_rows, _ROWS):
        yield slice(start, min(start + _ROWS, n_rows))


def gram(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """leftᵀ right, (n, p) and (n, q) to (p, q), float64."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for rows in row_blocks(len(left)):
        part = left[rows].astype(np.float64)
        total += part.T @ (part if right is left else right[rows].astype(np.float64))
    return total
