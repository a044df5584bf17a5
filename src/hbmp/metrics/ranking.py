"""Rankings of the database by distance from each query, in bounded memory.

Smaller distance is closer: d = Σ_k α_k [q_k ≠ u_k], which orders like −Σ_k (α_k q_k) u_k. The second form also serves
real-valued queries. Two cases:

    plain       every bit counts the same: the distance is a popcount, and a bucket sort ranks by it
    weighted    w_k = α_k q_k is rounded to a power-of-two grid so coarse that its products with ±1 add up exactly in
                float64 (2^-49 of Σ|w_k|). The sum is rounded to one of 2^26 levels, or more if some w_k is very
                small. Equal codes are therefore equally far to the last bit, and distances that differ only by
                rounding, such as 0.1 + 0.2 and 0.3, are ties.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import ThreadpoolController

from hbmp import hamming
from hbmp.metrics.relevance import Relevance
from hbmp.metrics.sorting import DIGIT_BITS, bucket_sort, digit_sort

_THREAD_BYTES = 24 * 2**20  # of float64 distances per thread,
_BLOCK_BYTES = 64 * 2**20  # and all threads together
_EXACT_BITS = 50  # whole numbers to 2^53 are exact in float64
_SPARE_BITS = 10  # a level is at most a thousandth of the smallest weight
_MOST_THREADS = 8

Score = TypeVar("Score")
_LIMITING = threading.RLock()


@dataclass(frozen=True)
class RankedList:
    """The database in the order of one query, nearest first.

    Parameters
    ----------
    grades : ndarray of shape (n,)
        Grade of the item at each rank.
    find_bounds : callable
        Computes `bounds`, which only some tie rules need.
    """

    grades: NDArray[Any]
    find_bounds: Callable[[], NDArray[Any]]
    _kept: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def bounds(self) -> NDArray[Any]:
        """(levels + 1,) ranks where a run of equal distances begins, and n at the end; a level may be empty."""
        return self.find_bounds()

    def once(self, key: object, compute: Callable[[], Any]) -> Any:
        """The result of `compute`, computed once per key for all metrics that need it."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]


class PlainRanker:
    """Ranks by the number of differing bits."""

    def __init__(self, query_codes: NDArray[Any], database_codes: NDArray[Any]):
        self.shape = (len(query_codes), len(database_codes))
        self._n_bits = query_codes.shape[1]
        self._queries = _words(query_codes)  # (n_queries, words)
        self._database = np.ascontiguousarray(_words(database_codes).T)  # (words, n_database)

    def prepare(self, start: int, stop: int) -> NDArray[Any]:
        """The packed codes of queries start … stop-1, (stop - start, words), as `rank` needs them."""
        return self._queries[start:stop]

    def rank(self, query: NDArray[Any], grades: NDArray[Any], excluded: int | None) -> RankedList:
        """Rank the database for one prepared query; the excluded item comes last and alone."""
        distances = np.bitwise_count(self._database[0] ^ query[0]).astype(np.int64)
        for query_word, database_word in zip(query[1:], self._database[1:], strict=True):
            distances += np.bitwise_count(database_word ^ query_word)
        if excluded is not None:
            distances[excluded] = self._n_bits + 1
        order, bounds = bucket_sort(distances, self._n_bits + 2)
        return RankedList(grades.take(order), lambda: bounds)


class WeightedRanker:
    """Ranks by weighted distance, or by the inner product with real-valued queries."""

    def __init__(self, query_weights: NDArray[Any], database_codes: NDArray[Any]):
        self.shape = (len(query_weights), len(database_codes))
        self._n_digits = _digits_needed(query_weights)
        exponents = DIGIT_BITS * self._n_digits[:, None] - 1 - _EXACT_BITS
        self._weights = -np.ldexp(_whole_multiples(query_weights, _EXACT_BITS), exponents)
        self._signs = np.ascontiguousarray(database_codes.T, dtype=np.float64)

    def prepare(self, start: int, stop: int) -> list[tuple[NDArray[Any], int]]:
        """For queries start … stop-1: distances in units of a level (n_database,), up to a constant, and digits."""
        return list(zip(self._weights[start:stop] @ self._signs, self._n_digits[start:stop].tolist(), strict=True))

    def rank(self, query: tuple[NDArray[Any], int], grades: NDArray[Any], excluded: int | None) -> RankedList:
        """Rank the database for one prepared query; the excluded item comes last and alone."""
        distances, n_digits = query
        highest = 2 ** (DIGIT_BITS * n_digits)
        levels = (distances + (highest / 2 + 0.5)).astype(np.int64)  # rounded, and from 0 upwards
        if excluded is not None:
            levels[excluded] = highest + 1
        order = digit_sort(levels, n_digits)

        def find_bounds() -> NDArray[Any]:
            inner = np.flatnonzero(np.diff(levels.take(order))) + 1
            return np.concatenate([[0], inner, [len(order)]])

        return RankedList(grades.take(order), find_bounds)


