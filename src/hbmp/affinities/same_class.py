"""Neighbours are of one class: R_ij = +1 within a class, -1 across (the paper's CIFAR-10 and ImageNet100)."""

from __future__ import annotations

import numpy as np

from hbmp._core.labels import as_classes, is_label_matrix
from hbmp.affinities._shared.base import Affinity, each_instance, need_labels


class SameClass(Affinity):
    """+1 within a class, -1 across classes. Items: the classes.

    Parameters
    ----------
    items : "classes" (default) or "instances"
        On what the codes are inferred. Instances is what methods before the paper did (its Fig. 1 b).
    """

    low_rank = True

    def __init__(self, *, items: str = "classes"):
        self.items = items

    def _reduce(self, X, y):
        if self.items not in ("classes", "instances"):
            raise ValueError(f"items must be 'classes' or 'instances', found {self.items!r}.")
        y = need_labels(self, y)
        if is_label_matrix(y) and np.shape(y)[1] != 1:
            raise ValueError(
                f"SameClass reads one class an instance, shape (n,); found shape {np.shape(y)}. "
                "For label sets use affinity='shared_labels' or 'label_overlap'."
            )
        self.classes_, codes, counts = np.unique(as_classes(y), return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]}); codes need at least two to tell apart.")
        if self.items == "instances":
            return (codes.astype(np.int64)[:, None], *each_instance(len(codes)))
        return np.arange(len(self.classes_))[:, None], codes, counts

    def _features(self, new) -> np.ndarray:
        classes = as_classes(new, "labels")
        if (classes.dtype.kind in "OSU") != (self.classes_.dtype.kind in "OSU"):
            known, asked = self.classes_[:1].tolist(), classes[:1].tolist()
            raise ValueError(f"The affinity knows classes like {known[0]!r}; found {asked[0]!r}.")
        at = np.searchsorted(self.classes_, classes).clip(max=len(self.classes_) - 1)
        return np.where(self.classes_[at] == classes, at, -1 - np.arange(len(classes)))[:, None]

    def _values(self, a, b):
        return (a == b.T).float() * 2 - 1

    def diagonal(self) -> np.ndarray:
        """Every item is of its own class."""
        return np.ones(self.n_items_)

    def matmul(self, vectors, *, device="auto"):
        """R @ vectors through the sums of each class."""
        sums = self._class_sums(self.features_[:, 0], vectors)
        return 2 * sums[self.features_[:, 0]] - sums.sum(axis=0)

    def times_columns(self, columns, vectors, *, device="auto"):
        """R[:, columns] @ vectors through the sums of each class."""
        sums = self._class_sums(self.features_[columns, 0], vectors)
        return 2 * sums[self.features_[:, 0]] - sums.sum(axis=0)

    def squared_norm(self, item_weights, *, device="auto"):
        """All values are ±1."""
        return float(item_weights.sum() ** 2)

    def _class_sums(self, classes, vectors):
        sums = [np.bincount(classes, column, minlength=len(self.classes_)) for column in vectors.T]
        return np.stack(sums, axis=1).astype(vectors.dtype)
