"""Classes that are alike to a degree: R is a given class-by-class matrix."""

from __future__ import annotations

import numpy as np

from hbmp._core.device import to_torch
from hbmp._core.labels import as_classes
from hbmp.affinities._shared.base import Affinity, each_instance, need_labels
from hbmp.affinities.precomputed import check_affinity


class ClassSimilarity(Affinity):
    """A given similarity between classes. Items: the classes.

    Parameters
    ----------
    similarity : (classes, classes) symmetric array in [-1, 1]
        Row and column k belong to the k-th class in sorted order, or to `classes[k]`.
    classes : sequence, optional
        The class behind each row; needed where y does not hold every class.
    items : "classes" (default) or "instances"
    """

    def __init__(self, similarity=None, *, classes=None, items: str = "classes"):
        self.similarity = similarity
        self.classes = classes
        self.items = items

    def _reduce(self, X, y):
        if self.items not in ("classes", "instances"):
            raise ValueError(f"items must be 'classes' or 'instances', found {self.items!r}.")
        if self.similarity is None:
            raise ValueError("ClassSimilarity needs `similarity`, a class-by-class matrix in [-1, 1].")
        y = as_classes(need_labels(self, y))
        self.similarity_ = check_affinity(np.asarray(self.similarity)).astype(np.float32)
        self.classes_ = np.unique(y) if self.classes is None else np.asarray(self.classes)
        if len(self.classes_) != len(self.similarity_):
            raise ValueError(
                f"similarity has {len(self.similarity_)} rows but there are {len(self.classes_)} classes; "
                "name the class of each row with `classes`."
            )
        rows = self._features(y)
        if (rows < 0).any():
            missing = y[int(np.argmax(rows[:, 0] < 0))]
            raise ValueError(f"y holds class {missing!r}, which has no row in `similarity`.")
        if self.items == "instances":
            return (rows, *each_instance(len(rows)))
        counts = np.bincount(rows[:, 0], minlength=len(self.classes_))
        return np.arange(len(self.classes_))[:, None], rows[:, 0], counts

    def _features(self, new) -> np.ndarray:
        row_of = {value: row for row, value in enumerate(self.classes_.tolist())}
        found = [row_of.get(value, -1) for value in as_classes(new, "labels").tolist()]
        return np.array(found, dtype=np.int64).reshape(-1, 1)

    def _values(self, a, b):
        if bool((a < 0).any()):
            raise ValueError("A class without a row in `similarity` has no affinity; add it there and fit again.")
        table = to_torch(self.similarity_, a.device)
        return table[a[:, 0]][:, b[:, 0]]
