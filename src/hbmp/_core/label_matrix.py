"""Lists of label names as an (n, c) matrix of 0 and 1."""

from __future__ import annotations

import numpy as np


def matrix_of(label_lists) -> tuple[np.ndarray, tuple[str, ...]]:
    """(matrix (n, c) uint8, the c names in sorted order) for one list of names per item; lists may be empty."""
    label_names = tuple(sorted({str(label) for labels in label_lists for label in labels}))
    column_of = {label: column for column, label in enumerate(label_names)}
    matrix = np.zeros((len(label_lists), len(label_names)), dtype=np.uint8)
    for row, labels in enumerate(label_lists):
        matrix[row, [column_of[str(label)] for label in labels]] = 1
    return matrix, label_names
