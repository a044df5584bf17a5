"""Ids, labels and payload of the items of a command line, from tables with one row per item.

The table is the file of `--payload`, or the table that the texts come from. Its columns `id` and `label` are ids and
labels; every other column is payload. For images, a column of file names may bring its rows into their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from hbmp._core.arrays import read_npy
from hbmp._core.parquet import column_kinds
from hbmp.app.inputs.cells import as_values
from hbmp.app.inputs.item_table import ID_NAMES, TABLE_ENDINGS, ItemTable
from hbmp.app.inputs.tables import LABEL_NAMES
from hbmp.app.inputs.texts import labels_of
from hbmp.database.payload import RESERVED
from hbmp.datasets import Data
from hbmp.images import Images

FILE_NAMES = ("file", "filename", "path", "image")


@dataclass(frozen=True)
class Carried:
    """Ids and payload of the items, or None; labels and their names, if the data have none."""

    ids: list[Any] | None = None
    labels: np.ndarray | None = None
    label_names: tuple[str, ...] = ()
    payload: dict[str, list[Any]] | None = None

    def taken(self, rows: np.ndarray) -> Carried:
        """Some of the rows, in that order."""
        return replace(
            self,
            ids=None if self.ids is None else [self.ids[row] for row in rows],
            labels=None if self.labels is None else self.labels[rows],
            payload=None
            if self.payload is None
            else {name: [values[row] for row in rows] for name, values in self.payload.items()},
        )


def carried(
    data: Data,
    source: str,
    *,
    payload: str | None = None,
    columns: Sequence[str] | None = None,
    ids: str | None = None,
    labels: str | None = None,
    read: str | None = None,
) -> Carried:
    """Ids, labels and payload of the data, from the options of `hbmp index` and `hbmp add`; `source` is the data file.

    `labels` is the column of labels, and the one of `LABEL_NAMES` if None and the data have none. `read` is what the
    labels of the data were read from, if it was named; a column of the texts' own table is then not payload too.
    """
    place = payload if payload is not None else source if data.texts is not None else None
    table = None if place is None or Path(place).suffix.lower() == ".txt" else ItemTable(place)
    if table is None and columns is not None:
        raise ValueError("--columns names columns of a table of items: pass the table with --payload.")
    found = Carried(ids=_ids(ids, table, len(data), source))
    if table is None:
        return found
    if data.images is None and len(table) != len(data):
        raise ValueError(f"{source} has {len(data)} items but {place} has {len(table)} rows; give one row per item.")
    usual = next((name for name in LABEL_NAMES if name in table.names), None) if data.labels is None else None
    label = usual if labels is None else labels
    found_labels, names = (None, ()) if label is None else labels_of(table, label)
    of_texts = payload is None and data.labels is not None
    kept = _kept(table, columns, _label_column(read, table) if of_texts else label, _id_column(ids, table))
    values = table.payload(without=[name for name in table.names if name not in kept]) if kept else None
    found = replace(found, labels=found_labels, label_names=names, payload=values)
    return found if data.images is None else _in_the_order_of(data, table, found)


def read_ids(path: str | Path) -> list[Any]:
    """Ids of a file, one per row or line: whole numbers or texts."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"The id file {path} does not exist.")
    if path.suffix.lower() == ".npy":
        values = read_npy(path)
        if values.ndim != 1 or values.dtype.kind not in "iuU":
            raise ValueError(
                f"Ids must be whole numbers or strings, one per row; {path} holds {values.dtype} {values.shape}."
            )
        return list(values.tolist())
    if path.suffix.lower() == ".txt":
        return as_values([line.strip() for line in ItemTable(path).column("text") if line.strip()])
    if path.suffix.lower() not in TABLE_ENDINGS:
        raise ValueError(f"{path} is not an id file; id files end in .npy, {', '.join(TABLE_ENDINGS)}.")
    table = ItemTable(path)
    if len(table.names) == 1:
        name = table.names[0]
        return table.column(name) if _is_typed(table) else _without_header(name, table)
    found = table.ids()
    if found is None:
        raise ValueError(f"{path} has no column 'id'; it has {', '.join(table.names)}.")
    return found


