"""Columns with few values, for filters on a page."""

from __future__ import annotations

from typing import Any

from hbmp.database import labels
from hbmp.database.contents import Contents
from hbmp.database.payload import restored

_SAMPLED = 2000  # rows that show whether a column has few values


def facets_of(contents: Contents, most: int) -> dict[str, list[tuple[Any, int]]]:
    """Values and their counts, by column."""
    found = {}
    form = contents.facts["labels"]
    for name, (column, kind) in contents.sql_columns().items():
        if kind in ("json", "float"):
            continue
        sample = f"SELECT count(DISTINCT {column}) FROM (SELECT {column} FROM items LIMIT {_SAMPLED})"  # nosec B608 - checked names, bound values
        if contents.store.rows(sample)[0][0] > most:
            continue
        counted = contents.store.rows(
            f"SELECT {column}, count(*) FROM items WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?",  # nosec B608 - checked names, bound values
            [most + 1],
        )
        if 1 < len(counted) <= most and counted[0][1] > 1:  # else a name of each item
            is_label = name == "label" and column == "label"
            found[name] = [
                (labels.restored([value], form)[0].item() if is_label else restored(value, kind), count)
                for value, count in counted
            ]
    return found
