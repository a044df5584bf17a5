"""The results of a search: as JSON, and as a table that fits the terminal."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.table import Table
from hbmp.database import Database

_MOST_COLUMNS = 6  # of the payload, in a table
_NARROWEST = 16  # characters of a text that is cut
_WIDE = 160  # characters of a line that no terminal shows

Hit = dict[str, Any]


def hits(database: Database, ids: NDArray[Any], distances: NDArray[Any]) -> list[Hit]:
    """Id, distance, label, path and payload of each item found, without padding."""
    kept = np.isfinite(distances)
    found, near = ids[kept].tolist(), distances[kept].tolist()
    if not found:
        return []
    rows = zip(found, near, database.labels_of(found), strict=True)
    made: list[Hit] = [{"id": i, "distance": d, "label": label} for i, d, label in rows]
    if database.has_files:
        for hit, path in zip(made, database.paths_of(found), strict=True):
            hit["path"] = path
    if database.columns:
        for hit, payload in zip(made, database.payload_of(found), strict=True):
            hit["payload"] = payload
    return made


def as_table(queries: Sequence[tuple[Any, list[Hit]]], database: Database, columns: Sequence[str] | None = None) -> str:
    """One line per hit; long texts are cut so that lines fit the terminal."""
    chosen = list(database.columns)[:_MOST_COLUMNS] if columns is None else list(columns)
    unknown = next((name for name in chosen if name not in database.columns), None)
    if unknown is not None:
        raise LookupError(f"No column called {unknown!r}; there are {', '.join(database.columns) or 'none'}.")
    own = ["id", "distance"] + ["label"] * (database.label_kind is not None) + ["path"] * database.has_files
    kinds = database.columns
    header = ["query", "rank", *own, *chosen]
    cuttable = [name in ("query", "label", "path") or kinds.get(name) in ("text", "json") for name in header]
    lines = [
        [
            _cell(query),
            str(rank),
            *(_cell(hit[name]) for name in own),
            *(_cell(hit["payload"].get(name)) for name in chosen),
        ]
        for query, found in queries
        for rank, hit in enumerate(found, start=1)
    ]
    names = int(not all(isinstance(query, int) for query, _ in queries))
    fitted = tuple(map(tuple, _fitted(header, lines, cuttable)))
    return Table(tuple(header), fitted, n_names=names, n_notes=len(header) - 4).text()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split()).replace("|", "¦")


def _fitted(header: list[str], lines: list[list[str]], cuttable: list[bool]) -> list[list[str]]:
    """The lines with their widest texts cut until a line fits."""
    room = shutil.get_terminal_size((_WIDE, 24)).columns if sys.stdout.isatty() else _WIDE
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    spare = room - 3 * len(header) - 1
    while sum(widths) > spare:
        widest = max(
            (place for place in range(len(header)) if cuttable[place]), key=lambda place: widths[place], default=None
        )
        if widest is None or widths[widest] <= max(_NARROWEST, len(header[widest])):
            break
        widths[widest] -= 1
    return [
        [
            cell if len(cell) <= width else f"{cell[: width - 1].rstrip()}…"
            for cell, width in zip(line, widths, strict=True)
        ]
        for line in lines
    ]
