"""Every pair of packed codes within a Hamming radius, exactly: a join of a set with itself.

    w    words    (W, n)   codes as 64-bit words, one row per word, so that a loop over codes reads along a row
    F    first    words that are compared in the first pass

Row i is compared with rows 0 to i - 1. The first pass counts differing bits in F words, for a block of rows at a time
that stays in the cache; it is one population count per word and row, eight rows per instruction where the processor has
one. Only rows within the radius there are counted in full. F is the smallest number of words for which that leaves few
rows, so nothing is missed, whatever F is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.dedup.loops import pairs_of_rows

_ROWS = 2048  # per task
_SAMPLE = 2000  # rows on which F is chosen
_FEW = 0.004  # share of rows that may need the second pass

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]  # rows i, rows j < i, distances


def pairs_within(
    packed: NDArray[np.uint8], radius: int, *, first_new: int = 0, progress: Any = None
) -> Iterator[Pairs]:
    """Find every pair (i, j), j < i, of rows within a Hamming distance, with i from `first_new` on.

    Parameters
    ----------
    packed : ndarray of shape (n, n_bytes), uint8
        Codes as `hbmp.hamming.pack` returns them.
    radius : int
        Largest number of differing bits.
    first_new : int, default=0
        Rows before it are not compared with each other.
    progress : callable, default=None
        Called with the number of rows that are done.

    Yields
    ------
    rows, others, distances : ndarray
        A block of pairs, in the order of their rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.dedup import pairs_within
    >>> packed = np.array([[0b0000], [0b1111], [0b0001]], np.uint8)
    >>> [(rows.tolist(), others.tolist()) for rows, others, _ in pairs_within(packed, 1)]
    [([2], [0])]
    """
    words = as_words(packed)
    n = words.shape[1]
    first = _words_of_the_first_pass(words, radius)
    starts = range(first_new, n, _ROWS)

    def join(start: int) -> Pairs:
        return pairs_of_rows(words, start, min(start + _ROWS, n), radius, first)

    with ThreadPoolExecutor(_threads()) as pool:
        for start, found in zip(starts, _in_order(pool, join, starts), strict=True):
            if progress is not None:
                progress(min(start + _ROWS, n) - start)
            if len(found[0]):
                yield found


def as_words(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Codes as 64-bit words, (n_words, n); the last word is filled with zeros."""
    n, n_bytes = packed.shape
    whole = np.zeros((n, -(-n_bytes // 8) * 8), np.uint8)
    whole[:, :n_bytes] = packed
    return np.ascontiguousarray(whole.view(np.uint64).T)


def _words_of_the_first_pass(words: NDArray[np.uint64], radius: int) -> int:
    """The smallest number of words that few pairs of a sample pass."""
    n_words, n = words.shape
    some = words[:, :: max(1, n // _SAMPLE)]
    half = some.shape[1] // 2
    if half == 0:
        return n_words
    apart = np.bitwise_count(some[:, :half, None] ^ some[:, None, half : half + 200])
    counts = np.cumsum(apart, axis=0, dtype=np.uint16)
    few = [number + 1 for number in range(n_words) if (counts[number] <= radius).mean() <= _FEW]
    return min(few, default=n_words)


def _in_order(pool: ThreadPoolExecutor, task: Any, items: Any) -> Iterator[Any]:
    """Results in order, with a few tasks ahead of the one that is waited for."""
    waiting: list[Any] = []
    for item in items:
        waiting.append(pool.submit(task, item))
        if len(waiting) > 2 * _threads():
            yield waiting.pop(0).result()
    for future in waiting:
        yield future.result()


def _threads() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
