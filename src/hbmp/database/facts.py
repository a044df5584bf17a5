"""The facts of a database, checked as they are read: every type, name and size that later code relies on.

ids           "int", "text" or None while there are no items       next     number of the next item
columns       kinds of the payload's columns by name               vectors  kind and dimension, or None
labels        form of the labels, or None                          images   places of the folder of files, or None
label_names   names of label columns                               source   where the items come from
"""

from __future__ import annotations

from typing import Any

from hbmp.database import vectors
from hbmp.database.payload import KINDS

_WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_CLASSES = ("str", "bool", "float16", "float32", "float64", *_WHOLE)
_MOST_LABELS = 1 << 24
_MOST_FEATURES = 1 << 24
_TEXTS = (type(None), str)


def empty() -> dict[str, Any]:
    """The facts of a database without items."""
    begun: dict[str, Any] = {"ids": None, "next": 0, "columns": {}, "labels": None, "label_names": [], "source": {}}
    return {**begun, "images": None, "vectors": None}


def checked(found: Any) -> dict[str, Any]:
    """The facts if each is what its readers expect; TypeError with its name if not."""
    for name, holds in _RULES.items():
        if not (isinstance(found, dict) and name in found and holds(found[name])):
            raise TypeError(f"the fact {name!r} cannot be {_shown(found, name)}")
    facts: dict[str, Any] = found
    return facts


def bits(found: Any) -> tuple[int, list[float]]:
    """Code length and bit weights; TypeError if they are invalid."""
    match found:
        case [int(n_bits), list(weights)] if 0 < n_bits == len(weights) and all(type(one) is float for one in weights):
            return n_bits, weights
    raise TypeError("there are no weights for its bits")


def _shown(found: Any, name: str) -> str:
    value = repr(found.get(name)) if isinstance(found, dict) else repr(found)
    return value if len(value) < 60 else f"{value[:57]}…"


def _is_whole(value: Any, most: int = 2**63 - 1) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_columns(value: Any) -> bool:
    return isinstance(value, dict) and all(kind is None or kind in KINDS for kind in map(_text, value.values()))


def _text(value: Any) -> Any:
    """The value, or something that equals nothing where it is neither a text nor None."""
    return value if isinstance(value, _TEXTS) else object()


def _is_form(value: Any) -> bool:
    match value:
        case None:
            return True
        case {"kind": "classes", "type": str(kind)}:
            return kind in _CLASSES
        case {"kind": "rows", "size": size, "type": "uint8" | "float32"}:
            return _is_whole(size, _MOST_LABELS)
    return False


def _is_vectors(value: Any) -> bool:
    match value:
        case None:
            return True
        case {"kind": str(kind), "dimension": size}:
            return kind in vectors.KINDS and _is_whole(size, _MOST_FEATURES) and size > 0
    return False


def _is_place(value: Any) -> bool:
    match value:
        case None | {"absolute": str()}:
            return value is None or isinstance(value.get("beside"), _TEXTS)
    return False


_RULES = {
    "ids": lambda value: _text(value) in (None, "int", "text"),
    "next": _is_whole,
    "columns": _is_columns,
    "labels": _is_form,
    "label_names": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    "source": lambda value: isinstance(value, dict),
    "images": _is_place,
    "vectors": _is_vectors,
}
