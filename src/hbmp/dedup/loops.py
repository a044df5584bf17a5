"""The inner loop of the join: machine code where numba is installed, NumPy otherwise, with the same results."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 1 << 16  # pairs of one call

Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]


def pairs_of_rows(words: NDArray[np.uint64], start: int, stop: int, radius: int, first: int) -> Found:
    """Pairs of the rows `start` to `stop` with all rows before them."""
    if find_spec("numba") is None:
        return by_numpy(words, start, stop, radius)
    return by_machine_code(words, start, stop, radius, first)


def by_machine_code(words: NDArray[np.uint64], start: int, stop: int, radius: int, first: int) -> Found:
    """With a first pass over `first` words."""
    from hbmp.dedup.machine_loop import join

    parts: list[Any] = []
    place = np.array([start, 0], np.uint64)  # the row, and the first of the rows before it, that come next
    rows, others, distances = (np.empty(_MOST, kind) for kind in (np.int64, np.int64, np.uint16))
    counts = np.empty(1024, np.uint64)
    limits = np.uint64(stop), np.uint64(radius), np.uint64(first)
    while place[0] < stop:
        n = join(words, place, *limits, counts, rows, others, distances)
        parts.append((rows[:n].copy(), others[:n].copy(), distances[:n].copy()))
    return _joined(parts)


def by_numpy(words: NDArray[np.uint64], start: int, stop: int, radius: int) -> Found:
    """The same, row by row."""
    parts = []
    for i in range(start, stop):
        apart = np.bitwise_count(words[:, :i] ^ words[:, i : i + 1]).sum(axis=0, dtype=np.uint16)
        others = np.flatnonzero(apart <= radius)
        parts.append((np.full(len(others), i, np.int64), others.astype(np.int64), apart[others]))
    return _joined(parts)


def _joined(parts: list[Found]) -> Found:
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint16)
    rows, others, distances = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(others), np.concatenate(distances)
