"""Texts of the command line: a column of a table of items, with labels from another column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.label_matrix import matrix_of
from hbmp._core.parquet import column_kinds
from hbmp.app.inputs.cells import as_values
from hbmp.app.inputs.item_table import TABLE_ENDINGS, TEXT_ENDINGS, TEXT_NAMES, ItemTable
from hbmp.app.inputs.tables import LABEL_NAMES, Labels, parse_labels
from hbmp.datasets import Data


def holds_texts(path: Path, column: str | None) -> bool:
    """Whether a file is to be read as texts: its column is named, or it can hold nothing else."""
    if column is not None:
        return True
    ending = path.suffix.lower()
    if ending in TEXT_ENDINGS:
        return True
    if ending not in TABLE_ENDINGS or not path.is_file():
        return False
    if ending in (".parquet", ".pq"):
        kinds = column_kinds(path)
        return not {"vector", "image"} & set(kinds.values()) and any(kinds.get(name) == "text" for name in TEXT_NAMES)
    return _has_texts(ItemTable(path))


def _has_texts(table: ItemTable) -> bool:
    """Whether a column with a usual name begins with words: features may be called `body` too."""
    named = [name for name in TEXT_NAMES if name in table.names]
    first: dict[str, list[Any]] = next(table.blocks(named, 1), {}) if named else {}
    return any(isinstance(as_values(values)[0], str) for values in first.values())


def read_texts(path: Path, column: str | None = None, labels: str | None = None) -> Data:
    """The texts of a column, with the labels of another, or of the first with a usual name."""
    table = ItemTable(path)
    texts = table.texts(column)
    if not texts:
        raise ValueError(f"{path} holds no texts.")
    name = labels or next((usual for usual in LABEL_NAMES if usual in table.names), None)
    if name is None or name == table.text_column(column):
        return Data(name=path.stem, labels=None, texts=texts)
    values, names = labels_of(table, name)
    return Data(name=path.stem, labels=values, label_names=names, texts=texts)


def labels_of(table: ItemTable, name: str) -> Labels:
    """The labels in one column: classes, lists, or texts as in a file of labels."""
    values: list[Any] = table.column(name)
    if any(isinstance(value, (list, tuple)) for value in values):
        return matrix_of([value or () for value in values])
    missing = next((row for row, value in enumerate(values, start=1) if value is None), None)
    if missing is not None:
        raise ValueError(f"Row {missing} of column {name!r} in {table.path} has no label; give it one.")
    if all(isinstance(value, str) for value in values):
        return parse_labels([value.strip() for value in values], table.path)
    return np.array(values), ()
