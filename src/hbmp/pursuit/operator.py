"""Operators that the pursuit uses instead of an affinity: products with R and small blocks of R.

Small affinities are dense in double precision. Larger ones are dense in single precision on the chosen device if they
fit. Products with low-rank and very large ones are computed from labels or in blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.device import pick_device, to_numpy, to_torch
from hbmp.affinities import Affinity
from hbmp.affinities.precomputed import Precomputed

DOUBLE_ITEMS = 2048  # up to here R is dense float64: exact to rounding, the same codes with every BLAS
DENSE_BYTES = 4 * 2**30  # up to here R is dense float32


def as_operator(affinity: Any, device: str = "auto") -> DenseOperator | DeviceOperator | AffinityOperator:
    """The operator for an Affinity or a symmetric array, in the cheapest form that is exact."""
    if not isinstance(affinity, Affinity):
        affinity = Precomputed().fit(np.asarray(affinity))
    elif not hasattr(affinity, "n_items_"):
        raise ValueError(f"{affinity!r} is not fitted: call fit(X, y) before inferring codes from it.")
    n_items, device = affinity.n_items_, pick_device(device)
    if n_items <= DOUBLE_ITEMS:
        return DenseOperator(affinity, np.float64)
    if affinity.low_rank or 4 * n_items**2 > DENSE_BYTES:
        return AffinityOperator(affinity, device)
    return DenseOperator(affinity, np.float32) if device == "cpu" else DeviceOperator(affinity, device)


class DenseOperator:
    """R as a NumPy array, which reads the many small rows of a search a hundred times faster than torch."""

    dense = True
    steps_at_once = 4  # products that a search may spend on flipping many signs together; single flips are cheap here
    most_in_block = 1024  # items searched together

    def __init__(self, affinity: Affinity, dtype: Any) -> None:
        self.affinity, self.dtype = affinity, dtype
        self.n_items = affinity.n_items_
        self.values = np.ascontiguousarray(affinity.matrix(), dtype=dtype)
        if self.n_items <= DOUBLE_ITEMS:
            # In single precision R_ij and R_ji can differ in the last digit. Once all else is explained, a search
            # would cycle in that difference.
            self.values = (self.values + self.values.T) / 2

    def matmul(self, vectors: np.ndarray) -> np.ndarray:
        """R @ vectors."""
        product: np.ndarray = self.values @ vectors
        return product

    def times_columns(self, columns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """R[:, columns] @ vectors. R is symmetric, so whole rows are read."""
        return (vectors.T @ self.values[columns]).T

    def block(self, items: np.ndarray | slice) -> np.ndarray:
        """R at every pair of the given items."""
        return self.values[items, items] if isinstance(items, slice) else self.values[np.ix_(items, items)]

    def diagonal(self) -> np.ndarray:
        """R_ii."""
        return self.values.diagonal().astype(np.float64)

    def squared_norm(self, item_weights: np.ndarray) -> float:
        """Σ c_i c_j R_ij², in double precision."""
        rows = (np.square(row, dtype=np.float64) @ item_weights for row in self.values)
        return float(item_weights @ np.fromiter(rows, dtype=np.float64, count=self.n_items))


class DeviceOperator:
    """R as a single-precision matrix on a GPU. Vectors are passed and returned as arrays."""

    dtype = np.float32
    dense = False  # on this side
    steps_at_once = 20  # a product costs less than the transfers of a block
    most_in_block = 512

    def __init__(self, affinity: Affinity, device: str):
        import torch

        self.affinity, self.device, self.n_items = affinity, device, affinity.n_items_
        self.values = torch.empty((self.n_items, self.n_items), device=device)
        for rows in affinity.row_blocks():
            self.values[rows] = affinity.block_on(device, rows)

    def matmul(self, vectors: np.ndarray) -> np.ndarray:
        """R @ vectors."""
        return to_numpy(self.values @ self._send(vectors))

    def times_columns(self, columns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """R[:, columns] @ vectors. R is symmetric, so whole rows are read."""
        return to_numpy(self._send(vectors).T @ self.values[to_torch(columns, self.device)]).T

    def block(self, items: np.ndarray) -> np.ndarray:
        """R at every pair of the given items."""
        index = to_torch(items, self.device)
        return to_numpy(self.values[index[:, None], index])

    def diagonal(self) -> np.ndarray:
        """R_ii."""
        return to_numpy(self.values.diagonal()).astype(np.float64)

    def squared_norm(self, item_weights: np.ndarray) -> float:
        """Σ c_i c_j R_ij², in double precision, by blocks of rows."""
        weights = to_torch(item_weights.astype(np.float64), self.device)
        parts = [weights[rows] @ (self.values[rows].double().square() @ weights) for rows in self.affinity.row_blocks()]
        return float(sum(parts))

    def _send(self, vectors: np.ndarray) -> Any:
        return to_torch(np.ascontiguousarray(vectors, dtype=self.dtype), self.device)


class AffinityOperator:
    """R in blocks that the affinity computes, never as a whole."""

    dense = False
    steps_at_once = 30  # a product costs little next to a million single flips
    most_in_block = 2048

    def __init__(self, affinity: Affinity, device: str):
        self.affinity, self.dtype, self.device = affinity, np.float32, device
        self.n_items = affinity.n_items_

    def matmul(self, vectors: np.ndarray) -> np.ndarray:
        """R @ vectors."""
        return self.affinity.matmul(vectors, device=self.device)

    def times_columns(self, columns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """R[:, columns] @ vectors."""
        return self.affinity.times_columns(columns, vectors, device=self.device)

    def block(self, items: np.ndarray) -> np.ndarray:
        """R at every pair of the given items."""
        return self.affinity.block(items, items, device=self.device)

    def diagonal(self) -> np.ndarray:
        """R_ii."""
        return self.affinity.diagonal()

    def squared_norm(self, item_weights: np.ndarray) -> float:
        """Σ c_i c_j R_ij²."""
        return self.affinity.squared_norm(item_weights, device=self.device)
