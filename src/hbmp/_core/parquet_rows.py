"""Rows of numbers from a list column of Parquet, a batch at a time: the file is never read whole.

Up to 256 MB of rows are kept in memory. More go to a temporary file that is mapped, which disappears with the array.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.parquet_files import open_parquet
from hbmp._core.reading import reading

_IN_MEMORY = 256 << 20  # bytes
_BATCH = 8192  # rows read at a time


def read_rows(path: Path, column: str) -> NDArray[Any]:
    """The lists of a column as (n, d) float16, float32 or float64; whole numbers become float32."""
    file = open_parquet(path)
    n_rows = file.metadata.num_rows
    rows, start = np.empty((0, 0), np.float32), 0
    with file:
        for block in _blocks(file, path, column):
            if start == 0:
                rows = _empty((n_rows, block.shape[1]), block.dtype if block.dtype.kind == "f" else np.dtype("f4"))
            elif block.shape[1] != rows.shape[1]:
                raise ValueError(_unequal(path, column, [rows.shape[1], block.shape[1]]))
            if start + len(block) > n_rows:
                raise ValueError(_other_count(path, n_rows))
            rows[start : start + len(block)] = block
            start += len(block)
    if start != n_rows:
        raise ValueError(_other_count(path, n_rows))
    return rows


def _other_count(path: Path, n_rows: int) -> str:
    return f"{path} does not hold the {n_rows} rows that it names; write it again."


def _blocks(file: Any, path: Path, column: str) -> Iterator[NDArray[Any]]:
    from pyarrow import compute

    batches = file.iter_batches(batch_size=_BATCH, columns=[column])
    while True:
        with reading(path, "Parquet"):
            batch = next(batches, None)
            if batch is None:
                return
            batch.validate(full=True)
        lists = batch.column(0)
        lengths = compute.list_value_length(lists).unique().to_pylist()
        if len(lengths) != 1 or None in lengths:
            raise ValueError(_unequal(path, column, lengths))
        values = lists.flatten().to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "fiub":
            raise ValueError(f"Features must be lists of numbers; column {column!r} of {path} holds {values.dtype}.")
        yield values.reshape(len(lists), -1)


def _empty(shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    if shape[0] * shape[1] * dtype.itemsize <= _IN_MEMORY:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:  # the map keeps it alive
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def _unequal(path: Path, column: str, lengths: list[Any]) -> str:
    return f"The lists in column {column!r} of {path} must all be of one length; found {lengths[:4]}."
