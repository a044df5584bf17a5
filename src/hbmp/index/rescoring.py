"""Re-rank candidates by the original vectors: codes propose, vectors decide.

    distances, ids = index.search(model.transform(Q), 100)
    distances, ids = hbmp.rescore(Q, ids, vectors, k=10)      # vectors: an array, a memory map, or a function of ids

Distances grow, as those of an index do: 1 - cosine, the negative inner product, or the Euclidean distance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Fetch = Callable[[NDArray[np.int64]], ArrayLike]

METRICS = ("cosine", "ip", "l2")
_VALUES_AT_ONCE = 1 << 22  # coordinates of candidates held at a time


def rescore(
    queries: ArrayLike,
    candidates: ArrayLike,
    vectors: ArrayLike | Fetch,
    *,
    k: int = 10,
    metric: Literal["cosine", "ip", "l2"] = "cosine",
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Re-rank the candidates of each query by the original vectors, exactly.

    Parameters
    ----------
    queries : array-like of shape (n_queries, d)
        The original vectors of the queries.
    candidates : array-like of int of shape (n_queries, c)
        Ids of candidates from any index. Negative ids are padding, and an id counts once per query.
    vectors : array-like of shape (n, d), or callable
        The original vectors. Row i belongs to id i. Any numeric type works, for example a memory map of float16 or
        int8; only the rows of candidates are read. A callable gets an ascending array of distinct ids and returns
        their vectors, one row per id.
    k : int, default=10
        Number of results per query.
    metric : {"cosine", "ip", "l2"}, default="cosine"
        Distance: 1 - cosine, the negative inner product, or the Euclidean distance. A vector of zeros has cosine 0
        with every vector.

    Returns
    -------
    distances : ndarray of shape (n_queries, k), float32
        Ascending, padded with infinity. Candidates at the same distance keep their order.
    ids : ndarray of shape (n_queries, k), int64
        Padded with -1.

    Raises
    ------
    ValueError
        If the shapes do not fit or a distance is not finite.
    IndexError
        If an id is not a row of `vectors`.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], dtype=np.float16)
    >>> distances, ids = hbmp.rescore([[1.0, 0.0]], [[2, 1, 0, -1]], vectors, k=2)
    >>> ids
    array([[0, 1]])

    Vectors from elsewhere, here int8 with a scale for each dimension:

    >>> stored, scales = np.array([[127, 0], [100, 76]], dtype=np.int8), np.array([0.008, 0.008])
    >>> hbmp.rescore([[1.0, 0.0]], [[1, 0]], lambda ids: stored[ids] * scales, k=1, metric="ip")[1]
    array([[0]])
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be 'cosine', 'ip' or 'l2', found {metric!r}.")
    if isinstance(k, bool) or int(k) != k or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, found {k!r}.")
    rows = _numbers(queries, "queries")
    ids = _without_repeats(_as_candidates(candidates, len(rows)))
    fetch = vectors if callable(vectors) else _rows_of(vectors)
    distances = np.full((len(rows), k), np.inf, dtype=np.float32)
    found = np.full((len(rows), k), -1, dtype=np.int64)
    step = max(1, _VALUES_AT_ONCE // max(ids.shape[1] * rows.shape[1], 1))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        measured = _distances(rows[part], ids[part], fetch, metric)
        order = np.argsort(measured, axis=1, kind="stable")[:, :k]
        width = order.shape[1]
        distances[part, :width] = np.take_along_axis(measured, order, axis=1)
        found[part, :width] = np.take_along_axis(ids[part], order, axis=1)
    return distances, found


def _distances(queries: NDArray[Any], ids: NDArray[np.int64], fetch: Fetch, metric: str) -> NDArray[np.float64]:
    """Distance of each candidate, (n, c); infinity for padding. Each distinct id is fetched once."""
    measured = np.full(ids.shape, np.inf)
    given = ids >= 0
    if not given.any():
        return measured
    distinct, places = np.unique(ids[given], return_inverse=True)
    table = _numbers(fetch(distinct), "vectors")
    if table.shape != (len(distinct), queries.shape[1]):
        raise ValueError(
            f"{len(distinct)} vectors of dimension {queries.shape[1]} are needed, as the queries have, found an array "
            f"of shape {table.shape}."
        )
    if metric == "cosine":
        queries, table = _unit(queries), _unit(table)
    of_query = np.nonzero(given)[0]
    values = np.empty(len(places))
    step = max(1, _VALUES_AT_ONCE // max(queries.shape[1], 1))
    for start in range(0, len(places), step):
        part = slice(start, start + step)
        left, right = queries[of_query[part]], table[places[part]]
        if metric == "l2":
            values[part] = np.sqrt(np.square(left - right).sum(axis=1))
        else:
            values[part] = -np.einsum("ij,ij->i", left, right)
    if not np.isfinite(values).all():
        raise ValueError("Distances must be finite: the queries or vectors hold NaN, infinity or overflowing numbers.")
    measured[given] = np.maximum(1 + values, 0) if metric == "cosine" else values
    return measured


def _rows_of(vectors: ArrayLike) -> Fetch:
    """Rows of an array by id; a memory map stays on disk."""
    table = vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors)
    if table.ndim != 2 or table.dtype.kind not in "buif":
        raise ValueError(f"vectors must be an array of numbers of shape (n, d), found {table.dtype} {table.shape}.")

    def fetch(ids: NDArray[np.int64]) -> NDArray[Any]:
        if len(ids) and ids[-1] >= len(table):
            raise IndexError(
                f"Id {ids[-1]} is not a row of vectors, which has {len(table)}. Pass one row per id, or a callable "
                "that returns the vectors of given ids."
            )
        return np.asarray(table[ids])

    return fetch


def _as_candidates(candidates: ArrayLike, n_queries: int) -> NDArray[np.int64]:
    ids = np.asarray(candidates)
    if ids.size == 0 and ids.dtype.kind == "f":  # an empty list
        ids = ids.astype(np.int64)
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or len(ids) != n_queries:
        raise ValueError(
            f"candidates must be whole numbers of shape (n_queries, c) with one row for each of the {n_queries} "
            f"queries, found {ids.dtype} {ids.shape}."
        )
    return ids.astype(np.int64)


def _without_repeats(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same ids with -1 where an id stands further left already."""
    order = np.argsort(ids, axis=1, kind="stable")
    ascending = np.take_along_axis(ids, order, axis=1)
    repeated = np.zeros(ids.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
    return np.where(repeated | (ids < 0), np.int64(-1), ids)


def _numbers(rows: ArrayLike, name: str) -> NDArray[np.float64]:
    found = np.asarray(rows)
    if found.ndim != 2 or found.dtype.kind not in "buif":
        raise ValueError(f"{name} must be an array of numbers of shape (n, d), found {found.dtype} {found.shape}.")
    return found.astype(np.float64)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of unit length; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