def _without_header(name: str, table: ItemTable) -> list[Any]:
    """The only column of CSV; its first line is an id too, unless it is a usual name."""
    cells = table.column(name)
    return as_values(cells if not name.isdecimal() else [name, *cells])


def _ids(given: str | None, table: ItemTable | None, n: int, source: str) -> list[Any] | None:
    """The ids of a column, of a file, or of the column `id`."""
    if given is None:
        return None if table is None else table.ids()
    if table is not None and given in table.names:
        values = table.column(given)
        return values if _is_typed(table) else as_values(values)
    if table is not None and not Path(given).is_file():
        raise LookupError(
            f"{given} is neither a file nor a column of {table.path}, which has {', '.join(table.names)}."
        )
    found = read_ids(given)
    if len(found) != n:
        raise ValueError(f"{source} has {n} items but {given} has {len(found)} ids; pass one id per item.")
    return found


def _is_typed(table: ItemTable) -> bool:
    """Whether the values of a table have types; cells of CSV are texts."""
    return table.path.suffix.lower() not in (".csv", ".tsv")


def _id_column(ids: str | None, table: ItemTable) -> str | None:
    if ids is not None:
        return ids if ids in table.names else None
    return next((name for name in ID_NAMES if name in table.names), None)


def _label_column(read: str | None, table: ItemTable) -> str | None:
    """The column that the labels of texts come from."""
    if read is not None:
        return read if read in table.names else None
    return next((name for name in LABEL_NAMES if name in table.names), None)


def _kept(table: ItemTable, columns: Sequence[str] | None, label: str | None, id_column: str | None) -> list[str]:
    """The columns of the payload: those that are named, or all but ids, labels, vectors and images."""
    if columns is not None:
        unknown = next((name for name in columns if name not in table.names), None)
        if unknown is not None:
            raise LookupError(f"{table.path} has no column {unknown!r}; it has {', '.join(table.names)}.")
        kept = list(columns)
    else:
        kinds = column_kinds(table.path) if table.path.suffix.lower() in (".parquet", ".pq") else {}
        left_out = {label, id_column, "label", *ID_NAMES}
        kept = [
            name for name in table.names if name and name not in left_out and kinds.get(name) not in ("vector", "image")
        ]
    taken = next((name for name in kept if name in RESERVED and name not in FILE_NAMES), None)
    if taken is not None:
        raise ValueError(
            f"{table.path} has a column {taken!r}, a name that is reserved for results; rename it, or choose other "
            "columns "
            "with --columns."
        )
    return kept


def _in_the_order_of(data: Data, table: ItemTable, found: Carried) -> Carried:
    """The rows of the images, by a column of file names where there is one."""
    names = list(data.images.names) if isinstance(data.images, Images) else []
    column = next((name for name in FILE_NAMES if name in table.names), None)
    if column is None or not names:
        if len(table) != len(data):
            raise ValueError(
                f"There are {len(data)} images but {table.path} has {len(table)} rows; give one row per image, or a "
                "column 'file' with their names."
            )
        return found
    row_of = {PurePath(str(value)).as_posix(): row for row, value in enumerate(table.column(column))}
    wanted = [PurePath(name).as_posix() for name in names]
    missing = next((name for name in wanted if name not in row_of), None)
    if missing is not None:
        raise ValueError(f"{table.path} has no row for the image {missing}; its column {column!r} names the files.")
    ordered = found.taken(np.array([row_of[name] for name in wanted]))
    payload = {name: values for name, values in (ordered.payload or {}).items() if name != column}
    return replace(ordered, payload=payload or None)


def labels_column(labels: str | None, payload: str | None) -> str | None:
    """The value of `--labels` where it names a column of the payload and no file."""
    if labels is None or payload is None or Path(labels).exists():
        return None
    return labels if labels in ItemTable(payload).names else None
