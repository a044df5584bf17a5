"""Tables of items: CSV, Parquet, JSON lines, or plain text with one text per line.

    table = ItemTable("news.csv")
    table.names                       the columns
    table.texts("body")               one column as texts
    table.text_blocks("body", 1024)   the same, a block at a time, in the memory of one block
    table.payload()                   every column as values of a database

The first line of CSV names the columns. Plain text has the one column `text`.
"""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hbmp._core.parquet_files import open_parquet
from hbmp._core.reading import reading
from hbmp.app.inputs.cells import as_values, naming_csv
from hbmp.images.sources import parquet_files

TEXT_ENDINGS = (".jsonl", ".ndjson", ".txt")  # always texts; .csv, .tsv and Parquet may hold features too
TABLE_ENDINGS = (".csv", ".tsv", ".parquet", ".pq", *TEXT_ENDINGS)
TEXT_NAMES = ("text", "body", "sentence", "content")  # tried in this order where no column is named
ID_NAMES = ("id", "ids")
_ROWS = 4096
_LONGEST_CELL = 2**31 - 1  # characters of a cell of CSV; Python refuses more than 131,072 unless told

Block = dict[str, list[Any]]


class ItemTable:
    """One row per item; rows are read in blocks, again for each call."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not self.path.exists():
            raise ValueError(f"There is no file {path}.")
        reader = _reader(self.path)
        self._typed = reader is not _Separated
        self._reader: Any = reader(self.path)
        self.names: tuple[str, ...] = tuple(self._reader.names)
        self._length: int | None = None

    def __len__(self) -> int:
        if self._length is None:
            self._length = self._reader.count()
        return self._length

    def blocks(self, names: Sequence[str], rows: int = _ROWS) -> Iterator[Block]:
        """Some columns, `rows` rows at a time."""
        for name in names:
            self._check(name)
        yield from self._reader.blocks(list(names), rows)

    def column(self, name: str) -> list[Any]:
        """All values of one column; CSV values are strings."""
        return [value for block in self.blocks([name]) for value in block[name]]

    def texts(self, name: str | None = None) -> list[str]:
        """One column as texts; missing ones are empty."""
        return [text for block in self.text_blocks(name) for text in block]

    def text_blocks(self, name: str | None = None, rows: int = _ROWS) -> Iterator[list[str]]:
        """The same, `rows` texts at a time."""
        name = self.text_column(name)
        for number, block in enumerate(self.blocks([name], rows)):
            for place, value in enumerate(block[name]):
                if not isinstance(value, str) and value is not None:
                    raise ValueError(
                        f"Row {number * rows + place + 1} of column {name!r} in {self.path} is a "
                        f"{type(value).__name__}, not a string; choose a text column with --column."
                    )
            yield [value or "" for value in block[name]]

    def text_column(self, name: str | None = None) -> str:
        """The column of texts: the one that is named, or the only one with a usual name."""
        if name is not None:
            self._check(name)
            return name
        found = next((usual for usual in TEXT_NAMES if usual in self.names), None)
        if found is None and len(self.names) == 1:
            (found,) = self.names
        if found is None:
            raise ValueError(
                f"{self.path} has the columns {', '.join(self.names)}; choose the text column with --column."
            )
        return found

    def payload(self, without: Sequence[str] = ID_NAMES) -> Block:
        """Every column but these as values of a database: numbers of CSV are numbers, empty cells are None."""
        names = [name for name in self.names if name not in without]
        columns: Block = {name: [] for name in names}
        for block in self.blocks(names):
            for name, values in block.items():
                columns[name] += values
        return columns if self._typed else {name: as_values(values) for name, values in columns.items()}

    def ids(self) -> list[Any] | None:
        """The column `id`, if there is one."""
        name = next((name for name in ID_NAMES if name in self.names), None)
        if name is None:
            return None
        return self.column(name) if self._typed else as_values(self.column(name))

    def _check(self, name: str) -> None:
        if name not in self.names:
            close = difflib.get_close_matches(name, self.names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise LookupError(f"{self.path} has no column {name!r}.{hint} It has {', '.join(self.names)}.")


class _Separated:
    """CSV, or columns separated by tabs; the first line names the columns."""

    def __init__(self, path: Path):
        self._path = path
        first = next(self._rows(), None)
        if first is None:
            raise ValueError(f"{path} is empty; the first line must contain the column names.")
        self.names = [name.strip() for name in first]
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ValueError(f"{path} has two columns {twice!r}; its first line must name each column once.")

    def count(self) -> int:
        return sum(1 for _ in self._rows()) - 1

    def blocks(self, names: list[str], rows: int) -> Iterator[Block]:
        places = [self.names.index(name) for name in names]
        lines = enumerate(islice(self._rows(), 1, None), start=2)
        while part := list(islice(lines, rows)):
            for number, row in part:
                if len(row) != len(self.names):
                    raise ValueError(
                        f"Record {number} of {self._path} has {len(row)} cells, but the first line has "
                        f"{len(self.names)}; put quotes around texts with commas or line breaks."
                    )
            yield {name: [row[place] for _, row in part] for name, place in zip(names, places, strict=True)}

    def _rows(self) -> Iterator[list[str]]:
        delimiter = "\t" if self._path.suffix.lower() == ".tsv" else ","
        with naming_csv(self._path), open(self._path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=delimiter)
            while part := _some_rows(reader):
                yield from (row for row in part if row)


def _some_rows(reader: Iterator[list[str]]) -> list[list[str]]:
    """The next rows of CSV with cells of any length; the limit belongs to the whole process, so it is put back."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        return list(islice(reader, _ROWS))
    finally:
        csv.field_size_limit(before)


