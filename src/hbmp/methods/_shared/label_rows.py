"""Labels as rows of 0/1, one per sample, from classes or multi-label data; used by the shallow methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from hbmp._core.labels import as_classes, as_label_sets, is_label_matrix


def label_rows(y: Any) -> np.ndarray:
    """(n, c) float32: one column per class, or the given 0/1 rows. At least two rows must differ."""
    if is_label_matrix(y) and (sparse.issparse(y) or np.shape(y)[1] > 1):
        rows = as_label_sets(y)
        if (rows == rows[0]).all():
            raise ValueError("y holds the same labels in every row; codes need at least two different rows.")
        return rows
    classes, class_of = np.unique(as_classes(y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds only one class ({classes[0]}); codes need at least two classes.")
    return np.eye(len(classes), dtype=np.float32)[class_of]
