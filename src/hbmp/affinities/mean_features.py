"""Label affinity mixed with the similarity of mean features, so that classes that look alike get similar codes.

Codes inferred from labels alone put every class equally far from every other. A hash function then has to separate
similar classes by many bits. Here similar classes get similar codes, which are learned with fewer errors. Where one
class is still confused with another, their codes are close.

    R      base          (items, items)    the label affinity
    μ_l    means         (labels, d)       mean feature of the instances with label l, minus the overall mean
    m_i    directions    (items, r)        mean of the μ_l of item i's labels, as a unit vector
    s      share

                (1 - s) R_ij + s m_iᵀ m_j

Past the paper: docs/beyond-the-paper.md has the measurements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from hbmp._core.labels import as_array, as_classes, as_label_sets, has_label_sets
from hbmp.affinities._shared.around import Around
from hbmp.affinities._shared.base import Affinity, need_labels


class MeanFeatures(Around):
    """Label affinity mixed with the similarity of the items' mean features.

    Parameters
    ----------
    base : "auto", str or Affinity, default="auto"
        The label affinity, by name or as an object that reads labels. "auto" is `SameClass` for classes and
        `SharedLabels` for multi-label data.
    share : float, default=0.5
        Weight of feature similarity in the affinity, from 0 to 1.

    Attributes
    ----------
    base_ : Affinity
        The fitted base.
    means_ : ndarray of shape (n_labels, r)
        Mean feature of each label, in coordinates of their own span.
    classes_ : ndarray of shape (n_classes,) or None
        The classes in sorted order; None for multi-label data.

    Examples
    --------
    Cats and dogs have similar features here, ships do not:

    >>> from hbmp.affinities import MeanFeatures
    >>> X = [[1.0, 0.1], [1.0, -0.1], [-2.0, 0.0]]
    >>> MeanFeatures(share=0.4).fit(X, ["cat", "dog", "ship"]).matrix().round(2)
    array([[ 1.  , -0.21, -1.  ],
           [-0.21,  1.  , -1.  ],
           [-1.  , -1.  ,  1.  ]], dtype=float32)
    """

    def __init__(self, base: str | Affinity = "auto", *, share: float = 0.5):
        self.base = base
        self.share = share

    def _reduce(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        y = need_labels(self, y)
        if X is None:
            raise ValueError("MeanFeatures mixes labels with features: pass X, or use its base affinity alone.")
        y = y if sparse.issparse(y) else as_array(y)
        self._fit_base(X, y)
        self.classes_ = None if has_label_sets(y) else np.unique(as_classes(y))
        self.means_ = _label_means(np.asarray(X), self._label_rows(y), self._sample_weight)
        first = np.unique(self.base_.item_of_, return_index=True)[1]
        return self._joined(self.base_.features_, self._directions(y[first])), self.base_.item_of_, self.base_.counts_

    def matmul(self, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R @ vectors: the product of the base, and two products with the directions, so that no pairs are formed."""
        directions = self.features_[:, self.n_base_ :]
        alike = directions @ (directions.T @ vectors)
        return (1 - self.share) * self.base_.matmul(vectors, device=device) + self.share * alike

    def times_columns(self, columns: np.ndarray, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R[:, columns] @ vectors, without pairs as in `matmul`."""
        directions = self.features_[:, self.n_base_ :]
        alike = directions @ (directions[columns].T @ vectors)
        return (1 - self.share) * self.base_.times_columns(columns, vectors, device=device) + self.share * alike

    def _features(self, new: Any) -> np.ndarray:
        return self._joined(self.base_._features(new), self._directions(new))

    def _directions(self, labels: Any) -> np.ndarray:
        rows = self._label_rows(labels)
        means = rows @ self.means_ / np.maximum(rows.sum(axis=1), 1)[:, None]
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)

    def _label_rows(self, labels: Any) -> sparse.csr_array:
        """Labels as rows of 0/1. An unseen class has a row of zeros: its features resemble no other."""
        if self.classes_ is None:
            return sparse.csr_array(as_label_sets(labels))
        classes = as_classes(labels, "labels")
        at = np.searchsorted(self.classes_, classes).clip(max=len(self.classes_) - 1)
        known = (self.classes_[at] == classes).astype(np.float32)
        starts = np.arange(len(classes) + 1)
        return sparse.csr_array((known, at, starts), shape=(len(classes), len(self.classes_)))

    def _values(self, a: Any, b: Any) -> Any:
        at = self.n_base_
        alike = a[:, at:] @ b[:, at:].T
        return (1 - self.share) * self._base_values(a, b) + self.share * alike


def _label_means(X: np.ndarray, rows: sparse.csr_array, weights: np.ndarray | None) -> np.ndarray:
    """μ_l of every label, (labels, r), in coordinates of their own span, which keeps products narrow."""
    mean = X.mean(axis=0, dtype=np.float64) if weights is None else np.average(X, axis=0, weights=weights)
    if weights is not None:
        rows = rows.multiply(weights[:, None]).tocsr()
    counts = rows.sum(axis=0)[:, None]
    means = (rows.T @ X) / np.where(counts > 0, counts, 1) - mean
    left, sizes, _ = np.linalg.svd(means, full_matrices=False)
    return left * sizes
