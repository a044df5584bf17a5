"""The interface of all stores: `add`, `search`, `remove`, `count`, `drop`, with the same results for every engine.

    u      code        (n_bits,)  bits in the binary type of the engine, for Hamming distance
    u      signs       (n_bits,)  the same code as ±1 in half precision, for inner products
    α∘q    vector      (n_bits,)  weighted query; a large product with the signs is a small distance

An engine proposes candidates, by Hamming distance or by the product of α∘q with the signs. These `oversample * k`
candidates are ranked again with the exact distance of `hbmp.hamming`, ties by id. So every result has its exact
distance, and an approximate index can only miss items.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import hamming
from hbmp._core.filters import Condition, Where, conditions
from hbmp.stores._shared.columns import check_columns, check_values
from hbmp.stores._shared.names import check_ids

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
    columns : mapping of str to type, default=None
        Columns in addition to the codes, such as ``{"brand": str, "price": float}``; kinds are str, int, float and
        bool.

    Attributes
    ----------
    n_bits : int
        Code length.
    columns : dict of str to type
        Columns in addition to the codes.
    most_results : int or None
        Largest number of results per query, if the engine has a limit.

    Examples
    --------
    >>> import hbmp
    >>> issubclass(hbmp.stores.PGVector, hbmp.stores.Store)
    True
    """

    most_results: int | None = None

    def __init__(self, n_bits: int, columns: Mapping[str, type] | None = None):
        hamming.bytes_for(n_bits)  # refuses an invalid number of bits
        self.n_bits = int(n_bits)
        self.columns = check_columns(columns)
        self._open = True

    def add(
        self,
        codes: ArrayLike,
        ids: ArrayLike,
        *,
        values: Mapping[str, Any] | None = None,
        batch_size: int = 10_000,
    ) -> None:
        """Write codes under ids; an existing id gets the new code and values.

        All arguments are checked before anything is sent.

        Parameters
        ----------
        codes : array-like of shape (n, n_bits)
            Signs, -1 and +1.
        ids : array-like of int of shape (n,)
            Distinct ids, not negative.
        values : mapping of str to sequence, default=None
            One value per row for each of `columns`, such as ``{"brand": ["sony", "canon"]}``.
        batch_size : int, default=10_000
            Rows per request.
        """
        self._check_open()
        codes = hamming.check_codes(codes, self.n_bits)
        ids = check_ids(ids, len(codes))
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, found {batch_size}.")
        kept = check_values(self.columns, values, len(codes))
        if len(ids):
            self._upsert(codes, ids, kept, batch_size)

    def remove(self, ids: ArrayLike) -> int:
        """Delete codes; ids that do not exist are passed over.

        Parameters
        ----------
        ids : array-like of int of shape (n,)
            Distinct ids.

        Returns
        -------
        int
            Number of deleted codes.
        """
        self._check_open()
        wanted = np.asarray(ids)
        wanted = check_ids(wanted, wanted.size)
        return self._delete(wanted) if len(wanted) else 0

    def search(
        self,
        queries: ArrayLike,
        k: int,
        *,
        bit_weights: ArrayLike | None = None,
        where: Where | None = None,
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
            Weight of each bit in the distance; plain Hamming distance if None.
        where : mapping, default=None
            Conditions on `columns`, all of which must hold: ``{"brand": "sony"}``, ``{"brand": ["sony", "canon"]}``,
            ``{"price": {">=": 10, "<": 20}}``. The engine filters first, so there are k results if k rows match.
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
        holds = conditions(where, self.columns)
        plain = weights is None and queries.dtype == np.int8
        if candidates not in CANDIDATES:
            raise ValueError(f"candidates must be one of {', '.join(CANDIDATES)}, found {candidates!r}.")
        by_bits = plain if candidates == "auto" else candidates == "hamming"
        distances = np.full((len(queries), k), np.inf, np.float32)
        ids = np.full((len(queries), k), -1, np.int64)
        if any(condition.operator == "in" and not condition.value for condition in holds):
            return distances, ids
        at_once = max(1, min(_QUERIES_AT_ONCE, _RESULTS_AT_ONCE // n_candidates))
        for start in range(0, len(queries), at_once):
            block = queries[start : start + at_once]
            vectors, offsets = hamming.query_terms(block, weights)
            if by_bits:
                found = self._nearest_by_bits(hamming.signs(block), n_candidates, holds)
            else:
                found = self._nearest_by_product(_half_precision(vectors), n_candidates, holds)
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
        """The candidates with their exact distances, without those that have been deleted."""
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
        """Close the connection; the codes remain in the store."""
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
    def _upsert(
        self, codes: NDArray[np.int8], ids: NDArray[np.int64], values: dict[str, list[Any]], batch_size: int
    ) -> None: ...

    @abstractmethod
    def _delete(self, ids: NDArray[np.int64]) -> int:
        """Delete codes; the number of those that existed."""

    @abstractmethod
    def _nearest_by_bits(self, signs: NDArray[np.int8], n: int, where: list[Condition]) -> list[Neighbours]: ...

    @abstractmethod
    def _nearest_by_product(self, vectors: NDArray[np.float16], n: int, where: list[Condition]) -> list[Neighbours]: ...

    @abstractmethod
    def _fetch(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """The existing ids, in any order, and their codes."""

    @abstractmethod
    def _disconnect(self) -> None: ...


def _half_precision(vectors: NDArray[np.float64]) -> NDArray[np.float16]:
    """Vectors in half precision, scaled to a largest entry of one, which changes no ranking."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    return (vectors / np.where(largest > 0, largest, 1)).astype(np.float16)
