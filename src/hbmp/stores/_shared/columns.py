"""Columns in addition to the codes: their kinds, their values, and conditions on them as SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hbmp._core.filters import Condition
from hbmp.stores._shared.names import check_name

KINDS = (str, int, float, bool)
RESERVED = ("id", "code", "signs", "distance", "query")


def check_columns(columns: Mapping[str, type] | None) -> dict[str, type]:
    """Names and kinds of columns: str, int, float or bool."""
    found: dict[str, type] = {}
    for name, kind in (columns or {}).items():
        check_name(name, "column")
        if name.lower() in RESERVED:
            raise ValueError(f"The store has a column {name!r} of its own; use another name.")
        if kind not in KINDS:
            raise ValueError(f"Column {name!r} must be of str, int, float or bool, found {kind!r}.")
        found[name] = kind
    return found


def check_values(columns: Mapping[str, type], values: Mapping[str, Any] | None, n: int) -> dict[str, list[Any]]:
    """One value per row for each column, as plain Python objects."""
    given = dict(values or {})
    if missing := [name for name in columns if name not in given]:
        raise ValueError(
            f"The store has the column {missing[0]!r}: pass values={{{missing[0]!r}: [...]}} with the codes."
        )
    if unknown := [name for name in given if name not in columns]:
        raise ValueError(f"The store has no column {unknown[0]!r}; its columns are: {', '.join(columns) or 'none'}.")
    return {name: _plain(name, kind, given[name], n) for name, kind in columns.items()}


def _plain(name: str, kind: type, given: Sequence[Any], n: int) -> list[Any]:
    found = [value.item() if isinstance(value, np.generic) else value for value in given]
    if len(found) != n:
        raise ValueError(f"{n} codes need {n} values in column {name!r}, found {len(found)}.")
    wanted = (int, float) if kind is float else (kind,)
    for value in found:
        if not isinstance(value, wanted) or (kind in (int, float) and isinstance(value, bool)):
            raise ValueError(f"Column {name!r} holds {kind.__name__}, found {value!r}.")
    return [kind(value) for value in found]


def as_sql(where: list[Condition], quote: str = '"') -> str:
    """Conditions as one SQL expression with literals; no list is empty."""
    return " AND ".join(_as_sql(condition, f"{quote}{condition.column}{quote}") for condition in where)


def _as_sql(condition: Condition, column: str) -> str:
    if condition.operator != "in":
        return f"{column} {condition.operator} {literal(condition.value)}"
    return f"{column} IN ({', '.join(literal(value) for value in condition.value)})"


def literal(value: Any) -> str:
    """A value as an SQL literal."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
