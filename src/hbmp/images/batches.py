"""Batches of pixels, decoded ahead in threads and in order, a few at a time in memory.

Threads suffice, because Pillow releases the interpreter lock while it decodes and scales. Unlike processes, they need
no copies of pixels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

AHEAD = 2  # batches decoded ahead
_PIECE = 4  # images per task of a thread

# Fills pixels (k, size, size, 3) with the images of rows (k,); returns an error or None for each.
Fill = Callable[[np.ndarray, np.ndarray], list[Any]]


def decoded_batches(
    fill: Fill, n_images: int, batch_size: int, size: int, workers: int
) -> Iterator[tuple[np.ndarray, np.ndarray, list[Any]]]:
    """(rows, pixels, an error or None per row) of every batch in order; without workers, decoded on demand."""
    empty = (_empty(start, min(start + batch_size, n_images), size) for start in range(0, n_images, batch_size))
    if workers == 0:
        for rows, pixels in empty:
            yield rows, pixels, fill(pixels, rows)
        return
    begun: deque[tuple[np.ndarray, np.ndarray, list[Future[list[Any]]]]] = deque()
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


def _finished(
    rows: np.ndarray, pixels: np.ndarray, work: list[Future[list[Any]]]
) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    return rows, pixels, [error for piece in work for error in piece.result()]
