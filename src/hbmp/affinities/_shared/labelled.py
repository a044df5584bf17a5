"""Reduction of multi-label data to distinct label rows, shared by two affinities."""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.labels import as_label_sets, distinct_rows, is_label_matrix
from hbmp.affinities._shared.base import Affinity, each_instance, need_labels


class LabelSets(Affinity):
    """Affinity whose items are the distinct rows of a 0/1 label matrix, or every row with `items="instances"`."""

    def __init__(self, *, items: str = "label-sets"):
        self.items = items

    def _reduce(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.items not in ("label-sets", "instances"):
            raise ValueError(f"items must be 'label-sets' or 'instances', found {self.items!r}.")
        labels = as_label_sets(self._rows(need_labels(self, y)))
        self.n_labels_ = labels.shape[1]
        return (labels, *each_instance(len(labels))) if self.items == "instances" else distinct_rows(labels)

    def _features(self, new: Any) -> np.ndarray:
        labels = as_label_sets(new, "labels")
        if labels.shape[1] != self.n_labels_:
            raise ValueError(f"The affinity was fitted on {self.n_labels_} labels; found rows of {labels.shape[1]}.")
        return labels

    def _rows(self, y: Any) -> Any:
        if not is_label_matrix(y):
            raise ValueError(
                f"{type(self).__name__} needs multi-label data, an (n, labels) matrix of 0 and 1; found shape "
                f"{np.shape(y)}. For one class per instance use affinity='same_class'."
            )
        return y
