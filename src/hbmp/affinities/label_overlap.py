"""The more labels in common the closer: R_ij = 2 |i ∩ j| / m - 1, m the largest label set.

This is the paper's multi-level neighbourhood of NUS-WIDE ("the number of common labels"), scaled as in the
released code by the largest overlap, which is reached on the diagonal.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hbmp.affinities._shared.labelled import LabelSets


class LabelOverlap(LabelSets):
    """Number of shared labels, scaled to [-1, 1]. Items: the distinct label sets.

    Parameters
    ----------
    items : "label-sets" (default) or "instances"
    """

    low_rank = True

    def fit(self, X=None, y=None):
        """Reduce label rows to distinct sets and remember the largest one."""
        super().fit(X, y)
        self.largest_ = max(1.0, float(self.features_.sum(axis=1).max()))
        return self

    def _values(self, a, b):
        # A set met later may be larger than all before it: its affinity stays in range.
        return (a @ b.T * (2 / self.largest_) - 1).clamp(max=1)

    def diagonal(self) -> np.ndarray:
        """R_ii, from the size of each label set."""
        return self.features_.sum(axis=1, dtype=np.float64) * (2 / self.largest_) - 1

    def matmul(self, vectors, *, device="auto"):
        """R @ vectors through the labels: (2/m) Y (Yᵀ vectors) - 1 1ᵀ vectors."""
        labels = self._labels(vectors.dtype)
        return labels @ (labels.T @ vectors * (2 / self.largest_)) - vectors.sum(axis=0)

    def times_columns(self, columns, vectors, *, device="auto"):
        """R[:, columns] @ vectors through the labels."""
        labels = self._labels(vectors.dtype)
        return labels @ (labels[columns].T @ vectors * (2 / self.largest_)) - vectors.sum(axis=0)

    def squared_norm(self, item_weights, *, device="auto"):
        """Σ c_i c_j R_ij² from the labels' co-occurrence, without pairs."""
        labels, scale = self._labels(np.float64), 2 / self.largest_
        together = (labels.T @ labels.multiply(item_weights[:, None])).toarray()  # (labels, labels)
        by_label = labels.T @ item_weights
        return float(scale**2 * (together**2).sum() - 2 * scale * (by_label**2).sum() + item_weights.sum() ** 2)

    def _labels(self, dtype):
        if self._on_device.get("labels") is None:
            self._on_device["labels"] = sparse.csr_matrix(self.features_)
        return self._on_device["labels"].astype(dtype, copy=False)
