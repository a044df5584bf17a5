"""Labels as users have them, checked once: classes of any type, or rows of 0/1 labels, dense or sparse."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def is_label_matrix(y) -> bool:
    """Whether y holds label sets (one row of 0/1 an instance) rather than one class an instance."""
    return sparse.issparse(y) or np.ndim(y) == 2


def as_classes(y, name: str = "y") -> np.ndarray:
    """One class an instance, shape (n,), of any sortable type."""
    classes = np.asarray(y)
    if classes.ndim == 2 and classes.shape[1] == 1:
        classes = classes[:, 0]
    if classes.ndim != 1:
        raise ValueError(f"{name} must hold one class an instance, shape (n,); found shape {classes.shape}.")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ValueError(f"{name} holds NaN or infinity; every instance needs a class.")
    if classes.dtype == object:
        if any(value is None or (isinstance(value, float) and np.isnan(value)) for value in classes):
            raise ValueError(f"{name} holds missing values; every instance needs a class.")
        classes = classes.astype(str) if not _sortable(classes) else classes
    return classes


def as_label_sets(y, name: str = "y") -> np.ndarray:
    """Rows of 0/1 labels, shape (n, c), float32, dense."""
    dense = y.toarray() if sparse.issparse(y) else np.asarray(y)
    if dense.ndim != 2:
        raise ValueError(f"{name} must hold label sets, an (n, labels) matrix of 0 and 1; found shape {dense.shape}.")
    if dense.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold 0 and 1; found values of type {dense.dtype}.")
    wrong = dense[(dense != 0) & (dense != 1)]
    if wrong.size:
        raise ValueError(
            f"{name} is read as label sets, where every value is 0 or 1; found {wrong[0]!r}. "
            "For one class an instance pass a vector."
        )
    return np.ascontiguousarray(dense, dtype=np.float32)


def distinct_rows(rows: np.ndarray):
    """(distinct rows in sorted order, row of each instance, counts); packs the bits first, which sorts 10x faster."""
    packed = np.packbits(rows.astype(bool), axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return rows[first], inverse.reshape(-1), counts


def _sortable(classes: np.ndarray) -> bool:
    return len({type(value) for value in classes}) == 1
