"""The database in the order one query sees it, for every query, in bounded memory.

Smaller distance is closer: d = Σ_k α_k [q_k ≠ u_k], which orders like −Σ_k (α_k q_k) u_k. The second form also serves
real-valued queries. Two cases:

    plain       every bit counts the same: the distance is a popcount, sorted by NumPy's radix sort
    weighted    w_k = α_k q_k is rounded to whole multiples of a power of two, so small that the products with ±1 add up
                exactly in float64. Items at equal distance are then equal to the last bit whatever the order of
                summation, and ties are true ties.

In the weighted case the sorted key is level · 2^p + position in the database: one unique float64 per item, so a plain
sort is a stable sort. With n = 2^p database codes, 52 − p binary digits are left for the distance (36 for 65,536 codes):
finer than float32 distances, which have 24.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hbmp import hamming
from hbmp.metrics.relevance import Relevance

_BLOCK_BYTES = 32 * 2**20
_EXACT_BITS = 52  # whole numbers up to 2^53 are exact in float64; one digit is kept for the sign


@dataclass(frozen=True)
class RankedList:
    """The database in the order one query sees it, nearest first.

    grades: (n,) grade of the item at each rank. bounds: (levels + 1,) ranks where a run of equal distances begins, and
    n at the end; level l covers ranks bounds[l] … bounds[l+1]-1 and may be empty.
    """

    grades: np.ndarray
    bounds: np.ndarray


class PlainRanker:
    """Ranks by the number of differing bits."""

    def __init__(self, query_codes: np.ndarray, database_codes: np.ndarray):
        self.n_queries, self.n_bits = query_codes.shape
        self.n_database = len(database_codes)
        self._queries = _words(query_codes)  # (n_queries, words)
        self._database = np.ascontiguousarray(_words(database_codes).T)  # (words, n_database)
        self._dtype = np.uint8 if self.n_bits < 255 else np.uint16 if self.n_bits < 65535 else np.uint32

    def levels(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """Hamming distance of each query of a block to every item, (n_database,) at a time."""
        for query in self._queries[start:stop]:
            distance = np.bitwise_count(self._database[0] ^ query[0]).astype(self._dtype, copy=False)
            for word in range(1, len(query)):
                distance += np.bitwise_count(self._database[word] ^ query[word])
            yield distance

    def order(self, level: np.ndarray, excluded: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Items nearest first, equal distances in database order, and the bounds of the levels."""
        if excluded is not None:
            level[excluded] = self.n_bits + 1
        counts = np.bincount(level, minlength=self.n_bits + 2)
        return np.argsort(level, kind="stable"), np.concatenate([[0], np.cumsum(counts)])


class WeightedRanker:
    """Ranks by weighted distance, or by the inner product with real-valued queries."""

    def __init__(self, query_weights: np.ndarray, database_codes: np.ndarray):
        self.n_queries, self.n_database = len(query_weights), len(database_codes)
        self._shift = max(self.n_database - 1, 1).bit_length()
        self._weights = _whole_multiples(query_weights, _EXACT_BITS - 1 - self._shift)
        self._database = np.ascontiguousarray(database_codes.T, dtype=np.float64)

    def levels(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """Keys of each query of a block, (n_database,) at a time: distance level above, database position below."""
        keys = self._weights[start:stop] @ self._database
        keys *= -float(2**self._shift)
        keys += np.arange(self.n_database)
        yield from keys

    def order(self, level: np.ndarray, excluded: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Items nearest first, equal distances in database order, and the bounds of the levels."""
        if excluded is not None:
            level[excluded] = 2.0**_EXACT_BITS + excluded
        level.sort()
        whole = level.astype(np.int64)
        new_level = np.flatnonzero(np.diff(whole >> self._shift)) + 1
        return whole & (2**self._shift - 1), np.concatenate([[0], new_level, [len(whole)]])


def ranker(query_codes, database_codes, bit_weights) -> PlainRanker | WeightedRanker:
    """The ranker for these codes: plain for sign queries without weights, else weighted."""
    database = hamming.check_codes(database_codes, name="database codes")
    queries = hamming.check_queries(query_codes, database.shape[1], name="query codes")
    if bit_weights is None and (queries.dtype == np.int8 or (np.abs(queries) == 1).all()):
        return PlainRanker(queries, database)
    weights = (
        np.ones(database.shape[1]) if bit_weights is None else hamming.check_weights(bit_weights, database.shape[1])
    )
    return WeightedRanker(queries * weights, database)


def ranked_lists(ranks: PlainRanker | WeightedRanker, relevance: Relevance, *, leave_one_out: bool = False):
    """One RankedList a query. leave_one_out: query i is item i, which then comes last, alone and irrelevant."""
    n_block = block_size(ranks.n_database)
    for start in range(0, ranks.n_queries, n_block):
        stop = min(start + n_block, ranks.n_queries)
        grades = relevance.grades(start, stop)
        for row, level in enumerate(ranks.levels(start, stop)):
            order, bounds = ranks.order(level, start + row if leave_one_out else None)
            ranked = grades[row].take(order)
            if leave_one_out:
                ranked[-1] = 0
            yield RankedList(ranked, bounds)


def block_size(n_database: int) -> int:
    """How many queries are held against the whole database at a time."""
    return max(1, _BLOCK_BYTES // (8 * max(n_database, 1)))


def _words(signs: np.ndarray) -> np.ndarray:
    """Signs packed into 64-bit words, (n, ceil(bits / 64)) uint64."""
    packed = hamming.pack(signs)
    padded = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def _whole_multiples(weights: np.ndarray, n_digits: int) -> np.ndarray:
    """Each row scaled by a power of two and rounded, so that its absolute sum stays below 2^n_digits."""
    totals = np.abs(weights).sum(axis=1)
    exponents = np.where(totals > 0, n_digits - 1 - np.frexp(np.maximum(totals, np.finfo(float).tiny))[1], 0)
    return np.rint(np.ldexp(weights, exponents[:, None]))
