"""Classes or label sets that look alike are a little closer: labels and mean features mixed in one affinity.

Codes inferred from labels alone put every class equally far from every other. A hash function then has to tell apart by
many bits what it can hardly tell apart at all. Here alike classes get alike codes, which are learned with fewer errors;
and where one class is still taken for another, it is for one whose code is near.

    R      base          (items, items)    what the labels say
    μ_l    means         (labels, d)       mean feature of the instances with label l, less the mean of all
    m_i    directions    (items, r)        mean of the μ_l of item i's labels, as a unit vector
    s      share

                (1 - s) R_ij + s m_iᵀ m_j

Past the paper. On 100 kinds of MS-COCO images, s = 0.5 lifts mAP at 16 / 32 bits from 0.278 / 0.347 to 0.347 / 0.413,
on VOC 2007 from 0.798 / 0.856 to 0.817 / 0.864; CIFAR-10 stays where it is (docs/beyond-the-paper.md).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hbmp._core.labels import as_array, as_classes, as_label_sets, has_label_sets
from hbmp.affinities._shared.around import Around
from hbmp.affinities._shared.base import need_labels


class MeanFeatures(Around):
    """What labels say, mixed with how alike the mean features of two items are. Items: those of `base`.

    Parameters
    ----------
    base : "auto" (classes: same_class, label sets: shared_labels), a name from `hbmp.affinities` or an object from
        there that reads labels
    share : how much the features say, 0 to 1
    """

    def __init__(self, base="auto", *, share: float = 0.5):
        self.base = base
        self.share = share

    def _reduce(self, X, y):
        y = need_labels(self, y)
        if X is None:
            raise ValueError("MeanFeatures mixes labels with features: pass X, or use its base affinity alone.")
        y = y if sparse.issparse(y) else as_array(y)
        self._fit_base(X, y)
        self.classes_ = None if has_label_sets(y) else np.unique(as_classes(y))
        self.means_ = _label_means(np.asarray(X), self._label_rows(y))
        first = np.unique(self.base_.item_of_, return_index=True)[1]
        return self._joined(self.base_.features_, self._directions(y[first])), self.base_.item_of_, self.base_.counts_

    def matmul(self, vectors, *, device="auto"):
        """R @ vectors: the base's own way, and the directions twice, so that no pair of directions is formed."""
        directions = self.features_[:, self.n_base_ :]
        alike = directions @ (directions.T @ vectors)
        return (1 - self.share) * self.base_.matmul(vectors, device=device) + self.share * alike

    def times_columns(self, columns, vectors, *, device="auto"):
        """R[:, columns] @ vectors the same way."""
        directions = self.features_[:, self.n_base_ :]
        alike = directions @ (directions[columns].T @ vectors)
        return (1 - self.share) * self.base_.times_columns(columns, vectors, device=device) + self.share * alike

    def _features(self, new) -> np.ndarray:
        return self._joined(self.base_._features(new), self._directions(new))

    def _directions(self, labels) -> np.ndarray:
        rows = self._label_rows(labels)
        means = rows @ self.means_ / np.maximum(rows.sum(axis=1), 1)[:, None]
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)

    def _label_rows(self, labels) -> sparse.csr_array:
        """Labels as rows of 0/1; a class never seen has none, so that it looks like no other."""
        if self.classes_ is None:
            return sparse.csr_array(as_label_sets(labels))
        classes = as_classes(labels, "labels")
        at = np.searchsorted(self.classes_, classes).clip(max=len(self.classes_) - 1)
        known = (self.classes_[at] == classes).astype(np.float32)
        starts = np.arange(len(classes) + 1)
        return sparse.csr_array((known, at, starts), shape=(len(classes), len(self.classes_)))

    def _values(self, a, b):
        at = self.n_base_
        alike = a[:, at:] @ b[:, at:].T
        return (1 - self.share) * self._base_values(a, b) + self.share * alike


def _label_means(X: np.ndarray, rows: sparse.csr_array) -> np.ndarray:
    """μ_l of every label, (labels, r): in coordinates of their own span, so that no product is wider than need be."""
    counts = np.maximum(rows.sum(axis=0), 1)[:, None]
    means = (rows.T @ X) / counts - X.mean(axis=0, dtype=np.float64)
    left, sizes, _ = np.linalg.svd(means, full_matrices=False)
    return left * sizes
