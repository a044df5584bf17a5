"""The contract of every affinity: who should be close, said once, on the items that define it.

An affinity reduces instances to *items* (classes, distinct label sets, or the instances themselves) and is from
then on a symmetric operator R on items with values in [-1, 1]. It gives blocks of R, all of R, and products with
R; none but `matrix` needs memory beyond O(items x features).

    R      values       (items, items)
    F      features     (items, f)      what an item is, for this affinity: a label row, a vector, an index
    counts_             (items,)        how many instances stand behind an item
    item_of_            (instances,)    the item of each instance, the way back
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from hbmp._core.device import pick_device, threads_for, to_numpy, to_torch

_BLOCK_BYTES = 64 * 2**20  # one block of pair values; small enough for caches and for a shared GPU


class Affinity(BaseEstimator):
    """Base of all affinities: a subclass says what an item is and what two items mean to each other.

    A subclass defines `_reduce(X, y)`, which returns (features, item_of, counts), `_features(new)`, which gives
    the features of items met later, and `_values(a, b)`, the affinity of every pair, as torch tensors.
    """

    low_rank = False  # True where `matmul` needs no pairs, so that even a million items are cheap
    not_saved = ("item_of_",)

    def fit(self, X=None, y=None):
        """Reduce instances to items. X: (n, d) features or None; y: what `supervised` affinities read."""
        features, self.item_of_, self.counts_ = self._reduce(X, y)
        self.features_ = features
        self.n_items_ = len(self.counts_)
        self._on_device: dict[str, Any] = {}
        if self.n_items_ < 2:
            raise ValueError(
                f"{type(self).__name__} found {self.n_items_} item; a neighbourhood needs at least two different "
                "ones (two classes, two label sets, two instances)."
            )
        return self

    def _reduce(self, X, y):
        raise NotImplementedError

    def _features(self, new) -> np.ndarray:
        raise NotImplementedError

    def _values(self, a, b):
        raise NotImplementedError

    def find(self, new) -> np.ndarray:
        """The known item that equals each new one, or -1. Shape (m,)."""
        features = self._features(new)
        known = {row.tobytes(): index for index, row in enumerate(self.features_)}
        return np.array([known.get(row.tobytes(), -1) for row in features], dtype=np.int64)

    def cross(self, new, *, device: str = "auto") -> np.ndarray:
        """Affinities of m new items to all known ones. Shape (m, items), float32."""
        features = to_torch(self._features(new), pick_device(device))
        return to_numpy(self._values(features, self._tensor(device)))

    def block(self, rows=slice(None), columns=slice(None), *, device: str = "auto") -> np.ndarray:
        """The values of R at the given rows and columns (index arrays or slices), float32."""
        return to_numpy(self.block_on(pick_device(device), rows, columns))

    def block_on(self, device: str, rows=slice(None), columns=slice(None)):
        """The same as a tensor that stays on the device."""
        features = self._tensor(device)
        a, b = features[rows], features[columns]
        with threads_for(2 * a.numel() * len(b)):
            return self._values(a, b)

    def diagonal(self) -> np.ndarray:
        """R_ii of every item, float64."""
        step = 256
        blocks = (slice(start, start + step) for start in range(0, self.n_items_, step))
        return np.concatenate([np.diagonal(self.block(rows, rows)) for rows in blocks]).astype(np.float64)

    def matrix(self, *, device: str = "cpu") -> np.ndarray:
        """All of R, dense, float32; refused where it would not fit in memory."""
        needed = 4 * self.n_items_**2
        if needed > 0.8 * _available_memory():
            raise ValueError(
                f"The dense affinity of {self.n_items_:,} items takes {needed / 2**30:,.1f} GiB, more than this "
                "machine has free. Pass the affinity object itself to `infer_codes`, which works in blocks, or set "
                "`max_items` of HBMP."
            )
        out = np.empty((self.n_items_, self.n_items_), dtype=np.float32)
        for rows in self.row_blocks():
            out[rows] = self.block(rows, device=device)
        return out

    def matmul(self, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R @ vectors without R: in blocks of pairs. vectors: (items, k)."""
        features = self._tensor(device)
        right = to_torch(np.ascontiguousarray(vectors, dtype=np.float32), features.device)
        parts = [self._values(features[rows], features) @ right for rows in self.row_blocks()]
        return np.concatenate([to_numpy(part) for part in parts])

    def times_columns(self, columns: np.ndarray, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R[:, columns] @ vectors, for a few columns. vectors: (len(columns), k)."""
        features = self._tensor(device)
        right = to_torch(np.ascontiguousarray(vectors, dtype=np.float32), features.device)
        return to_numpy(self._values(features, features[columns]) @ right)

    def squared_norm(self, item_weights: np.ndarray, *, device: str = "auto") -> float:
        """Σ_ij c_i c_j R_ij², the squared size of R under item weights c. float64."""
        features = self._tensor(device)
        total = 0.0
        for rows in self.row_blocks():
            squares = to_numpy(self._values(features[rows], features) ** 2)
            total += float(item_weights[rows] @ (squares @ item_weights.astype(np.float32)).astype(np.float64))
        return total

    def _tensor(self, device: str):
        """The item features as a tensor, moved to the device once."""
        device = pick_device(device)
        if device not in self._on_device:
            self._on_device[device] = to_torch(self.features_, device)
        return self._on_device[device]

    def row_blocks(self) -> list[slice]:
        """Slices of rows such that one block of R, all columns, stays small."""
        step = max(1, _BLOCK_BYTES // (4 * self.n_items_))
        return [slice(start, min(start + step, self.n_items_)) for start in range(0, self.n_items_, step)]

    def after_load(self) -> None:
        """What a file does not hold."""
        self._on_device = {}

    def __getstate__(self):
        return {**super().__getstate__(), "_on_device": {}}


def need_labels(affinity: Affinity, y):
    """y, or one sentence that says why this affinity cannot do without."""
    if y is None:
        raise ValueError(f"{type(affinity).__name__} reads labels: pass y, or use affinity='distance_levels'.")
    return y


def each_instance(n: int):
    """(item_of, counts) where every instance is an item of its own."""
    return np.arange(n), np.ones(n, dtype=np.int64)


def _available_memory() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
