"""Conditions of `hbmp._core.filters` as SQL with parameters, which finds the same rows as `Condition.holds`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hbmp._core.filters import Condition

Columns = Mapping[str, tuple[str, str | None]]  # the SQL expression and the kind of each column


def as_sql(holds: list[Condition], columns: Columns) -> tuple[str, list[Any]]:
    """An expression that is true where all conditions hold, and its parameters."""
    parts, values = ["1"], []
    for condition in holds:
        expression, kind = columns[condition.column]
        if kind == "json":
            raise ValueError(
                f"where compares texts, numbers and booleans; column {condition.column!r} holds lists or dicts."
            )
        part, more = _one(condition, expression)
        parts.append(part)
        values += more
    return " AND ".join(parts), values


def _one(condition: Condition, column: str) -> tuple[str, list[Any]]:
    if condition.operator == "in":
        return f"{column} IN ({', '.join('?' * len(condition.value))})", list(condition.value)
    part = f"{column} {condition.operator} ?"
    if condition.operator in ("=", "!="):
        return part, [condition.value]
    # SQLite puts every text above every number; here they do not compare.
    same_kind = "= 'text'" if isinstance(condition.value, str) else "!= 'text'"
    return f"({part} AND typeof({column}) {same_kind})", [condition.value]
