"""The interface of all stores: `add`, `search`, `count`, `drop`, with the same results for every engine.

    u      code        (n_bits,)  bits in the binary type of the engine, for Hamming distance
    u      signs       (n_bits,)  the same code as ±1 in half precision, for inner products
    α∘q    vector      (n_bits,)  weighted query; a large product with the signs is a small distance

An engine proposes candidates, by Hamming distance or by the product of α∘q with the signs. These `oversample * k`
candidates are ranked again with the exact distance of `hbmp.hamming`, ties by id. So every result has its exact
distance, and an approximate index can only miss items.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import hamming

CANDIDATES = ("auto", "hamming", "product")
_QUERIES_AT_ONCE = 256
_RESULTS_AT_ONCE = 1_000_000


class Neighbours(NamedTuple):
    """Candidates of one query: ids (m,) int64 and distances (m,) of the engine."""

    ids: NDArray[np.int64]
    distances: NDArray[Any]


class Store(ABC):
    """Codes in a database engine; a context manager that closes its connection.

    Parameters
    ----------
    n_bits : int
        Code length.

    Attributes
    ----------
    n_bits : int
        Code length.
    most_results : int or None
        Largest number of results per query, if the engine has a limit.

    Examples
    --------
    >>> import hbmp
    >>> issubclass(hbmp.stores.PGVector, hbmp.stores.Store)
    True
    """

    most_results: int | None = None

    def __init__(self, n_bits: int):
        hamming.bytes_for(n_bits)  # refuses an invalid number of bits
        self.n_bits = int(n_bits)
        self._open = True

    def add(self, codes: ArrayLike, ids: ArrayLike, *, batch_size: int = 10_000) -> None:
        """Write codes under ids; an existing id gets the new code.

        All arguments are checked before anything is sent.

        Parameters
        ----------
        codes : array-like of shape (n, n_bits)
            Signs, -1 and +1.
        ids : array-like of int of shape (n,)
            Distinct ids, not negative.
        batch_size : int, default=10_000
            Rows per request.
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
        """Find the nearest codes of each query.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_bits)
            Signs, or real-valued scores.
        k : int
            Number of codes per query.
        bit_weights : array-like of shape (n_bits,), default=None
            Weight of each bit in the distance; plain Hamming distance where it is None.
        candidates : {"auto", "hamming", "product"}, default="auto"
            Measure of the engine for candidates. "auto" is "hamming" for signs without weights, else "product".
        oversample : float, default=10.0
            The engine proposes `oversample * k` candidates, which are ranked exactly.

        Returns
        -------
        distances : ndarray of shape (n_queries, k), float32
            Weighted Hamming distances, ascending; infinity where fewer than `k` are found.
        ids : ndarray of shape (n_queries, k), int64
            Their ids; -1 where fewer than `k` are found.
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
            raise ValueError(
                f"{type(self).__name__} returns at most {self.most_results} results per query, found k={k}."
            )
        if not (math.isfinite(oversample) and oversample >= 1):
            raise ValueError(f"oversample must be at least 1, found {oversample!r}.")
        n_candidates = math.ceil(k * oversample)
        return n_candidates if self.most_results is None else min(n_candidates, self.most_results)

    def _exactly(self, found: list[Neighbours], vectors: NDArray[Any], offsets: NDArray[Any]) -> list[Neighbours]:
        """The candidates with their exact distances, without those deleted meanwhile."""
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
        """Close the connection; the codes stay."""
        if self._open:
            self._open = False
            self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._open:
            raise ValueError(f"This {type(self).__name__} store is closed; open it again.")

    @abstractmethod
    def count(self) -> int:
        """Number of codes.

        Returns
        -------
        int
        """

    @abstractmethod
    def drop(self) -> None:
        """Delete all codes and their indexes, and close the connection."""

    @abstractmethod
    def _upsert(self, codes: NDArray[np.int8], ids: NDArray[np.int64], batch_size: int) -> None: ...

    @abstractmethod
    def _nearest_by_bits(self, signs: NDArray[np.int8], n: int) -> list[Neighbours]: ...

    @abstractmethod
    def _nearest_by_product(self, vectors: NDArray[np.float16], n: int) -> list[Neighbours]: ...

    @abstractmethod
    def _fetch(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """The existing ids, in any order, and their codes."""

    @abstractmethod
    def _disconnect(self) -> None: ...


def check_ids(ids: ArrayLike, n: int) -> NDArray[np.int64]:
    """Check the ids of codes.

    Parameters
    ----------
    ids : array-like of int of shape (n,)
        Whole numbers, distinct and not negative, as -1 marks a missing result.
    n : int
        Number of codes.

    Returns
    -------
    ndarray of shape (n,), int64

    Examples
    --------
    >>> from hbmp.stores import check_ids
    >>> check_ids([7, 3], 2).dtype
    dtype('int64')
    """
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
        raise ValueError(f"Ids must be distinct, found {twice} more than once.")
    return ids


def check_name(name: str, what: str) -> str:
    """Check the name of a table or collection.

    Parameters
    ----------
    name : str
        A letter or underscore, then letters, digits and underscores; 63 characters at most.
    what : str
        The word for it in the error message.

    Returns
    -------
    str
        The name.

    Examples
    --------
    >>> from hbmp.stores import check_name
    >>> check_name("hbmp_codes", "table")
    'hbmp_codes'
    """
    if not (isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name)):
        raise ValueError(f"The name of a {what} has letters, digits and underscores, 63 at most, found {name!r}.")
    return name


def _half_precision(vectors: NDArray[np.float64]) -> NDArray[np.float16]:
    """Vectors in half precision, scaled to a largest entry of one, which changes no ranking."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    return (vectors / np.where(largest > 0, largest, 1)).astype(np.float16)
