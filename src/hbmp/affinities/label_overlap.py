"""Affinity grows with the number of shared labels: R_ij = 2 |i ∩ j| / m - 1, where m is the most labels of an item.

This is the multi-level neighbourhood of NUS-WIDE in the paper. As in the released code, it is scaled by the largest
overlap, which lies on the diagonal.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from hbmp.affinities._shared.labelled import LabelSets


class LabelOverlap(LabelSets):
    """Number of shared labels, scaled to [-1, 1].

    Parameters
    ----------
    items : {"label-sets", "instances"}, default="label-sets"
        What gets a target code: every distinct label row, or every instance.

    Attributes
    ----------
    n_labels_ : int
        Number of labels.
    largest_ : float
        The most labels that one training item has.

    See Also
    --------
    SharedLabels : Affinity with two levels.

    Examples
    --------
    >>> from hbmp.affinities import LabelOverlap
    >>> LabelOverlap().fit(y=[[1, 1, 0], [0, 1, 1], [0, 0, 1]]).matrix()
    array([[ 0.,  0., -1.],
           [ 0.,  1.,  0.],
           [-1.,  0.,  1.]], dtype=float32)
    """

    low_rank = True

    def fit(self, X: Any = None, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Reduce multi-label rows to distinct ones and store the largest number of labels."""
        super().fit(X, y, sample_weight=sample_weight)
        self.largest_ = max(1.0, float(self.features_.sum(axis=1).max()))
        return self

    def _values(self, a: Any, b: Any) -> Any:
        # A new item may have more labels than any training item; its affinity stays in range.
        return (a @ b.T * (2 / self.largest_) - 1).clip(max=1)

    def diagonal(self) -> np.ndarray:
        """R_ii, from the number of labels of each item."""
        return self.features_.sum(axis=1, dtype=np.float64) * (2 / self.largest_) - 1

    def matmul(self, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R @ vectors through the labels: (2/m) Y (Yᵀ vectors) - 1 1ᵀ vectors."""
        labels = self._labels(vectors.dtype)
        return labels @ (labels.T @ vectors * (2 / self.largest_)) - vectors.sum(axis=0)

    def times_columns(self, columns: np.ndarray, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R[:, columns] @ vectors through the labels."""
        labels = self._labels(vectors.dtype)
        return labels @ (labels[columns].T @ vectors * (2 / self.largest_)) - vectors.sum(axis=0)

    def squared_norm(self, item_weights: np.ndarray, *, device: str = "auto") -> float:
        """Σ_ij c_i c_j R_ij² from the co-occurrence of labels, without pairs."""
        labels, scale = self._labels(np.float64), 2 / self.largest_
        together = (labels.T @ labels.multiply(item_weights[:, None])).toarray()  # (labels, labels)
        by_label = labels.T @ item_weights
        return float(scale**2 * (together**2).sum() - 2 * scale * (by_label**2).sum() + item_weights.sum() ** 2)

    def _labels(self, dtype: Any) -> Any:
        if self._on_device.get("labels") is None:
            self._on_device["labels"] = sparse.csr_matrix(self.features_)
        return self._on_device["labels"].astype(dtype, copy=False)
