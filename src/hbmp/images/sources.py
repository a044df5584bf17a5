"""Sources of images: an array, files, or a Parquet column of encoded images. Each returns image i and its name."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.parquet_files import open_parquet, read_schema
from hbmp._core.reading import reading
from hbmp.images.decode import Picture

_CACHED_BYTES = 512 * 2**20  # of row groups in memory


class ArraySource:
    """Pixels in memory, or memory-mapped: (n, h, w), (n, h, w, 1) or (n, h, w, 3) uint8."""

    def __init__(self, array: Any):
        array = np.asanyarray(array)
        if array.dtype != np.uint8 or array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] not in (1, 3)):
            raise ValueError(
                f"An array of images is uint8 with the channels last, (n, h, w, 3) or (n, h, w); found {array.dtype} "
                f"of shape {array.shape}."
            )
        if 0 in array.shape[1:]:
            raise ValueError(f"Images need at least one pixel, found an array of shape {array.shape}.")
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def picture(self, row: int) -> Picture:
        """Pixels of one image."""
        return self.array[row]

    def name(self, row: int) -> str:
        """Position in the array."""
        return str(row)

    def origin(self, rows: np.ndarray) -> tuple[Any, list[str]]:
        """What identifies these images: the pixels, and no file."""
        return (self.array, rows), []

    def about(self) -> str:
        """In words."""
        return f"an array {self.array.shape}"


class FileSource:
    """Image files. With a folder, names are relative to it."""

    def __init__(self, files: Sequence[str], folder: str | None = None):
        self.files = list(files)
        self.folder = folder

    def __len__(self) -> int:
        return len(self.files)

    def picture(self, row: int) -> Picture:
        """The path of one image."""
        return self.path(row)

    def path(self, row: int) -> str:
        """Path of one image, with the folder."""
        return self.files[row] if self.folder is None else os.path.join(self.folder, self.files[row])

    def name(self, row: int) -> str:
        """The given path, relative to the folder if there is one."""
        return self.files[row]

    def origin(self, rows: np.ndarray) -> tuple[Any, list[str]]:
        """What identifies these images: their names and their files."""
        return [self.name(int(row)) for row in rows], [self.path(int(row)) for row in rows]

    def about(self) -> str:
        """In words."""
        return "files" if self.folder is None else f"the folder {self.folder}"


class ParquetSource:
    """A column of encoded images in one or more Parquet files: bytes, or {bytes, path} as Hugging Face writes them.

    Row groups are read on demand and cached up to a limit, so rows in order read every group once. A random order reads
    a group for nearly every image of a file larger than the cache; `read_together` avoids that.
    """

    def __init__(self, files: Sequence[Path], column: str):
        self.files = [str(file) for file in files]
        self.column = column
        groups = []
        for number, file in enumerate(self.files):
            groups += [(number, group, *sizes) for group, sizes in enumerate(_groups(file, column))]
        self._place = [(number, group) for number, group, *_ in groups]
        self._first = np.cumsum([0, *(n_rows for *_, n_rows, _ in groups)])
        self._bytes = np.array([n_bytes for *_, n_bytes in groups], dtype=np.int64)
        per_file = np.bincount([number for number, *_ in groups], [n for *_, n, _ in groups], len(self.files))
        self._first_of_file = np.cumsum([0, *per_file]).astype(int)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Any] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_kept")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def __len__(self) -> int:
        return int(self._first[-1])

    def picture(self, row: int) -> Picture:
        """The encoded bytes of one image, or its path if there are no bytes."""
        value, file = self._value(row)
        if isinstance(value, bytes):
            return value
        if isinstance(value, dict) and value.get("bytes") is not None:
            return value["bytes"]
        if isinstance(value, dict) and value.get("path"):
            return os.path.join(os.path.dirname(file), value["path"])
        return b""  # a missing image counts as unreadable

    def name(self, row: int) -> str:
        """The path stored with the bytes, or file and row."""
        value, file = self._value(row)
        path = value.get("path") if isinstance(value, dict) else None
        return path or f"{os.path.basename(file)} row {row - self._first_of_file[self.files.index(file)]}"

    def origin(self, rows: np.ndarray) -> tuple[Any, list[str]]:
        """What identifies these images: column and positions, and the files."""
        return (self.column, rows, [os.path.basename(file) for file in self.files]), self.files

    def about(self) -> str:
        """In words."""
        return f"column {self.column!r} of {self.files[0]}" + (
            f" and {len(self.files) - 1} more" * (len(self.files) > 1)
        )

    def read_together(self, rows: np.ndarray) -> np.ndarray:
        """The positions of rows in a shuffled order, rearranged so that every row group is read once.

        Groups stay in the order of their first use. As many as fill half of the cache form one window, because batches
        decoded ahead may need the next one. Within a window the order does not change.
        """
        group_of = np.searchsorted(self._first, rows, side="right") - 1
        needed, first = np.unique(group_of, return_index=True)
        needed = needed[np.argsort(first)]
        if self._bytes[needed].sum() <= _CACHED_BYTES:
            return np.arange(len(rows))
        window_of = np.zeros(len(self._bytes), dtype=np.int64)
        window, held = 0, 0
        for group in needed:
            if held and held + self._bytes[group] > _CACHED_BYTES // 2:
                window, held = window + 1, 0
            window_of[group], held = window, held + self._bytes[group]
        return np.argsort(window_of[group_of], kind="stable")

    def _group_of(self, row: int) -> int:
        return int(np.searchsorted(self._first, row, side="right")) - 1

    def _value(self, row: int) -> tuple[Any, str]:
        group = self._group_of(row)
        return self._column(group)[int(row - self._first[group])].as_py(), self.files[self._place[group][0]]

    def _column(self, group: int) -> Any:
        """The column in one row group. The least recently used groups are dropped from the cache."""
        import pyarrow.parquet as pq

        with self._lock:
            if group not in self._kept:
                file, inside = self._place[group]
                with reading(self.files[file], "Parquet"), pq.ParquetFile(self.files[file]) as parquet:
                    column = parquet.read_row_group(inside, columns=[self.column]).column(0).combine_chunks()
                    if len(column) != self._first[group + 1] - self._first[group]:
                        raise ValueError(f"its row group {inside} holds {len(column)} values of {self.column!r}")
                    self._kept[group] = column
            self._kept.move_to_end(group)
            while len(self._kept) > 1 and sum(column.nbytes for column in self._kept.values()) > _CACHED_BYTES:
                self._kept.popitem(last=False)
            return self._kept[group]


def parquet_files(path: Path) -> list[Path]:
    """One Parquet file, or the files of a folder in order."""
    if not path.exists():
        raise ValueError(f"There is nothing at {path}; pass a Parquet file or a folder of them.")
    files = tables_in(path) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path} is a folder without .parquet files.")
    return files


def tables_in(folder: Path) -> list[Path]:
    """The Parquet files of a folder in order, without names that start with a dot or an underscore."""
    return [file for file in sorted(folder.rglob("*.parquet")) if not file.name.startswith((".", "_"))]


def column_names(file: str | Path) -> list[str]:
    """The columns of a Parquet file."""
    return _schema(file).names


def image_columns(file: str | Path) -> list[str]:
    """The columns of a Parquet file that may hold encoded images."""
    return [field.name for field in _schema(file) if _may_hold_images(field.type)]


def _groups(file: str, column: str) -> list[tuple[int, int]]:
    """Rows and bytes of each row group. Raises ValueError if the column holds no images.

    The bytes are those of all columns. pyarrow ends the process where the description of one column is damaged.
    """
    found = image_columns(file)
    if column not in found:
        raise ValueError(
            f"{file} has no column {column!r} of encoded images; its columns of bytes are: "
            f"{', '.join(found) or 'none'}."
        )
    with open_parquet(file) as parquet:
        groups = [parquet.metadata.row_group(i) for i in range(parquet.num_row_groups)]
        return [(group.num_rows, max(0, group.total_byte_size)) for group in groups]


def _schema(file: str | Path) -> Any:
    try:
        return read_schema(file)
    except ImportError:
        raise ImportError("Reading images from Parquet needs pyarrow: pip install 'hbmp[images]'.") from None


def _may_hold_images(kind: Any) -> bool:
    from pyarrow import types

    if types.is_struct(kind):
        return any(field.name == "bytes" and _may_hold_images(field.type) for field in kind)
    return types.is_binary(kind) or types.is_large_binary(kind)
