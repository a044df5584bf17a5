"""What every store offers: `add`, `search`, `count`, `drop`, the same answers whichever engine holds the codes.

    u      code        (n_bits,)  as bits in the engine's own binary type, for Hamming distance
    u      signs       (n_bits,)  the same code as ±1 numbers of half precision, for inner products
    α∘q    vector      (n_bits,)  what the engine multiplies with the signs: a large product is a small distance

An engine only proposes candidates, by one of two measures: bits that differ, or the product of α∘q with the signs.
The `oversample * k` it proposes are ranked again here with the exact distance of `hbmp.hamming`, ties by id. So a
result that is returned has its exact distance, and the only thing an approximate index can do is to miss one.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import hamming

CANDIDATES = ("auto", "hamming", "product")
_QUERIES_AT_ONCE = 256
_RESULTS_AT_ONCE = 1_000_000


class Neighbours(NamedTuple):
    """What an engine proposes for one query: ids (m,) int64 and, by the measure asked for, distances (m,)."""

    ids: NDArray[np.int64]
    distances: NDArray


class Store(ABC):
    """Codes of `n_bits` bits kept by a database; a context manager that closes its connection."""

    most_results: int | None = None  # that the engine gives for one query, where it has a limit

    def __init__(self, n_bits: int):
        hamming.bytes_for(n_bits)  # refuses what is no number of bits
        self.n_bits = int(n_bits)
        self._open = True

    def add(self, codes: ArrayLike, ids: ArrayLike, *, batch_size: int = 10_000) -> None:
        """Write codes (n, n_bits) in {-1, +1} under ids (n,); an id that is there already gets the new code.

        Everything is checked before anything is sent.
        """
        self._check_open()
        codes = hamming.check_codes(codes, self.n_bits)
        ids = check_ids(ids, len(codes))
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, found {batch_size}.")
        if len(ids):
            self._upsert(codes, ids, batch_size)

    def search(
        self,
        queries: ArrayLike,
        k: int,
        *,
        bit_weights: ArrayLike | None = None,
        candidates: str = "auto",
        oversample: float = 10.0,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The `k` nearest codes of every query: distances and ids, both (n_queries, k).

        queries (n_queries, n_bits) are signs, or real-valued scores. With `candidates="auto"` the engine proposes by
        Hamming distance where that is the distance asked for, and by the weighted inner product where `bit_weights`
        or scores are given; "hamming" and "product" fix the choice. It proposes `oversample * k`, which are ranked
        exactly. Where fewer than k are found, rows end in id -1 at distance infinity.
        """
        self._check_open()
        queries = hamming.check_queries(queries, self.n_bits)
        weights = None if bit_weights is None else hamming.check_weights(bit_weights, self.n_bits)
        n_candidates = self._check_size(k, oversample)
        plain = weights is None and queries.dtype == np.int8
        if candidates not in CANDIDATES:
            raise ValueError(f"candidates must be one of {', '.join(CANDIDATES)}, found {candidates!r}.")
        by_bits = plain if candidates == "auto" else candidates == "hamming"
        distances = np.full((len(queries), k), np.inf, np.float32)
        ids = np.full((len(queries), k), -1, np.int64)
        at_once = max(1, min(_QUERIES_AT_ONCE, _RESULTS_AT_ONCE // n_candidates))
        for start in range(0, len(queries), at_once):
            block = queries[start : start + at_once]
            vectors, offsets = hamming.query_terms(block, weights)
            if by_bits:
                found = self._nearest_by_bits(hamming.signs(block), n_candidates)
            else:
                found = self._nearest_by_product(_half_precision(vectors), n_candidates)
            if not (plain and by_bits):
                found = self._exactly(found, vectors, offsets)
            for row, neighbours in enumerate(found, start):
                best = np.lexsort((neighbours.ids, neighbours.distances))[:k]
                distances[row, : len(best)] = neighbours.distances[best]
                ids[row, : len(best)] = neighbours.ids[best]
        return distances, ids

    def _check_size(self, k: int, oversample: float) -> int:
        if int(k) != k or k < 1:
            raise ValueError(f"k must be a whole number, at least 1, found {k!r}.")
        if self.most_results is not None and k > self.most_results:
            raise ValueError(f"{type(self).__name__} gives at most {self.most_results} results a query, found k={k}.")
        if not (math.isfinite(oversample) and oversample >= 1):
            raise ValueError(f"oversample must be at least 1, found {oversample!r}.")
        n_candidates = math.ceil(k * oversample)
        return n_candidates if self.most_results is None else min(n_candidates, self.most_results)

    def _exactly(self, found: list[Neighbours], vectors: NDArray, offsets: NDArray) -> list[Neighbours]:
        """The same candidates with their exact distances; one that vanished since it was proposed is left out."""
        wanted = np.unique(np.concatenate([neighbours.ids for neighbours in found]))
        known, codes = self._fetch(wanted) if len(wanted) else (wanted, np.empty((0, self.n_bits), np.int8))
        order = np.argsort(known)
        known, codes = known[order], codes[order]
        ranked = []
        for neighbours, vector, offset in zip(found, vectors, offsets, strict=True):
            ids = neighbours.ids[np.isin(neighbours.ids, known)]
            signs = codes[np.searchsorted(known, ids)].T.astype(np.float64)
            exact = hamming.distances_from_terms(vector[None], offset[None], signs)[0]
            ranked.append(Neighbours(ids, exact.astype(np.float32)))
        return ranked

    def close(self) -> None:
        """Give the connection back; the codes stay."""
        if self._open:
            self._open = False
            self._disconnect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _check_open(self) -> None:
        if not self._open:
            raise ValueError(f"This {type(self).__name__} store is closed; open it again to use it.")

    @abstractmethod
    def count(self) -> int:
        """How many codes there are."""

    @abstractmethod
    def drop(self) -> None:
        """Delete the codes and what was built for them, and close."""

    @abstractmethod
    def _upsert(self, codes: NDArray[np.int8], ids: NDArray[np.int64], batch_size: int) -> None: ...

    @abstractmethod
    def _nearest_by_bits(self, signs: NDArray[np.int8], n: int) -> list[Neighbours]: ...

    @abstractmethod
    def _nearest_by_product(self, vectors: NDArray[np.float16], n: int) -> list[Neighbours]: ...

    @abstractmethod
    def _fetch(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """The ids that exist, in any order, and their codes."""

    @abstractmethod
    def _disconnect(self) -> None: ...


def check_ids(ids: ArrayLike, n: int) -> NDArray[np.int64]:
    """Ids as int64 (n,): whole, not negative (-1 marks a missing result), each once."""
    ids = np.asarray(ids)
    if ids.shape != (n,):
        raise ValueError(f"{n} codes need ids of shape ({n},), found {ids.shape}.")
    if n and ids.dtype.kind not in "iu":
        raise ValueError(f"The ids must be whole numbers, found dtype {ids.dtype}.")
    if n and (ids.min() < 0 or ids.max() > np.iinfo(np.int64).max):
        raise ValueError(f"The ids must lie between 0 and 2**63 - 1, found {ids.min()} to {ids.max()}.")
    ids = ids.astype(np.int64)
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < n:
        twice = values[counts > 1][0]
        raise ValueError(f"Every id may come once in a call, found {twice} more than once.")
    return ids


def check_name(name: str, what: str) -> str:
    """A table's or a collection's name: a letter or underscore, then letters, digits and underscores, at most 63."""
    if not (isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name)):
        raise ValueError(f"A {what} is named with letters, digits and underscores, 63 at most, found {name!r}.")
    return name


def _half_precision(vectors: NDArray[np.float64]) -> NDArray[np.float16]:
    """Vectors scaled to a largest entry of one, which no ranking notices and half precision always holds."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    return (vectors / np.where(largest > 0, largest, 1)).astype(np.float16)
