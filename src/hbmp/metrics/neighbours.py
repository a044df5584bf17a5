"""How well codes find the right items, not just the right kind: the nearest by the original vectors.

    S_ij     cosine of query vector i and database vector j
    N_i(k)   the k items of largest S_ij, of those that share a label with query i where labels are given
    recall   |N_i(k) ∩ the first items by codes| / |N_i(k)|

Unit vectors are rounded to a grid of 2^-25, on which cosines add up exactly in float64. So identical vectors tie
exactly, and blocks of any size give the same neighbours. Ties at the k-th cosine go to the first in the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp.metrics.precision import EMPTY_RULES, hits_scorer
from hbmp.metrics.ranking import make_ranker, score_queries
from hbmp.metrics.relevance import Relevance, as_relevance
from hbmp.metrics.settings import check_choice, mean_of

_GRID = 2.0**25  # squared, and summed over unit vectors, below 2^53
_VALUES_AT_ONCE = 1 << 24  # coordinates normalised at a time


class Nearest:
    """Relevance of the nearest vectors: 1 for the k nearest of a query, of its label where labels are given.

    Several levels give grades: with `levels=(10, 100)` the ten nearest have grade 2, the next ninety grade 1.

    Parameters
    ----------
    query_vectors, database_vectors : array of shape (n, d)
        The original vectors. Neighbours are near by cosine; a vector of zeros has cosine 0 with all others.
    query_labels, database_labels : array of shape (n,) or (n, c), default=None
        Classes, or 0/1 label matrices. If given, only items that share a label with the query are its neighbours.
    levels : sequence of int, default=(10,)
        Numbers of neighbours. An item gets one grade for each level it is within.
    label_grade : int, default=0
        Grade of every item that shares a label, added to the levels. With 1 the ranking is graded "label, then
        nearness".

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.metrics import Nearest
    >>> vectors = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [1.0, 0.5]])
    >>> Nearest(vectors[:1], vectors[1:], levels=(1, 2)).grades(0, 1)
    array([[2, 0, 1]], dtype=uint8)
    """

    shape: tuple[int, int]

    def __init__(
        self,
        query_vectors: ArrayLike,
        database_vectors: ArrayLike,
        query_labels: Any = None,
        database_labels: Any = None,
        *,
        levels: Sequence[int] = (10,),
        label_grade: int = 0,
    ) -> None:
        self._queries = _unit_rows(query_vectors, "query_vectors")
        self._database = _unit_rows(database_vectors, "database_vectors")
        if self._queries.shape[1] != self._database.shape[1]:
            raise ValueError(
                f"Query and database vectors must have the same dimension, found {self._queries.shape[1]} and "
                f"{self._database.shape[1]}."
            )
        self.shape = len(self._queries), len(self._database)
        self._levels = [_check_count(level, "levels") for level in levels]
        self._label_grade = int(label_grade)
        self._matches: Relevance | None = None
        if query_labels is not None or database_labels is not None:
            self._matches = as_relevance(query_labels, database_labels, None, self.shape)
        elif label_grade:
            raise ValueError("label_grade needs query_labels and database_labels. Pass both.")

    def grades(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Grades of queries start … stop-1, (stop - start, n_database)."""
        cosines = self._queries[start:stop] @ self._database.T
        total = np.zeros(cosines.shape, np.uint8)
        if self._matches is not None:
            matches = self._matches.grades(start, stop) > 0
            cosines[~matches] = -np.inf
            total += np.uint8(self._label_grade) * matches
        for level in self._levels:
            total += _among_nearest(cosines, level)
        return total


