"""Classes with graded similarity: R is a given class-by-class matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hbmp._core.device import send
from hbmp._core.labels import as_classes
from hbmp.affinities._shared.base import Affinity, each_instance, need_labels
from hbmp.affinities.precomputed import check_affinity


class ClassSimilarity(Affinity):
    """Affinity from a given similarity between classes.

    Parameters
    ----------
    similarity : array-like of shape (n_classes, n_classes)
        Symmetric, with values in [-1, 1]. Row and column k belong to the k-th class in sorted order, or to
        `classes[k]`.
    classes : sequence, optional
        The class of each row. Needed if y does not hold every class.
    items : {"classes", "instances"}, default="classes"
        What gets a target code.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class of each row of `similarity_`.
    similarity_ : ndarray of shape (n_classes, n_classes), float32
        The checked similarity.

    Examples
    --------
    >>> from hbmp.affinities import ClassSimilarity
    >>> similarity = [[1, 0.5, -1], [0.5, 1, -1], [-1, -1, 1]]
    >>> affinity = ClassSimilarity(similarity, classes=["cat", "dog", "ship"]).fit(y=["dog", "cat", "ship"])
    >>> affinity.cross(["dog"])
    array([[ 0.5,  1. , -1. ]], dtype=float32)
    """

    def __init__(self, similarity: ArrayLike | None = None, *, classes: Any = None, items: str = "classes"):
        self.similarity = similarity
        self.classes = classes
        self.items = items

    def _reduce(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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

    def _features(self, new: Any) -> np.ndarray:
        row_of = {value: row for row, value in enumerate(self.classes_.tolist())}
        found = [row_of.get(value, -1) for value in as_classes(new, "labels").tolist()]
        return np.array(found, dtype=np.int64).reshape(-1, 1)

    def _values(self, a: Any, b: Any) -> Any:
        if bool((a < 0).any()):
            raise ValueError("A class without a row in `similarity` has no affinity; add it there and fit again.")
        table = send(self.similarity_, a.device)
        return table[a[:, 0]][:, b[:, 0]]
