"""Features and labels from text: CSV with or without a header, tabs, and plain lines.

The first row is a header if it has a known name, or words above numbers. A column called `label`, `labels`, `class`,
`target` or `y` holds the labels; columns called `id`, `file` and the like name the rows and are left out.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hbmp._core.label_matrix import matrix_of
from hbmp.app.inputs.cells import naming_csv

LABEL_NAMES = ("labels", "label", "class", "target", "targets", "y")
_ROW_NAMES = ("", "id", "ids", "file", "filename", "path", "image", "name", "split")
_LIST_MARK = ";"
_MOST_DIGITS = 19  # a longer number does not fit in 64 bits and stays a name

Labels = tuple[np.ndarray, tuple[str, ...]]


def csv_features(path: Path) -> tuple[np.ndarray, np.ndarray | None, tuple[str, ...]]:
    """(features (n, d) float32, labels or None, names of labels) of a CSV file with one column per feature."""
    header, width = _header(path)
    small = _small(header)
    used = [column for column in range(width) if header is None or small[column] not in (*LABEL_NAMES, *_ROW_NAMES)]
    if not used:
        raise ValueError(f"{path} has no numeric columns; found {', '.join(header or ())}.")
    try:
        features = np.loadtxt(
            path,
            dtype=np.float32,
            delimiter=_delimiter(path),
            skiprows=0 if header is None else 1,
            usecols=used,
            ndmin=2,
            comments=None,
            encoding="utf-8-sig",
            quotechar='"',
        )
    except ValueError as error:
        raise ValueError(
            f"{path} must hold numbers in every feature column ({str(error).splitlines()[0].rstrip('.')}); "
            "if it holds texts, name their column with --column."
        ) from error
    if not set(small) & set(LABEL_NAMES):
        return features, None, ()
    return (features, *csv_labels(path))


def csv_labels(path: Path) -> Labels:
    """Labels from a CSV file: the column of that name, the only column, or a matrix of 0 and 1."""
    header, width = _header(path)
    small = _small(header)
    columns = [column for column in range(width) if header is None or small[column] not in _ROW_NAMES]
    named = [small.index(name) for name in LABEL_NAMES if name in small]
    if named or len(columns) == 1:
        column = named[0] if named else columns[0]
        return parse_labels([_cell(row, column) for row in _rows(path, header is not None)], path)
    rows = [[_cell(row, column) for column in columns] for row in _rows(path, header is not None)]
    listed = "" if header is None else f": {', '.join(header)}"
    if not columns or any(cell not in ("0", "1") for row in rows for cell in row):
        raise ValueError(
            f"{path} has {width} columns{listed}. Name the column of labels 'label', or use only columns of 0 and 1."
        )
    names = () if header is None else tuple(header[column] for column in columns)
    return np.array(rows).astype(np.uint8), names


def text_labels(path: Path) -> Labels:
    """Labels from lines: a class, a list `sea;sand`, or zeros and ones separated by spaces."""
    with naming_csv(path):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    cells = [line.split() for line in lines]
    widths = {len(row) for row in cells}
    if len(widths) == 1 and widths.pop() > 1 and all(cell in ("0", "1") for row in cells for cell in row):
        return np.array(cells).astype(np.uint8), ()
    return parse_labels([line.strip() for line in lines], path)


def parse_labels(values: Sequence[str], path: Path) -> Labels:
    """0/1 rows if any value is a list, else classes, as whole numbers if all are."""
    if not values:
        raise ValueError(f"{path} holds no labels.")
    if any(_LIST_MARK in value for value in values):
        return matrix_of([[part.strip() for part in value.split(_LIST_MARK) if part.strip()] for value in values])
    if "" in values:
        raise ValueError(
            f"Item {list(values).index('') + 1} of {path} has no label; give it one, or write all as lists, such as "
            "'sea;sand'."
        )
    fraction = next((value for value in values if _is_number(value) and _has_fraction(float(value))), None)
    if fraction is not None and all(map(_is_number, values)) and 2 * len(set(values)) > len(values):
        raise ValueError(
            f"Labels must be classes, found numbers such as {fraction} in {path}: {len(set(values)):,} different "
            f"values in {len(values):,} rows."
        )
    return np.array([int(value) for value in values] if all(map(_is_whole, values)) else values), ()


def _header(path: Path) -> tuple[list[str] | None, int]:
    """(names of the columns or None, number of columns)."""
    rows = _rows(path, False)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{path} is empty.")
    second = next(rows, [])
    names = [cell.strip() for cell in first]
    known = any(name in (*LABEL_NAMES, *_ROW_NAMES[1:]) for name in _small(names))
    over_numbers = any(not _is_number(a) and _is_number(b) for a, b in zip(first, second, strict=False))
    return (names if known or over_numbers else None), len(first)


def _small(header: list[str] | None) -> list[str]:
    return [name.lower() for name in header or ()]


def _rows(path: Path, skip_first: bool) -> Iterator[list[str]]:
    with naming_csv(path), open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=_delimiter(path))
        if skip_first:
            next(reader)
        yield from reader


def _cell(row: list[str], column: int) -> str:
    return row[column].strip() if column < len(row) else ""


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _has_fraction(number: float) -> bool:
    """Whether a number has digits behind the point; "nan" and whole numbers beyond float64 have none."""
    return math.isfinite(number) and not number.is_integer()


def _is_whole(text: str) -> bool:
    return len(text) < _MOST_DIGITS and text[text[:1] in ("+", "-") :].isdecimal()
