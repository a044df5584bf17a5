"""Labels of items: one class each, or a row of 0 and 1 for multi-label data, as values that SQLite keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Form = dict[str, Any]  # {"kind": "classes", "type": dtype} or {"kind": "rows", "size": number of labels}


def as_labels(labels: ArrayLike, n: int) -> NDArray[Any]:
    """Labels as an array, (n,) or (n, n_labels)."""
    found = np.asarray(labels)
    if found.ndim not in (1, 2) or len(found) != n:
        raise ValueError(f"There are {n} rows but {len(found) if found.ndim else 1} labels; every row needs its label.")
    return found.astype(str) if found.dtype == object else found


def form_of(labels: NDArray[Any]) -> Form:
    """The form of an array of labels."""
    if labels.ndim == 2:
        return {"kind": "rows", "size": labels.shape[1], "type": "uint8" if labels.dtype.kind in "iub" else "float32"}
    return {"kind": "classes", "type": "str" if labels.dtype.kind == "U" else labels.dtype.name}


def check_form(known: Form | None, labels: NDArray[Any] | None, items: int) -> Form | None:
    """The form of a database's labels when items with these labels come."""
    if labels is None:
        if known is not None and items:
            raise ValueError("The items of this database have labels: pass one label per row (labels=…, --labels).")
        return known
    new = form_of(labels)
    if not items:
        return new
    if known is None:
        raise ValueError("The items of this database have no labels; leave labels out, or build it again with labels.")
    if (known["kind"], known.get("size")) != (new["kind"], new.get("size")):
        raise ValueError(f"The labels of this database are {_words(known)}, found {_words(new)}.")
    if known["kind"] == "classes" and (known["type"] == "str") != (new["type"] == "str"):
        raise ValueError(f"The classes of this database are of type {known['type']}, found {new['type']}.")
    if known["kind"] == "classes" and known["type"] != "str":
        return {"kind": "classes", "type": np.result_type(known["type"], new["type"]).name}
    return known


def stored(labels: NDArray[Any] | None, n: int) -> list[Any]:
    """One value per row for SQLite."""
    if labels is None:
        return [None] * n
    if labels.ndim == 1:
        return list(labels.astype(np.int64).tolist() if labels.dtype.kind in "bu" else labels.tolist())
    return [row.tobytes() for row in np.packbits(labels != 0, axis=1, bitorder="little")]


def restored(values: Sequence[Any], form: Form) -> NDArray[Any]:
    """The inverse of `stored`."""
    if form["kind"] == "classes":
        return np.array(values, dtype=form["type"]) if values else np.empty(0, form["type"])
    packed = np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -(-form["size"] // 8))
    return np.unpackbits(packed, axis=1, count=form["size"], bitorder="little").astype(form["type"])


def as_text(value: Any, form: Form, names: Sequence[str]) -> str | None:
    """A stored label as text; several are joined, ``sea;sand``."""
    if value is None:
        return None
    (label,) = restored([value], form)
    if form["kind"] == "classes":
        return str(label)
    words = names or [str(column) for column in range(form["size"])]
    return ";".join(words[column] for column in np.flatnonzero(label).tolist())


def _words(form: Form) -> str:
    return "classes" if form["kind"] == "classes" else f"rows of {form['size']} labels"