class _Parquet:
    """A Parquet file, or a folder of them."""

    def __init__(self, path: Path):
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ValueError(f"Reading {path} needs pyarrow: pip install 'hbmp[images]'.") from error
        self._path = path
        self._files = [open_parquet(file) for file in parquet_files(path)]
        self.names = self._files[0].schema_arrow.names

    def count(self) -> int:
        return sum(file.metadata.num_rows for file in self._files)

    def blocks(self, names: list[str], rows: int) -> Iterator[Block]:
        for file in self._files:
            batches = file.iter_batches(batch_size=rows, columns=names)
            while True:
                with reading(self._path, "Parquet"):
                    batch = next(batches, None)
                    if batch is None:
                        break
                    batch.validate(full=True)  # damaged pages give texts that are not UTF-8
                    block = {name: batch.column(name).to_pylist() for name in names}
                yield block


class _JSONLines:
    """One JSON object per line; a key that a line lacks is None there."""

    def __init__(self, path: Path):
        self._path = path
        self._n = 0
        names: dict[str, None] = {}
        for row in self._rows():
            self._n += 1
            names.update(dict.fromkeys(row))
        if not names:
            raise ValueError(f"{path} holds no rows; write one JSON object per line.")
        self.names = list(names)

    def count(self) -> int:
        return self._n

    def blocks(self, names: list[str], rows: int) -> Iterator[Block]:
        lines = self._rows()
        while part := list(islice(lines, rows)):
            yield {name: [row.get(name) for row in part] for name in names}

    def _rows(self) -> Iterator[dict[str, Any]]:
        with naming_csv(self._path), open(self._path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"Line {number} of {self._path} is not JSON ({error}).") from error
                if not isinstance(row, dict):
                    raise ValueError(f"Line {number} of {self._path} is a {type(row).__name__}, not an object.")
                yield row


class _Lines:
    """One text per line."""

    names = ("text",)

    def __init__(self, path: Path):
        self._path = path

    def count(self) -> int:
        return sum(1 for _ in self._lines())

    def blocks(self, names: list[str], rows: int) -> Iterator[Block]:
        lines = self._lines()
        while part := list(islice(lines, rows)):
            yield dict.fromkeys(names, part)

    def _lines(self) -> Iterator[str]:
        with naming_csv(self._path), open(self._path, encoding="utf-8-sig") as file:
            yield from (line.rstrip("\n") for line in file)


def _reader(path: Path) -> Callable[[Path], Any]:
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        return _Separated
    if ending in (".jsonl", ".ndjson"):
        return _JSONLines
    if ending == ".txt":
        return _Lines
    if ending in (".parquet", ".pq") or path.is_dir():
        return _Parquet
    raise ValueError(f"{path} is not a table of items; tables end in {', '.join(TABLE_ENDINGS)}.")
