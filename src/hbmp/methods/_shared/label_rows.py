"""Labels as the shallow methods read them: one row of 0/1 a sample, whether users gave classes or label sets."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hbmp._core.labels import as_classes, as_label_sets, is_label_matrix


def label_rows(y) -> np.ndarray:
    """(n, c) float32: one column a class, or the label sets as they are; at least two rows must differ."""
    if is_label_matrix(y) and (sparse.issparse(y) or np.shape(y)[1] > 1):
        rows = as_label_sets(y)
        if (rows == rows[0]).all():
            raise ValueError("y holds the same label set in every row; codes need at least two to tell apart.")
        return rows
    classes, class_of = np.unique(as_classes(y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only ({classes[0]}); codes need at least two to tell apart.")
    return np.eye(len(classes), dtype=np.float32)[class_of]
