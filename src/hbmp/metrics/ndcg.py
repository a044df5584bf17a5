"""Normalised discounted cumulative gain (NDCG) with graded relevance, in the three readings that papers use.

    DCG@K = Σ_{r ≤ K} G(c_r) / log2(r + 1),    NDCG@K = DCG@K / (DCG@K of the best possible order)

    gain    "binary"   G = 1 where c > 0              as in the paper's released code
            "scaled"   G = 2^(c / c_max) − 1          affinities divided by their maximum, as in its code inference
            "shared"   G = 2^c − 1                    c shared labels, or integer levels
    empty   "one"      a query without a relevant item scores 1, as in the released code
            "zero"     it scores 0
            "drop"     it is left out of the mean
    ties    as for average precision; "average" gives each tied item the mean discount of its level

c_max is the largest grade of any query with any database item, unless `largest_grade` is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp.metrics.ranking import RankedList, make_ranker, query_blocks, score_queries
from hbmp.metrics.relevance import Labels, Relevance, as_relevance
from hbmp.metrics.settings import check_choice, check_cutoff, mean_of
from hbmp.metrics.ties import TIE_RULES, break_ties, grade_codes

GAINS = ("binary", "scaled", "shared")
EMPTY_RULES = ("one", "zero", "drop")


def ndcg(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    bit_weights: ArrayLike | None = None,
    cutoff: int | None = None,
    gain: str = "shared",
    ties: str = "database",
    empty: str = "one",
    largest_grade: float | None = None,
    relevance: Relevance | None = None,
) -> float:
    """Mean NDCG of queries against a database.

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
    gain : {"binary", "scaled", "shared"}, default="shared"
        Gain of a grade; see the module.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    empty : {"one", "zero", "drop"}, default="one"
        Score of a query without a relevant item.
    largest_grade : float, default=None
        The grade c_max of the "scaled" gain; the largest grade in these data if None.
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
    >>> metrics.ndcg(queries, database, *classes)
    1.0
    """
    scores = ndcg_per_query(
        query_codes,
        database_codes,
        query_labels,
        database_labels,
        bit_weights=bit_weights,
        cutoff=cutoff,
        gain=gain,
        ties=ties,
        empty=empty,
        largest_grade=largest_grade,
        relevance=relevance,
    )
    return mean_of(scores)


def ndcg_per_query(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    bit_weights: ArrayLike | None = None,
    cutoff: int | None = None,
    gain: str = "shared",
    ties: str = "database",
    empty: str = "one",
    largest_grade: float | None = None,
    relevance: Relevance | None = None,
) -> NDArray[Any]:
    """NDCG of each query.

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
    gain : {"binary", "scaled", "shared"}, default="shared"
        Gain of a grade; see the module.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    empty : {"one", "zero", "drop"}, default="one"
        Score of a query without a relevant item.
    largest_grade : float, default=None
        The grade c_max of the "scaled" gain; the largest grade in these data if None.
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
    >>> metrics.ndcg_per_query(queries, database, *classes, gain="binary").tolist()
    [1.0, 1.0]
    """
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    score = ndcg_scorer(graded, cutoff=cutoff, gain=gain, ties=ties, empty=empty, largest_grade=largest_grade)
    return np.array(score_queries(ranker, graded, score), dtype=np.float64)


def ndcg_scorer(
    relevance: Relevance,
    *,
    cutoff: int | None = None,
    gain: str = "shared",
    ties: str = "database",
    empty: str = "one",
    largest_grade: float | None = None,
) -> Callable[[RankedList], float]:
    """NDCG of one ranked list, for `score_together`.

    Parameters
    ----------
    relevance : Relevance
        Grades of all queries; the "scaled" gain uses the largest one.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    gain : {"binary", "scaled", "shared"}, default="shared"
        Gain of a grade; see the module.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    empty : {"one", "zero", "drop"}, default="one"
        Score of a query without a relevant item.
    largest_grade : float, default=None
        The grade c_max of the "scaled" gain; the largest grade of `relevance` if None.

    Returns
    -------
    callable
        Maps a ranked list to its NDCG.

    Examples
    --------
    >>> from hbmp import metrics
    >>> relevance = metrics.CountsSharedLabels([[1, 1]], [[1, 0], [1, 1]])
    >>> scorers = {"ndcg": metrics.ndcg_scorer(relevance)}
    >>> metrics.score_together([[1, 1]], [[1, 1], [1, -1]], relevance, scorers)["ndcg"].round(3).tolist()
    [0.797]
    """
    check_choice("gain", gain, GAINS)
    check_choice("ties", ties, TIE_RULES)
    nothing = {"one": 1.0, "zero": 0.0, "drop": np.nan}[check_choice("empty", empty, EMPTY_RULES)]
    cutoff = check_cutoff(cutoff, relevance.shape[1])
    if gain == "scaled" and largest_grade is None:
        largest_grade = find_largest_grade(relevance)
    elif largest_grade is not None and not largest_grade > 0:
        raise ValueError(
            f"largest_grade must be above 0, found {largest_grade!r}. Leave it out to use the largest one."
        )
    sums = np.zeros(relevance.shape[1] + 1)  # of the discounts of the first r ranks
    np.cumsum(1.0 / np.log2(np.arange(2, cutoff + 2)), out=sums[1 : cutoff + 1])
    sums[cutoff + 1 :] = sums[cutoff]

    def score(ranked: RankedList) -> float:
        if not ranked.grades.any():
            return nothing
        values, found, best = ranked.once(("discounts", cutoff, ties), lambda: _discounts_by_grade(ranked, sums, ties))
        gains = _gains(values, gain, largest_grade)
        return float(gains @ found / (gains @ best))

    return score


def _discounts_by_grade(
    ranked: RankedList, sums: NDArray[Any], ties: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The grades in use, the sum of discounts at the ranks of each, and the same in the best possible order."""
    values, codes = grade_codes(ranked.grades if ties == "average" else break_ties(ranked, ties))
    discounts = np.diff(sums)
    if ties == "average":
        discounts = _mean_by_level(sums, ranked.bounds)
    found = np.bincount(codes, weights=discounts, minlength=len(values))
    ends = np.cumsum(np.bincount(codes, minlength=len(values))[::-1])
    best = np.diff(np.concatenate([[0.0], sums[ends]]))[::-1]
    return values, found, best


def _gains(grades: NDArray[Any], gain: str, largest_grade: float | None) -> NDArray[Any]:
    if gain == "binary":
        return (grades > 0).astype(np.float64)
    gains: NDArray[Any] = np.exp2(grades / largest_grade if gain == "scaled" else grades.astype(np.float64)) - 1.0
    return gains


def _mean_by_level(sums: NDArray[Any], bounds: NDArray[Any]) -> NDArray[Any]:
    """The discount of each rank (n,), from sums over the first r, replaced by the mean over its level."""
    sizes = np.diff(bounds)
    return np.repeat(np.diff(sums[bounds]) / np.maximum(sizes, 1), sizes)


def find_largest_grade(relevance: Relevance) -> float:
    """Find the largest grade of any query with any database item.

    Parameters
    ----------
    relevance : Relevance
        Grades of all queries.

    Returns
    -------
    float
        The largest grade; 0 without queries.

    Examples
    --------
    >>> from hbmp import metrics
    >>> metrics.find_largest_grade(metrics.CountsSharedLabels([[1, 1]], [[1, 0], [1, 1]]))
    2.0
    """
    blocks = (relevance.grades(start, stop) for start, stop in query_blocks(*relevance.shape))
    return float(max((block.max(initial=0) for block in blocks), default=0))
