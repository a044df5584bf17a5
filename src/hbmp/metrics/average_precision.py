"""Average precision under every convention in use, each by name.

For one query, with hit_r = 1 where the item at rank r is relevant (grade above 0) and K the cutoff,

    AP@K = (1 / R) Σ_{r ≤ K} hit_r · P(r),    P(r) = hits among the first r / r

    denominator   "hits"      R = hits among the first K, as in the paper's code; rewards a query with few hits
                  "relevant"  R = relevant items in the whole database
    empty         "drop"      a query with R = 0 is left out of the mean, as in the paper's code
                  "zero"      it counts as 0
    ties          "database"     items at equal distance keep the order of the database, as in the paper's code
                  "average"      mean over all orders of tied items, in closed form (McSherry & Najork, ECIR 2008)
                  "optimistic"   relevant items first among equals
                  "pessimistic"  relevant items last among equals

Without a cutoff, or with denominator "relevant", the average lies between the pessimistic and the optimistic value.
With a cutoff and denominator "hits" it may lie outside, because one more hit can lower that score.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from hbmp.metrics.ranking import RankedList, make_ranker, score_queries
from hbmp.metrics.relevance import Labels, Relevance, as_relevance
from hbmp.metrics.settings import check_choice, check_cutoff, mean_of
from hbmp.metrics.ties import TIE_RULES, hit_ranks, hits_before

DENOMINATORS = ("hits", "relevant")
EMPTY_RULES = ("drop", "zero")


def mean_average_precision(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    bit_weights: ArrayLike | None = None,
    cutoff: int | None = None,
    ties: str = "database",
    denominator: str = "hits",
    empty: str = "drop",
    relevance: Relevance | None = None,
) -> float:
    """Mean average precision of queries against a database.

    Parameters
    ----------
    query_codes : array-like of shape (n_queries, n_bits)
        Signs in {-1, +1}, or real-valued scores.
    database_codes : array-like of shape (n_database, n_bits)
        Signs in {-1, +1}.
    query_labels : array-like of shape (n_queries,) or (n_queries, n_labels), default=None
        Classes, or a 0/1 matrix (NumPy or scipy.sparse).
    database_labels : array-like of shape (n_database,) or (n_database, n_labels), default=None
        The same for the database.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    denominator : {"hits", "relevant"}, default="hits"
        Divisor of the sum of precisions; see the module.
    empty : {"drop", "zero"}, default="drop"
        Queries without a relevant item are left out of the mean, or count as 0.
    relevance : Relevance, default=None
        Graded relevance instead of labels, such as `Graded`.

    Returns
    -------
    float
        The mean over queries; NaN if every query was dropped.

    Examples
    --------
    >>> from hbmp import metrics
    >>> queries, database = [[1, 1], [-1, -1]], [[1, 1], [1, -1], [-1, -1]]
    >>> classes = [0, 1], [0, 1, 1]
    >>> metrics.mean_average_precision(queries, database, *classes)
    1.0
    """
    scores = average_precision_per_query(
        query_codes,
        database_codes,
        query_labels,
        database_labels,
        bit_weights=bit_weights,
        cutoff=cutoff,
        ties=ties,
        denominator=denominator,
        empty=empty,
        relevance=relevance,
    )
    return mean_of(scores)


def average_precision_per_query(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    bit_weights: ArrayLike | None = None,
    cutoff: int | None = None,
    ties: str = "database",
    denominator: str = "hits",
    empty: str = "drop",
    relevance: Relevance | None = None,
) -> NDArray[Any]:
    """Average precision of each query.

    Parameters
    ----------
    query_codes : array-like of shape (n_queries, n_bits)
        Signs in {-1, +1}, or real-valued scores.
    database_codes : array-like of shape (n_database, n_bits)
        Signs in {-1, +1}.
    query_labels : array-like of shape (n_queries,) or (n_queries, n_labels), default=None
        Classes, or a 0/1 matrix (NumPy or scipy.sparse).
    database_labels : array-like of shape (n_database,) or (n_database, n_labels), default=None
        The same for the database.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    denominator : {"hits", "relevant"}, default="hits"
        Divisor of the sum of precisions; see the module.
    empty : {"drop", "zero"}, default="drop"
        Queries without a relevant item are left out of the mean, or count as 0.
    relevance : Relevance, default=None
        Graded relevance instead of labels, such as `Graded`.

    Returns
    -------
    ndarray of shape (n_queries,)
        Scores; NaN where a query is dropped.

    Examples
    --------
    >>> from hbmp import metrics
    >>> queries, database = [[1, 1], [-1, -1]], [[1, 1], [1, -1], [-1, -1]]
    >>> classes = [0, 1], [0, 1, 1]
    >>> metrics.average_precision_per_query(queries, database, *classes).tolist()
    [1.0, 1.0]
    """
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    score = average_precision_scorer(ranker.shape[1], cutoff=cutoff, ties=ties, denominator=denominator, empty=empty)
    return np.array(score_queries(ranker, graded, score), dtype=np.float64)


def self_retrieval_map(
    codes: ArrayLike,
    labels: Labels | None = None,
    *,
    bit_weights: ArrayLike | None = None,
    cutoff: int | None = None,
    ties: str = "database",
    denominator: str = "hits",
    empty: str = "drop",
    relevance: Relevance | None = None,
) -> float:
    """Mean average precision of items that each query all other items, never themselves.

    Parameters
    ----------
    codes : array-like of shape (n, n_bits)
        Signs in {-1, +1}.
    labels : array-like of shape (n,) or (n, n_labels), default=None
        Classes, or a 0/1 matrix.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    denominator : {"hits", "relevant"}, default="hits"
        Divisor of the sum of precisions; see the module.
    empty : {"drop", "zero"}, default="drop"
        Queries without a relevant item are left out of the mean, or count as 0.
    relevance : Relevance, default=None
        Graded relevance instead of labels, such as `Graded`.

    Returns
    -------
    float
        The mean over items; NaN if every item was dropped.

    Examples
    --------
    >>> from hbmp import metrics
    >>> metrics.self_retrieval_map([[1, 1], [1, 1], [-1, -1], [-1, -1]], [0, 0, 1, 1])
    1.0
    """
    ranker = make_ranker(codes, codes, bit_weights)
    graded = as_relevance(labels, labels, relevance, ranker.shape)
    score = average_precision_scorer(ranker.shape[1], cutoff=cutoff, ties=ties, denominator=denominator, empty=empty)
    return mean_of(np.array(score_queries(ranker, graded, score, leave_one_out=True), dtype=np.float64))


def average_precision_scorer(
    n_database: int,
    *,
    cutoff: int | None = None,
    ties: str = "database",
    denominator: str = "hits",
    empty: str = "drop",
) -> _Scorer:
    """Average precision of one ranked list, for `score_together`.

    Parameters
    ----------
    n_database : int
        Size of the database.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    denominator : {"hits", "relevant"}, default="hits"
        Divisor of the sum of precisions; see the module.
    empty : {"drop", "zero"}, default="drop"
        Queries without a relevant item are left out of the mean, or count as 0.

    Returns
    -------
    callable
        Maps a ranked list to its average precision.

    Examples
    --------
    >>> from hbmp import metrics
    >>> scorers = {"map": metrics.average_precision_scorer(3), "map@1": metrics.average_precision_scorer(3, cutoff=1)}
    >>> relevance = metrics.SharesClass([0], [0, 1, 0])
    >>> found = metrics.score_together([[1, 1]], [[1, -1], [1, 1], [-1, -1]], relevance, scorers)
    >>> found["map"].round(3).tolist(), found["map@1"].tolist()
    ([0.583], [nan])
    """
    return _Scorer(cutoff, ties, denominator, empty, n_database)


class _Scorer:
    """Average precision of one ranked list, with the settings checked once."""

    def __init__(self, cutoff: int | None, ties: str, denominator: str, empty: str, n_database: int):
        self._cutoff = check_cutoff(cutoff, n_database)
        self._ties = check_choice("ties", ties, TIE_RULES)
        self._denominator = check_choice("denominator", denominator, DENOMINATORS)
        self._nothing = {"drop": np.nan, "zero": 0.0}[check_choice("empty", empty, EMPTY_RULES)]
        self._harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n_database + 1))])

    def __call__(self, ranked: RankedList) -> float:
        if self._ties == "average":
            return self._average(ranked)
        hits = hit_ranks(ranked, self._ties) + 1.0
        found = hits[: np.searchsorted(hits, self._cutoff, side="right")]
        total = len(found) if self._denominator == "hits" else len(hits)
        return float((np.arange(1, len(found) + 1) / found).sum() / total) if total else self._nothing

    def _average(self, ranked: RankedList) -> float:
        """The mean over all orders within each level, level by level.

        Level l has n items, p of them relevant, after N items with P relevant. A random order puts a hit at its j-th
        place with probability p/n, and then (j-1)(p-1)/(n-1) other hits precede it. The expected sum of precisions over
        the first m places is therefore  p/n Σ_{j≤m} [P + 1 + (j-1)(p-1)/(n-1)] / (N + j).
        """
        before = hits_before(ranked)
        total = before[-1]
        last = np.searchsorted(ranked.bounds, self._cutoff, side="left") - 1  # the level that the cutoff falls into
        sums = ranked.once("precision sums", lambda: self._sums_by_level(ranked, before))
        if total == 0:
            return self._nothing
        room = self._cutoff - ranked.bounds[last]
        size, relevant = ranked.bounds[last + 1] - ranked.bounds[last], before[last + 1] - before[last]
        whole = float(sums[:last].sum())
        found, chances = _hits_in_sample(size, relevant, room)
        partial = self._precision_sums(ranked.bounds[last], room, before[last], found)
        if self._denominator == "relevant":
            return float((whole + chances @ partial) / total)
        possible = before[last] + found > 0
        if not possible.any():
            return self._nothing
        expected = chances[possible] @ ((whole + partial[possible]) / (before[last] + found[possible]))
        return float(expected if self._nothing == 0 else expected / chances[possible].sum())

    def _sums_by_level(self, ranked: RankedList, before: NDArray[Any]) -> NDArray[Any]:
        return self._precision_sums(ranked.bounds[:-1], np.diff(ranked.bounds), before[:-1], np.diff(before))

    def _precision_sums(self, start: Any, size: Any, before: Any, relevant: Any) -> NDArray[Any]:
        """Expected sum of precisions of a level of `size` items, `relevant` of them hits in random order."""
        reciprocals = self._harmonic[start + size] - self._harmonic[start]
        slope = (relevant - 1) / np.maximum(size - 1, 1)
        precisions = (before + 1) * reciprocals + slope * (size - (start + 1) * reciprocals)
        sums: NDArray[Any] = relevant / np.maximum(size, 1) * precisions
        return sums


def _hits_in_sample(size: int, relevant: int, drawn: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Possible numbers of relevant items among `drawn` of `size` items, and their hypergeometric probabilities."""
    found = np.arange(max(0, drawn - (size - relevant)), min(drawn, relevant) + 1)
    logarithm = _log_choose(relevant, found) + _log_choose(size - relevant, drawn - found) - _log_choose(size, drawn)
    chances = np.exp(logarithm)
    return found, chances / chances.sum()


def _log_choose(total: Any, part: Any) -> Any:
    return gammaln(total + 1) - gammaln(part + 1) - gammaln(total - part + 1)
