"""Batches of pixels decoded ahead in threads, in order, at most a few in memory.

Threads, not processes: Pillow lets other threads run while it decodes and scales, and pixels need no copying between
them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

AHEAD = 2  # batches decoded before they are asked for
_PIECE = 4  # images a thread takes at a time

# Fills pixels (k, size, size, 3) with the images of rows (k,); gives an error or None for each.
Fill = Callable[[np.ndarray, np.ndarray], list]


def decoded_batches(
    fill: Fill, n_images: int, batch_size: int, size: int, workers: int
) -> Iterator[tuple[np.ndarray, np.ndarray, list]]:
    """(rows, pixels, an error or None for each row) of every batch in order; with no workers, when it is asked for."""
    empty = (_empty(start, min(start + batch_size, n_images), size) for start in range(0, n_images, batch_size))
    if workers == 0:
        for rows, pixels in empty:
            yield rows, pixels, fill(pixels, rows)
        return
    begun: deque[tuple[np.ndarray, np.ndarray, list[Future]]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="hbmp-images")
    try:
        for rows, pixels in empty:
            pieces = [slice(first, first + _PIECE) for first in range(0, len(rows), _PIECE)]
            begun.append((rows, pixels, [pool.submit(fill, pixels[piece], rows[piece]) for piece in pieces]))
            if len(begun) > AHEAD:
                yield _finished(*begun.popleft())
        while begun:
            yield _finished(*begun.popleft())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _empty(start: int, stop: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(start, stop), np.empty((stop - start, size, size, 3), dtype=np.uint8)


def _finished(rows: np.ndarray, pixels: np.ndarray, work: list[Future]) -> tuple[np.ndarray, np.ndarray, list]:
    return rows, pixels, [error for piece in work for error in piece.result()]
