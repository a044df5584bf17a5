"""Exact search by counting bits: integer lower bounds for all codes, exact distances for the few that may be results.

`index.loops` holds the compiled loops and their mathematics, `index.balls` the order in which codes are visited. Small
segments and installations without numba are searched by `index.scan` alone.
"""

from __future__ import annotations

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbmp.index.balls import Balls, as_words
from hbmp.index.query import QueryBatch

if TYPE_CHECKING:
    from hbmp.index.grouped import Groups

_SMALLEST = 1e-30  # the sum of |v| of a query; levels of smaller ones would not be exact enough
_BALLS_AFTER = 256  # queries: balls cost about as much as a thousand
_BALLS_FROM = 1 << 14  # codes
_TRIED = 64  # codes that are searched to see whether balls rule out enough
_MOST_VISITED = 0.6  # share of the codes; beyond it, balls do not pay
_BYTES_AT_ONCE = 1 << 15
_WORK_PER_THREAD = 1 << 24  # codes times queries
_MISSING = np.iinfo(np.uint64).max
_NO_STARTS, _NO_MEMBERS = np.empty(0, np.int64), np.empty(0, np.uint32)


Results = tuple[NDArray[np.float32], NDArray[np.int64]]  # distances, positions


class Prepared(NamedTuple):
    """Queries as the loops read them; `index.loops` names the parts."""

    signs: NDArray[np.uint64]
    sizes: NDArray[np.float64]
    planes: NDArray[np.uint64]
    tiers: NDArray[np.uint64]
    facts: NDArray[np.float64]