def neighbour_recall(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_vectors: ArrayLike,
    database_vectors: ArrayLike,
    *,
    k: int = 10,
    query_labels: Any = None,
    database_labels: Any = None,
    bit_weights: ArrayLike | None = None,
    cutoff: int | None = None,
    ties: str = "database",
    empty: str = "drop",
) -> float:
    """Share of the k nearest items by vectors that the codes rank among the first k.

    Parameters
    ----------
    query_codes : array of shape (n_queries, n_bits)
        Signs, or real-valued scores.
    database_codes : array of shape (n_database, n_bits)
        Signs.
    query_vectors, database_vectors : array of shape (n, d)
        The original vectors, compared by cosine.
    k : int, default=10
        Number of true neighbours; all of them where fewer share a label with the query.
    query_labels, database_labels : array of shape (n,) or (n, c), default=None
        If given, only items that share a label with the query are its neighbours. The codes rank all items.
    bit_weights : array of shape (n_bits,), default=None
        Weights of the Hamming distance.
    cutoff : int, default=None
        Number of ranks searched; None for k.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance, as for `recall_at`.
    empty : {"drop", "zero"}, default="drop"
        Score of a query that shares a label with no item.

    Returns
    -------
    float
        Mean over the queries; NaN where every query was dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.metrics import neighbour_recall
    >>> vectors = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [1.0, 0.5]])
    >>> codes = np.array([[1, 1], [1, 1], [-1, -1], [1, -1]])
    >>> neighbour_recall(codes[:1], codes[1:], vectors[:1], vectors[1:], k=2)
    1.0
    """
    check_choice("empty", empty, EMPTY_RULES)
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    nearest = Nearest(query_vectors, database_vectors, query_labels, database_labels, levels=(_check_count(k, "k"),))
    if nearest.shape != ranker.shape:
        raise ValueError(
            f"There are {ranker.shape[0]} query and {ranker.shape[1]} database codes, but {nearest.shape[0]} and "
            f"{nearest.shape[1]} vectors. Pass one vector per code."
        )
    ranks = np.array([min(_check_count(k if cutoff is None else cutoff, "cutoff"), ranker.shape[1])])
    counts = np.array(score_queries(ranker, nearest, hits_scorer(ranks, ties=ties)), dtype=np.float64).reshape(-1, 2)
    found, total = counts.T
    nothing = np.nan if empty == "drop" else 0.0
    return mean_of(np.where(total > 0, found / np.maximum(total, 1), nothing))


def _among_nearest(cosines: NDArray[np.float64], k: int) -> NDArray[np.bool_]:
    """Whether each item is among the k of largest cosine in its row; -inf never is, the first of equals is."""
    n = cosines.shape[1]
    eligible = cosines > -np.inf
    if k >= n:
        return eligible
    last = np.partition(cosines, n - k, axis=1)[:, n - k, None]
    above = cosines > last
    equal = (cosines == last) & eligible
    spare = k - np.count_nonzero(above, axis=1, keepdims=True)
    among: NDArray[np.bool_] = above | (equal & (np.cumsum(equal, axis=1) <= spare))
    return among


def _unit_rows(vectors: ArrayLike, name: str) -> NDArray[np.float64]:
    """Rows of unit length in float64, rounded to the grid on which their products add up exactly."""
    given = np.asarray(vectors)
    if given.ndim != 2 or given.dtype.kind not in "buif":
        raise ValueError(f"{name} must be an array of numbers of shape (n, d), found {given.dtype} {given.shape}.")
    result = np.empty(given.shape, np.float64)
    step = max(1, _VALUES_AT_ONCE // max(given.shape[1], 1))
    for start in range(0, len(given), step):
        rows = given[start : start + step].astype(np.float64)
        if not np.isfinite(rows).all():
            raise ValueError(f"{name} must be finite, found NaN or infinity.")
        rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True, initial=0), np.finfo(float).tiny)
        lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        result[start : start + step] = np.rint(rows / np.maximum(lengths, 1e-300) * _GRID) / _GRID
    return result


def _check_count(value: int, name: str) -> int:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise ValueError(f"{name} must hold whole numbers of at least 1, found {value!r}.")
    return int(value)
