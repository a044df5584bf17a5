"""Checks of labels in the forms users have: classes of any type, or rows of 0/1 labels, dense or sparse."""

from __future__ import annotations

import numpy as np
from scipy import sparse

_MISSING = ("NoneType", "NAType", "NaTType")
_SEVERAL = "for several labels per instance pass the 0/1 matrix from sklearn.preprocessing.MultiLabelBinarizer."


def is_label_matrix(y) -> bool:
    """Whether y is multi-label (one row of 0/1 per instance) instead of one class per instance."""
    return sparse.issparse(y) or np.ndim(y) == 2


def has_label_sets(y) -> bool:
    """Whether y is a label matrix of several columns. One column holds classes."""
    return is_label_matrix(y) and y.shape[1] > 1


def as_array(y, name: str = "y") -> np.ndarray:
    """Labels as an array. Raises ValueError for sequences of unequal length."""
    try:
        return np.asarray(y)
    except ValueError as error:
        raise ValueError(f"{name} holds sequences of unequal length; {_SEVERAL}") from error


def as_targets(y) -> tuple[np.ndarray | sparse.spmatrix | sparse.sparray, np.ndarray | None]:
    """(labels as arrays, names of the columns): classes (n,), rows of 0/1, or lists of label names made into such rows.

    A column of a table, also one of a DataFrame, holds classes.
    """
    if sparse.issparse(y):
        return y, None
    if are_label_lists(y):
        names = label_names_in(y)
        return as_label_rows(y, names), names
    found = as_array(y)
    return (found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found), None


def label_names_in(*several) -> np.ndarray:
    """The sorted names in lists of label names."""
    return np.unique([str(label) for label_lists in several for labels in label_lists for label in labels])


def as_label_rows(label_lists, names: np.ndarray, what: str = "y") -> np.ndarray:
    """Lists of label names as rows of 0/1, one column for each of the sorted `names`."""
    rows = np.zeros((len(label_lists), len(names)), dtype=np.float32)
    column = {name: position for position, name in enumerate(names.tolist())}
    for row, labels in zip(rows, label_lists, strict=True):
        unknown = [label for label in labels if str(label) not in column]
        if unknown:
            raise ValueError(f"{what} contains the label {unknown[0]!r}, which training data do not have.")
        row[[column[str(label)] for label in labels]] = 1
    return rows


def are_label_lists(y) -> bool:
    """Whether y is a sequence of collections of label names: a list, or a column of an array or of a table."""
    column = getattr(y, "ndim", 0) == 1 and str(getattr(y, "dtype", "")) == "object"
    if not column and not isinstance(y, (list, tuple)):
        return False
    if not all(
        isinstance(row, (list, tuple, set, frozenset, np.ndarray)) and getattr(row, "ndim", 1) == 1 for row in y
    ):
        return False
    return any(isinstance(label, str) for row in y for label in row)


def as_classes(y, name: str = "y") -> np.ndarray:
    """One class per instance, shape (n,), of any sortable type."""
    classes = as_array(y, name)
    if classes.ndim == 2 and classes.shape[1] == 1:
        classes = classes[:, 0]
    if classes.ndim != 1:
        raise ValueError(f"{name} must hold one class per instance, shape (n,); found shape {classes.shape}.")
    if classes.dtype.kind in "fc" and not np.isfinite(classes).all():
        raise ValueError(f"{name} holds NaN or infinity; every instance needs a class.")
    if classes.dtype.kind == "f" and (classes != np.trunc(classes)).any():
        raise ValueError(f"Unknown label type: {name} is continuous, for example {_fraction(classes)}. Pass classes.")
    if classes.dtype.kind in "mMOT" and _any_missing(classes):
        raise ValueError(f"{name} holds missing values; every instance needs a class.")
    if classes.dtype == object:
        if any(isinstance(value, (set, frozenset, list, tuple, dict)) for value in classes):
            raise ValueError(f"{name} holds collections such as {classes[0]!r}; {_SEVERAL}")
        return classes.astype(str) if not _sortable(classes) else classes
    return classes.astype(object) if classes.dtype.kind == "T" else classes


def as_label_sets(y, name: str = "y") -> np.ndarray:
    """Rows of 0/1 labels, shape (n, c), float32, dense."""
    dense = y.toarray() if sparse.issparse(y) else as_array(y, name)
    if dense.ndim != 2:
        raise ValueError(
            f"{name} must be multi-label data, an (n, labels) matrix of 0 and 1; found shape {dense.shape}."
        )
    refuse_words(dense, name)
    wrong = dense[(dense != 0) & (dense != 1)]
    if wrong.size:
        raise ValueError(
            f"{name} is read as multi-label data, where every value is 0 or 1; found {wrong[0]}. "
            "For one class per instance pass a vector."
        )
    return np.ascontiguousarray(dense, dtype=np.float32)


def refuse_words(matrix, name: str = "y") -> None:
    """Raise ValueError for label matrices of words instead of numbers."""
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold 0 and 1; found values of type {matrix.dtype}: {_SEVERAL}")


def distinct_rows(rows: np.ndarray):
    """(distinct rows in sorted order, row of each instance, counts). Packed bits are sorted, which is 10x faster."""
    packed = np.packbits(rows.astype(bool), axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return rows[first], inverse.reshape(-1), counts


def _fraction(values: np.ndarray) -> float:
    return float(values[values != np.trunc(values)][0])


def _sortable(classes: np.ndarray) -> bool:
    return len({type(value) for value in classes}) == 1


def _any_missing(classes: np.ndarray) -> bool:
    """Whether a value is None, NaN, NaT, or a missing value of pandas, which need not be installed."""
    if classes.dtype.kind in "mM":
        return bool(np.isnat(classes).any())
    floats = [value for value in classes if isinstance(value, float)]
    return bool(np.isnan(floats).any()) or any(type(value).__name__ in _MISSING for value in classes)