@functools.cache
def available() -> bool:
    """Whether loops can be compiled."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def suits(batch: QueryBatch) -> bool:
    """Whether no query is so small that its levels would underflow."""
    if batch.offsets.min() >= _SMALLEST:  # Σ α_k |q_k| is at most the sum of |v|
        return True
    sizes = batch.sizes()
    return not ((sizes > 0) & (sizes < _SMALLEST)).any()


class CountedCodes:
    """The codes of a segment as 64-bit words, in balls once that pays."""

    def __init__(self, rows: NDArray[np.uint8], brief: bool = False):
        self._balls = Balls.one(as_words(rows))
        self._queries_left = None if brief or len(rows) < _BALLS_FROM else _BALLS_AFTER
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of the words, where they are a copy of the codes, and of the balls."""
        return self._balls.nbytes

    def nearest(self, batch: QueryBatch, k: int, groups: Groups | None = None) -> Results:
        """Distances and positions (n, k) of the nearest codes or, where they are those of groups, of their members.

        k is at most the number of codes.
        """
        from hbmp.index.answer_loops import answer_in_order

        balls = self._balls_for(batch)
        if len(balls.order):
            return _nearest_in_balls(balls, batch, k, groups)[0]
        at_once = max(128, _BYTES_AT_ONCE // (8 * len(balls.words)))
        return _answers(answer_in_order, (balls.words, balls.order, at_once), balls.words.size, batch, k, groups)

    def within(self, batch: QueryBatch, radii: NDArray[np.float64]) -> list[NDArray[np.uint64]]:
        """Sorted keys of every code within each query's radius."""
        queries, balls = prepare(batch, len(self._balls.words)), self._balls_for(batch)
        return [_within(balls, queries, row, float(radius)) for row, radius in enumerate(radii)]

    def _balls_for(self, batch: QueryBatch) -> Balls:
        """The balls, made when enough queries have come that they will have paid for themselves."""
        if self._queries_left is None:
            return self._balls
        with self._lock:
            if self._queries_left is not None:
                self._queries_left -= len(batch)
                if self._queries_left <= 0:
                    self._balls, self._queries_left = _balls_that_pay(self._balls, batch), None
        return self._balls


def nearest_in_lists(
    layout: tuple[NDArray[Any], ...],
    centroids: NDArray[np.float32],
    inverse: NDArray[np.float32],
    n_probe: int,
    batch: QueryBatch,
    k: int,
    groups: Groups | None,
) -> Results:
    """Distances and positions (n, k) of the nearest in inverted lists; `index.list_loops` names the arguments."""
    from hbmp.index.answer_loops import answer_in_lists

    n_counted = layout[0].size * n_probe // centroids.shape[1]
    return _answers(answer_in_lists, (*layout, centroids, inverse, n_probe), n_counted, batch, k, groups)


def prepare(batch: QueryBatch, n_words: int) -> Prepared:
    """Signs, levels and tiers of the queries."""
    from hbmp.index import loops

    return Prepared(*loops.prepared(np.ascontiguousarray(batch.vectors), batch.offsets, n_words))


def _nearest_in_balls(
    balls: Balls, batch: QueryBatch, k: int, groups: Groups | None = None
) -> tuple[Results, NDArray[np.int64]]:
    """Results (n, k), and how many codes were looked at for each query."""
    from hbmp.index.answer_loops import answer_in_balls

    visited = np.zeros(len(batch), np.int64)
    n_counted = balls.words.size
    return _answers(answer_in_balls, _fields(balls), n_counted, batch, k, groups, visited), visited


def _within(balls: Balls, queries: Prepared, row: int, radius: float) -> NDArray[np.uint64]:
    """Sorted keys of every code within a radius of one query."""
    from hbmp.index import ball_loops, loops

    signs, sizes, planes, tiers, facts = queries
    spans = np.array([[0, balls.words.shape[1]]])
    if len(balls.order):
        near = np.empty(len(balls), bool)
        ball_loops.near_balls(*_fields(balls)[3:], *queries, radius, row, near)
        spans = np.stack([balls.starts[:-1], balls.starts[1:]], axis=1)[near]
    loops.grade_for(row, radius, sizes, planes, tiers, facts)

    def search(found: NDArray[np.uint64]) -> int:
        n_found = 0
        for first, last in spans:
            n_found = loops.within_in_order(
                balls.words, first, last, balls.order, signs, sizes, planes, facts, radius, row, found, n_found
            )
        return n_found

    found = np.empty(1 << 12, np.uint64)
    n_found = search(found)
    if n_found > len(found):
        found = np.empty(n_found, np.uint64)
        search(found)
    return np.sort(found[:n_found])


def _fields(balls: Balls) -> tuple[NDArray[Any], ...]:
    spheres = balls.centres, balls.radii, balls.reaches, balls.weights, balls.mask
    return balls.words, balls.order, balls.starts, *spheres


def _balls_that_pay(single: Balls, batch: QueryBatch) -> Balls:
    """Balls, or still the single one where a trial search with codes of the segment rules out too little."""
    words = single.words
    balls = Balls.around_centres(words, batch.vectors)
    tried = words.T[:: max(1, words.shape[1] // _TRIED)][:_TRIED]
    signs = np.unpackbits(np.ascontiguousarray(tried, "<u8").view(np.uint8), axis=1, bitorder="little")
    sizes = np.abs(batch.vectors).mean(axis=0)
    vectors = np.where(signs[:, : len(sizes)] > 0, sizes, -sizes)
    trial = QueryBatch(vectors, np.full(len(vectors), sizes.sum()), None)
    if not suits(trial):
        return single
    _, visited = _nearest_in_balls(balls, trial, min(10, words.shape[1]))
    return balls if visited.mean() <= _MOST_VISITED * words.shape[1] else single


def _answers(
    loop: Any,
    arguments: tuple[Any, ...],
    n_counted: int,
    batch: QueryBatch,
    k: int,
    groups: Groups | None,
    *counts: NDArray[np.int64],
) -> Results:
    """Results (n, k) of one of `index.answer_loops`, which counts so many words for each query, and its own counts."""
    found, positions = np.empty((len(batch), k), np.float32), np.empty((len(batch), k), np.int64)
    starts, members = (_NO_STARTS, _NO_MEMBERS) if groups is None else (groups.starts, groups.members)
    # Contiguous, because numba compiles the loops once more for any other layout.
    by_query = *counts, np.ascontiguousarray(batch.vectors), batch.offsets

    n_threads = _threads_for(n_counted, len(batch))
    if n_threads == 1:
        loop(*arguments, *by_query, starts, members, found, positions)
        return found, positions

    def search(first: int, last: int) -> None:
        own = (part[first:last] for part in by_query)
        loop(*arguments, *own, starts, members, found[first:last], positions[first:last])

    limits = np.linspace(0, len(batch), n_threads + 1).astype(int)
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(search, limits[:-1], limits[1:]))
    return found, positions


def _threads_for(n_counted: int, n_queries: int) -> int:
    """As many threads as FAISS may use, if there is enough to do."""
    most = min(n_queries, n_counted * n_queries // _WORK_PER_THREAD)
    if most <= 1:
        return 1
    import faiss

    return max(1, min(most, faiss.omp_get_max_threads()))
