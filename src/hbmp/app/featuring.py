"""Vectors of texts or images in a .npy file, a block of items at a time; a run that was stopped can be resumed.

    x.npy.part        the vectors so far, in a file of the final size
    x.npy.part.json   the number of finished rows, and what identifies the run

The part becomes `x.npy` when its last row is written, so that no reader sees half of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.files import write_into_place
from hbmp.app.outputs import new_npy
from hbmp.encoders import Encoder

_SECONDS = 5.0  # between two notes of progress


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
    from tqdm import tqdm

    path = Path(path)
    part, note = _parts_of(path)
    shape = (items.n, encoder.n_features)
    run = stamp_of(items.stamp, encoder.about(), dtype, shape)
    done = _finished_rows(part, note, run, path, items.rows)
    array: Any = np.load(part, mmap_mode="r+") if done else new_npy(part, dtype, shape, path)
    _write_note(note, done, run)
    noted = time.monotonic()
    with tqdm(
        total=items.n, initial=done, desc="encoding", unit=encoder.takes[:-1], disable=None if progress else True
    ) as bar:
        start = done
        for block in items.blocks(done):
            array[start : start + len(block)] = encoder.encode(block)
            start += len(block)
            bar.update(len(block))
            if time.monotonic() - noted > _SECONDS:
                array.flush()
                _write_note(note, start, run)
                noted = time.monotonic()
    if start != items.n:
        raise ValueError(f"{start:,} items were found and {items.n:,} expected; do not change the data meanwhile.")
    array.flush()
    del array  # an open map could not be renamed on Windows
    os.replace(part, path)
    note.unlink(missing_ok=True)
    return done


def _parts_of(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")


def _write_note(note: Path, done: int, run: str) -> None:
    write_into_place(note, json.dumps({"rows": done, "run": run}))


def _finished_rows(part: Path, note: Path, run: str, path: Path, rows: int) -> int:
    """Whole blocks of an earlier run with the same items and the same encoder; another run is refused."""
    if not part.exists() or not note.exists():
        return 0
    found: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        found = json.loads(note.read_text(encoding="utf-8"))
    if found.get("run") != run:
        raise ValueError(
            f"{part} is what a stopped run with other data or another encoder left; remove it to write {path}."
        )
    return int(found["rows"]) // rows * rows
