"""Conditions on columns: what `where=` means in a database and in every store.

    {"brand": "sony"}                       equal
    {"brand": ["sony", "canon"]}            one of these
    {"price": {">=": 10, "<": 20}}          ranges; also "=" and "!="

All conditions must hold. A missing value meets none of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Where = Mapping[str, Any]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SCALARS = (str, bool, int, float, np.str_, np.bool_, np.integer, np.floating)


@dataclass(frozen=True)
class Condition:
    """One condition; operator: "=", "!=", "<", "<=", ">", ">=" or "in"; value: a plain scalar, or a tuple for "in"."""

    column: str
    operator: str
    value: Any

    def holds(self, value: Any) -> bool:
        """Whether a value of the column meets the condition."""
        if value is None:
            return False
        if self.operator == "in":
            return value in self.value
        try:
            return bool(_COMPARE[self.operator](value, self.value))
        except TypeError:  # text against a number
            return False


def conditions(where: Where | None, columns: Collection[str] | None = None) -> list[Condition]:
    """The conditions of a `where` argument; columns: the existing names, if known."""
    if where is None:
        return []
    if not isinstance(where, Mapping):
        raise ValueError(f"where must map columns to values, as in {{'brand': 'sony'}}, found {where!r}.")
    found: list[Condition] = []
    for column, wanted in where.items():
        if columns is not None and column not in columns:
            listed = ", ".join(map(repr, columns)) or "none"
            raise ValueError(f"No column called {column!r} to filter by; there are {listed}.")
        found += _of_column(str(column), wanted)
    return found


def _of_column(column: str, wanted: Any) -> list[Condition]:
    if isinstance(wanted, Mapping):
        unknown = [sign for sign in wanted if sign not in _COMPARE]
        if unknown or not wanted:
            raise ValueError(f"A range in where takes {', '.join(_COMPARE)}, found {dict(wanted)!r}.")
        return [Condition(column, sign, _scalar(column, value)) for sign, value in wanted.items()]
    if isinstance(wanted, Sequence | np.ndarray | set | frozenset) and not isinstance(wanted, str):
        return [Condition(column, "in", tuple(_scalar(column, value) for value in wanted))]
    return [Condition(column, "=", _scalar(column, wanted))]


def _scalar(column: str, value: Any) -> Any:
    if not isinstance(value, _SCALARS):
        raise ValueError(f"where compares {column!r} with texts, numbers or booleans, found {value!r}.")
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int) and not -(2**63) <= plain < 2**63:
        raise ValueError(f"where compares {column!r} with a whole number that does not fit in 64 bits.")
    if isinstance(plain, str) and not plain.isascii():
        try:
            plain.encode()
        except UnicodeEncodeError:
            raise ValueError(f"where compares {column!r} with a text that is not Unicode: {plain!a}.") from None
    return plain