Ranker = PlainRanker | WeightedRanker


def make_ranker(query_codes: ArrayLike, database_codes: ArrayLike, bit_weights: ArrayLike | None) -> Ranker:
    """The ranker for these codes: plain for sign queries without weights, else weighted."""
    database = hamming.check_codes(database_codes, name="database codes")
    queries = hamming.check_queries(query_codes, database.shape[1], name="query codes")
    if len(database) == 0:
        raise ValueError("The database is empty: there is nothing to rank. Pass at least one code.")
    if bit_weights is None and (queries.dtype == np.int8 or (np.abs(queries) == 1).all()):
        return PlainRanker(queries, database)
    weights = 1.0 if bit_weights is None else hamming.check_weights(bit_weights, database.shape[1])
    return WeightedRanker(queries.astype(np.float64) * weights, database)


def score_queries(
    ranker: Ranker,
    relevance: Relevance,
    score: Callable[[RankedList], Score],
    *,
    leave_one_out: bool = False,
) -> list[Score]:
    """The score of every query's ranked list, in the order of the queries.

    With `leave_one_out` query i is item i, which then comes last, alone and irrelevant. The queries of a block are
    sorted and scored on several threads. Grades are computed on the calling thread only, one block after the other.
    """
    n_threads = _n_threads()

    def score_part(numbers: NDArray[Any], grades: NDArray[Any]) -> list[Score]:
        prepared = ranker.prepare(numbers[0], numbers[-1] + 1)
        own_items = numbers if leave_one_out else [None] * len(numbers)
        return [score(ranker.rank(*query)) for query in zip(prepared, grades, own_items, strict=True)]

    scores: list[Score] = []
    with ThreadPoolExecutor(n_threads) as pool:
        for start, stop in query_blocks(*ranker.shape, n_threads):
            grades = relevance.grades(start, stop)
            if leave_one_out:
                grades = grades.copy()  # it may be a view of the caller's own matrix
                grades[np.arange(stop - start), np.arange(start, stop)] = 0
            n_parts = min(n_threads, stop - start)
            parts = np.array_split(np.arange(start, stop), n_parts), np.array_split(grades, n_parts)
            with _one_thread_per_product():
                scores.extend(chain.from_iterable(pool.map(score_part, *parts)))
    return scores


def query_blocks(n_queries: int, n_database: int, n_threads: int = 1) -> Iterator[tuple[int, int]]:
    """(start, stop) of the blocks of queries that are compared with the whole database at once."""
    step = n_threads * max(1, min(_THREAD_BYTES, _BLOCK_BYTES // n_threads) // (8 * n_database))
    return ((start, min(start + step, n_queries)) for start in range(0, n_queries, step))


@contextmanager
def _one_thread_per_product() -> Iterator[None]:
    """Limit the linear algebra library to one thread per call: its own threads would compete with ours.

    The limit holds for the whole process. The lock keeps two concurrent callers from leaving it behind.
    """
    with _LIMITING, _linear_algebra().limit(limits=1, user_api="blas"):
        yield


@cache
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()  # once, because searching the loaded libraries takes milliseconds


def _n_threads() -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, _MOST_THREADS)


def _words(signs: NDArray[Any]) -> NDArray[Any]:
    """Signs packed into 64-bit words, (n, ceil(bits / 64)) uint64."""
    packed = hamming.pack(signs)
    padded = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def _whole_multiples(weights: NDArray[Any], n_digits: int) -> NDArray[Any]:
    """Each row scaled by a power of two and rounded, so that its absolute sum stays below 2^n_digits."""
    totals = np.abs(weights).sum(axis=1, keepdims=True)
    exponents = n_digits - 1 - np.frexp(totals)[1]
    multiples: NDArray[Any] = np.rint(np.ldexp(weights, exponents))
    return multiples


def _digits_needed(weights: NDArray[Any]) -> NDArray[Any]:
    """How many sort digits, two to four, separate each row's smallest weight from zero, (n_queries,)."""
    sizes = np.abs(weights)
    smallest = np.where(sizes > 0, sizes, np.inf).min(axis=1)
    shares = np.clip(smallest / np.maximum(sizes.sum(axis=1), np.finfo(float).tiny), 2.0**-_EXACT_BITS, 1.0)
    digits: NDArray[Any] = np.clip(np.ceil((_SPARE_BITS - np.log2(shares)) / DIGIT_BITS), 2, 4).astype(np.int32)
    return digits
