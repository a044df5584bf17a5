"""Neighbours are of one class: R_ij = +1 within a class, -1 across (CIFAR-10 and ImageNet100 in the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.device import as_float32
from hbmp._core.labels import as_classes, is_label_matrix
from hbmp.affinities._shared.base import Affinity, each_instance, need_labels


class SameClass(Affinity):
    """Affinity of +1 within a class and -1 across classes.

    Parameters
    ----------
    items : {"classes", "instances"}, default="classes"
        What gets a target code. "instances" is the approach of two-stage methods before the paper (its Fig. 1 b).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in sorted order.

    See Also
    --------
    SharedLabels : The same for multi-label data.

    Examples
    --------
    >>> from hbmp.affinities import SameClass
    >>> affinity = SameClass().fit(y=["cat", "dog", "cat"])
    >>> affinity.classes_
    array(['cat', 'dog'], dtype='<U3')
    >>> affinity.matrix()
    array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """

    low_rank = True

    def __init__(self, *, items: str = "classes"):
        self.items = items

    def _reduce(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.items not in ("classes", "instances"):
            raise ValueError(f"items must be 'classes' or 'instances', found {self.items!r}.")
        y = need_labels(self, y)
        if is_label_matrix(y) and np.shape(y)[1] != 1:
            raise ValueError(
                f"SameClass needs one class per instance, shape (n,); found shape {np.shape(y)}. "
                "For multi-label data use affinity='shared_labels' or 'label_overlap'."
            )
        self.classes_, codes, counts = np.unique(as_classes(y), return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds only one class ({self.classes_[0]}); codes need at least two classes.")
        if self.items == "instances":
            return (codes.astype(np.int64)[:, None], *each_instance(len(codes)))
        return np.arange(len(self.classes_))[:, None], codes, counts

    def _features(self, new: Any) -> np.ndarray:
        classes = as_classes(new, "labels")
        if (classes.dtype.kind in "OSU") != (self.classes_.dtype.kind in "OSU"):
            known, given = self.classes_[:1].tolist(), classes[:1].tolist()
            raise ValueError(f"The affinity was fitted on classes like {known[0]!r}; found {given[0]!r}.")
        at = np.searchsorted(self.classes_, classes).clip(max=len(self.classes_) - 1)
        return np.where(self.classes_[at] == classes, at, -1 - np.arange(len(classes)))[:, None]

    def _values(self, a: Any, b: Any) -> Any:
        return as_float32(a == b.T) * 2 - 1

    def diagonal(self) -> np.ndarray:
        """R_ii, which is 1."""
        return np.ones(self.n_items_)

    def matmul(self, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R @ vectors through the sums of each class."""
        sums = self._class_sums(self.features_[:, 0], vectors)
        return 2 * sums[self.features_[:, 0]] - sums.sum(axis=0)

    def times_columns(self, columns: np.ndarray, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R[:, columns] @ vectors through the sums of each class."""
        sums = self._class_sums(self.features_[columns, 0], vectors)
        return 2 * sums[self.features_[:, 0]] - sums.sum(axis=0)

    def squared_norm(self, item_weights: np.ndarray, *, device: str = "auto") -> float:
        """Σ_ij c_i c_j R_ij², where all values are ±1."""
        return float(item_weights.sum() ** 2)

    def _class_sums(self, classes: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        sums = [np.bincount(classes, column, minlength=len(self.classes_)) for column in vectors.T]
        return np.stack(sums, axis=1).astype(vectors.dtype)
