"""Vectors of texts or images in a .npy file, a block of items at a time; a run that was stopped can be resumed.

    x.npy.part        the vectors so far, in a file of the final size
    x.npy.part.json   the number of finished rows, their checksum, and what identifies the run
    .x.npy.lock       while a run is under way

The part becomes `x.npy` when its last row is written, so that no reader sees half of it. Finished rows that do not
match their checksum are computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.files import write_into_place
from hbmp._core.npy_files import new_npy
from hbmp._core.reading import json_object
from hbmp.encoders import Encoder

_SECONDS = 5.0  # between two notes of progress
_ROWS = 4096  # per step of a checksum


@dataclass(frozen=True)
class ItemSource:
    """Items to encode: their number, and blocks of `rows` items from the start of any block on.

    stamp : what identifies the items, so that a run is resumed with the same ones
    """

    n: int
    rows: int
    blocks: Callable[[int], Iterator[Any]]
    stamp: str


def stamp_of(*parts: object) -> str:
    """A digest of names, sizes and times."""
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:16]


def write_features(encoder: Encoder, items: ItemSource, path: str | Path, *, dtype: str, progress: bool = False) -> int:
    """Encode every item and write the array (n, n_features); the number of rows that an earlier run had finished."""
    path = Path(path)
    shape = (items.n, encoder.n_features)
    run = stamp_of(items.stamp, encoder.about(), encoder.code(), dtype, shape)
    with _alone(path):
        return _write(encoder, items, path, np.dtype(dtype), shape, run, progress)


def _write(
    encoder: Encoder, items: ItemSource, path: Path, dtype: np.dtype, shape: tuple[int, int], run: str, progress: bool
) -> int:
    from tqdm import tqdm

    part, note = _parts_of(path)
    done, crc = _finished_rows(part, note, run, path, items.rows, dtype, shape)
    array: Any = np.load(part, mmap_mode="r+") if done else new_npy(part, dtype, shape, path)
    _write_note(note, done, crc, run)
    noted = time.monotonic()
    with tqdm(
        total=items.n, initial=done, desc="encoding", unit=encoder.takes[:-1], disable=None if progress else True
    ) as bar:
        start = done
        for block in items.blocks(done) if done < items.n else ():
            array[start : start + len(block)] = encoder.encode(block)
            crc = _checksum(array, start, start + len(block), crc)
            start += len(block)
            bar.update(len(block))
            if time.monotonic() - noted > _SECONDS:
                array.flush()
                _write_note(note, start, crc, run)
                noted = time.monotonic()
    if start != items.n:
        raise ValueError(f"{start:,} items were found but {items.n:,} expected; do not change the data during a run.")
    array.flush()
    del array  # an open map could not be renamed on Windows
    os.replace(part, path)
    note.unlink(missing_ok=True)
    return done


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Refuse a second run that writes the same file."""
    from filelock import FileLock, Timeout

    place = path.with_name(f".{path.name}.lock")
    lock = FileLock(place, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"{path} is being written by another run; wait for it, or choose another name.") from None
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        lock.release()


def _parts_of(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")


def _write_note(note: Path, done: int, crc: int, run: str) -> None:
    write_into_place(note, json.dumps({"rows": done, "crc": crc, "run": run}))


def _finished_rows(
    part: Path, note: Path, run: str, path: Path, rows: int, dtype: np.dtype, shape: tuple[int, int]
) -> tuple[int, int]:
    """Whole blocks of an earlier run with the same items and the same encoder, and their checksum.

    Another run is refused. What does not match its checksum counts as not done.
    """
    if not part.exists() or not note.exists():
        return 0, 0
    try:
        found = json_object(note.read_bytes(), rows=int, crc=int, run=str)
        noted, crc, other = found["rows"], found["crc"], found["run"]
    except (ValueError, KeyError):
        return 0, 0  # a damaged note
    if other != run:
        raise ValueError(
            f"{part} was left by an interrupted run with different data or a different encoder; remove it to write "
            f"{path}."
        )
    try:
        array = np.load(part, mmap_mode="r", allow_pickle=False)
    except Exception:  # damaged bytes make NumPy raise anything
        return 0, 0
    if array.dtype != dtype or array.shape != shape or not 0 <= noted <= shape[0]:
        return 0, 0
    if _checksum(array, 0, noted, 0) != crc:
        return 0, 0
    done = noted if noted == shape[0] else noted // rows * rows
    return done, crc if done == noted else _checksum(array, 0, done, 0)


def _checksum(array: Any, start: int, stop: int, crc: int) -> int:
    """CRC-32 of rows, after that of the rows before."""
    for first in range(start, stop, _ROWS):
        crc = zlib.crc32(np.ascontiguousarray(array[first : min(first + _ROWS, stop)]).tobytes(), crc)
    return crc
