"""The payload of items: columns of texts, numbers, booleans, or anything JSON can hold.

A payload comes as a list of dicts, a mapping of columns, or a table of pandas, pyarrow or polars. A column has one
kind, set by its first value; whole numbers may turn into fractions. Missing values are None.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("text", "int", "float", "bool", "json")
RESERVED = ("id", "label", "distance", "score", "path")
_MOST_COLUMNS = 500

Columns = dict[str, list[Any]]


class Payload:
    """The payload of n items, read a slice at a time."""

    def __init__(self, given: Any, n: int):
        self._table = _as_table(given)
        found = _length(self._table)
        if found != n:
            raise ValueError(f"There are {n} rows but a payload for {found}; give one entry per row.")

    def columns(self, start: int, stop: int) -> Columns:
        """Plain values of rows `start` to `stop`, by column."""
        part: Any = self._table
        if isinstance(part, list):
            rows = part[start:stop]
            names = list(dict.fromkeys(name for row in rows for name in row))
            columns = {name: [row.get(name) for row in rows] for name in names}
        elif isinstance(part, dict):
            columns = {name: list(values[start:stop]) for name, values in part.items()}
        elif hasattr(part, "to_pydict"):
            columns = part.slice(start, stop - start).to_pydict()
        else:
            frame = part.iloc[start:stop] if hasattr(part, "iloc") else part[start:stop]
            columns = {str(name): list(frame[name]) for name in frame.columns}
        return {str(name): [plain(value, name) for value in values] for name, values in columns.items()}


def _as_table(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {name: values if isinstance(values, list) else list(values) for name, values in given.items()}
    if hasattr(given, "to_pydict") or hasattr(given, "columns"):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str):
        wrong = next((row for row in given if not isinstance(row, Mapping)), None)
        if wrong is None:
            return list(given)
        given = wrong
    raise ValueError(
        f"A payload is a list of dicts, a mapping of columns or a table, as in [{{'title': 'a red shoe'}}]; found "
        f"{str(given)[:60]!r}."
    )


def _length(table: Any) -> int:
    if isinstance(table, dict):
        lengths = {name: len(values) for name, values in table.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"The columns of a payload must be of one length, found {lengths}.")
        return next(iter(lengths.values()), 0)
    return int(table.num_rows) if hasattr(table, "to_pydict") else len(table)


def plain(value: Any, column: Any = "") -> Any:
    """A value as text, number, boolean, list, dict or None."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"Column {column!r} holds {value}, which does not fit in 64 bits; write it as text.")
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, (datetime.date, datetime.time)):
        return None if str(value) == "NaT" else value.isoformat()
    if isinstance(value, (str, Path)):
        return str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (list, tuple, Mapping)):
        return value
    raise ValueError(f"Column {column!r} holds {value!r}; a payload takes texts, numbers, booleans, lists and dicts.")


def check_names(names: Sequence[str], known: Sequence[str] = ()) -> None:
    """Refuse names that results use themselves, and too many columns."""
    taken = [name for name in names if name in RESERVED]
    if taken:
        raise ValueError(f"A payload cannot have a column {taken[0]!r}, which results have already; rename it.")
    if len({*names, *known}) > _MOST_COLUMNS:
        raise ValueError(f"A payload has at most {_MOST_COLUMNS} columns, found {len({*names, *known})}.")


def kind_of(name: str, values: Sequence[Any], kind: str | None = None) -> str | None:
    """The kind of a column that had `kind` and gets these values; None where all are missing."""
    for found in dict.fromkeys(map(type, values)):
        this = {str: "text", int: "int", float: "float", bool: "bool", type(None): kind}.get(found, "json")
        if kind is None or this is None or this == kind:
            kind = this if kind is None else kind
        elif {kind, this} == {"int", "float"}:
            kind = "float"
        else:
            raise ValueError(
                f"Column {name!r} holds values of kind {kind}, found {next(v for v in values if type(v) is found)!r}; "
                "give all values of a column one kind."
            )
    return kind


def stored(values: Sequence[Any], kind: str | None) -> list[Any]:
    """Values as SQLite keeps them."""
    if kind == "json":
        return [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    return list(values)


def restored(value: Any, kind: str | None) -> Any:
    """The inverse of `stored` for one value."""
    if value is None:
        return None
    if kind == "bool":
        return bool(value)
    if kind == "float":
        return float(value)
    return json.loads(value) if kind == "json" else value
