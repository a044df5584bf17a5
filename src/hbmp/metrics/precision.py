"""Precision and recall: after k items, along the whole ranking, and within a Hamming radius.

    precision@k   hits among the first k / k            (k at most the size of the database)
    recall@k      hits among the first k / relevant items in the database
    radius r      the items at distance r or less; with bit weights r is in the units of the weights

Ties at rank k follow the same four rules as average precision. "average" is the expected number of hits when tied
items come in random order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import hamming
from hbmp.metrics.ranking import RankedList, Ranker, make_ranker, query_blocks, score_queries
from hbmp.metrics.relevance import Labels, Relevance, as_relevance
from hbmp.metrics.settings import check_choice, check_cutoff, mean_of
from hbmp.metrics.ties import TIE_RULES, hit_ranks, hits_before

EMPTY_RULES = ("drop", "zero")


class PrecisionRecall(NamedTuple):
    """A precision–recall curve.

    Parameters
    ----------
    cutoffs : ndarray of shape (n_points,)
        Ranks.
    precision : ndarray of shape (n_points,)
        Mean precision after so many items.
    recall : ndarray of shape (n_points,)
        Mean recall after so many items.

    Examples
    --------
    >>> from hbmp import metrics
    >>> curve = metrics.precision_recall_curve([[1, 1]], [[1, 1], [-1, -1]], [0], [0, 1])
    >>> curve.cutoffs.tolist(), curve.precision.tolist(), curve.recall.tolist()
    ([1, 2], [1.0, 0.5], [1.0, 1.0])
    """

    cutoffs: NDArray[Any]
    precision: NDArray[Any]
    recall: NDArray[Any]


def precision_at(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    cutoffs: Sequence[int],
    bit_weights: ArrayLike | None = None,
    ties: str = "database",
    relevance: Relevance | None = None,
) -> NDArray[Any]:
    """Mean precision after each number of items; a query without a relevant item counts as 0.

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
    cutoffs : sequence of int
        Numbers of items.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    relevance : Relevance, default=None
        Graded relevance instead of labels, such as `Graded`.

    Returns
    -------
    ndarray of shape (n_cutoffs,)
        Mean precision over the queries.

    Examples
    --------
    >>> from hbmp import metrics
    >>> queries, database = [[1, 1], [-1, -1]], [[1, 1], [1, -1], [-1, -1]]
    >>> classes = [0, 1], [0, 1, 1]
    >>> metrics.precision_at(queries, database, *classes, cutoffs=[1, 2]).tolist()
    [1.0, 0.75]
    """
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    ranks = _check_cutoffs(cutoffs, ranker.shape[1])
    hits, _ = _hits_and_totals(ranker, graded, ranks, ties)
    precisions: NDArray[Any] = (hits / ranks).mean(axis=0)
    return precisions


def recall_at(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    cutoffs: Sequence[int],
    bit_weights: ArrayLike | None = None,
    ties: str = "database",
    empty: str = "drop",
    relevance: Relevance | None = None,
) -> NDArray[Any]:
    """Mean recall after each number of items.

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
    cutoffs : sequence of int
        Numbers of items.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    empty : {"drop", "zero"}, default="drop"
        Queries without a relevant item are left out of the mean, or count as 0.
    relevance : Relevance, default=None
        Graded relevance instead of labels, such as `Graded`.

    Returns
    -------
    ndarray of shape (n_cutoffs,)
        Mean recall over the queries.

    Examples
    --------
    >>> from hbmp import metrics
    >>> queries, database = [[1, 1], [-1, -1]], [[1, 1], [1, -1], [-1, -1]]
    >>> classes = [0, 1], [0, 1, 1]
    >>> metrics.recall_at(queries, database, *classes, cutoffs=[1, 2]).tolist()
    [0.75, 1.0]
    """
    check_choice("empty", empty, EMPTY_RULES)
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    hits, totals = _hits_and_totals(ranker, graded, _check_cutoffs(cutoffs, ranker.shape[1]), ties)
    recalls = hits / np.maximum(totals, 1)[:, None]
    kept = recalls[totals > 0] if empty == "drop" else recalls
    return kept.mean(axis=0) if len(kept) else np.full(hits.shape[1], np.nan)


def precision_recall_curve(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    n_points: int = 100,
    bit_weights: ArrayLike | None = None,
    ties: str = "database",
    relevance: Relevance | None = None,
) -> PrecisionRecall:
    """Mean precision and recall at ranks that are evenly spaced on a logarithmic scale.

    Queries without a relevant item have no recall and are left out of both means.

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
    n_points : int, default=100
        Approximate number of ranks.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.
    relevance : Relevance, default=None
        Graded relevance instead of labels, such as `Graded`.

    Returns
    -------
    PrecisionRecall
        The curve.

    Examples
    --------
    >>> from hbmp import metrics
    >>> queries, database = [[1, 1], [-1, -1]], [[1, 1], [1, -1], [-1, -1]]
    >>> classes = [0, 1], [0, 1, 1]
    >>> metrics.precision_recall_curve(queries, database, *classes).recall.tolist()
    [0.75, 1.0, 1.0]
    """
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    ranks = curve_ranks(ranker.shape[1], n_points)
    return curve_of(ranks, *_hits_and_totals(ranker, graded, ranks, ties))


def curve_ranks(n_database: int, n_points: int) -> NDArray[Any]:
    """Choose ranks from 1 to the size of the database, evenly spaced on a logarithmic scale.

    Parameters
    ----------
    n_database : int
        Size of the database.
    n_points : int
        Approximate number of ranks.

    Returns
    -------
    ndarray of int
        Ascending ranks.

    Examples
    --------
    >>> from hbmp import metrics
    >>> metrics.curve_ranks(1000, 4).tolist()
    [1, 10, 100, 1000]
    """
    return np.unique(np.rint(np.geomspace(1, n_database, max(int(n_points), 2))).astype(np.int64))


def curve_of(ranks: NDArray[Any], hits: NDArray[Any], totals: NDArray[Any]) -> PrecisionRecall:
    """Compute the curve from counts of hits.

    Parameters
    ----------
    ranks : ndarray of shape (n_ranks,)
        Ranks.
    hits : ndarray of shape (n_queries, n_ranks)
        Hits of each query among the first items.
    totals : ndarray of shape (n_queries,)
        Relevant items of each query.

    Returns
    -------
    PrecisionRecall
        Means over the queries with a relevant item.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp import metrics
    >>> metrics.curve_of(np.array([1, 2]), np.array([[1, 1]]), np.array([2])).recall.tolist()
    [0.5, 0.5]
    """
    hits, totals = hits[totals > 0], totals[totals > 0]
    if len(totals) == 0:
        raise ValueError("No query has anything relevant in the database, so there is no curve. Check the labels.")
    return PrecisionRecall(ranks, (hits / ranks).mean(axis=0), (hits / totals[:, None]).mean(axis=0))


def radius_precision(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    radius: float = 2,
    bit_weights: ArrayLike | None = None,
    empty: str = "zero",
    relevance: Relevance | None = None,
) -> float:
    """Mean fraction of relevant items among the items within a radius.

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
    radius : float, default=2
        Largest distance that counts.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.
    empty : {"drop", "zero"}, default="zero"
        Queries with no item within the radius are left out of the mean, or count as 0.
    relevance : Relevance, default=None
        Graded relevance instead of labels, such as `Graded`.

    Returns
    -------
    float
        The mean over queries.

    Examples
    --------
    >>> from hbmp import metrics
    >>> queries, database = [[1, 1], [-1, -1]], [[1, 1], [1, -1], [-1, -1]]
    >>> classes = [0, 1], [0, 1, 1]
    >>> metrics.radius_precision(queries, database, *classes, radius=1)
    0.75
    """
    check_choice("empty", empty, EMPTY_RULES)
    shape = np.shape(query_codes)[0], np.shape(database_codes)[0]
    graded = as_relevance(query_labels, database_labels, relevance, shape)
    hits, found = _inside(query_codes, database_codes, graded, radius, bit_weights)
    nothing = np.nan if empty == "drop" else 0.0
    return mean_of(np.where(found > 0, hits / np.maximum(found, 1), nothing))


def radius_success(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    query_labels: Labels | None = None,
    database_labels: Labels | None = None,
    *,
    radius: float = 2,
    bit_weights: ArrayLike | None = None,
    relevance: Relevance | None = None,
) -> float:
    """Fraction of queries with at least one relevant item within a radius.

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
    radius : float, default=2
        Largest distance that counts.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.
    relevance : Relevance, default=None
        Graded relevance instead of labels, such as `Graded`.

    Returns
    -------
    float
        The fraction.

    Examples
    --------
    >>> from hbmp import metrics
    >>> queries, database = [[1, 1], [-1, -1]], [[1, 1], [1, -1], [-1, -1]]
    >>> classes = [0, 1], [0, 1, 1]
    >>> metrics.radius_success(queries, database, *classes, radius=0)
    1.0
    """
    shape = np.shape(query_codes)[0], np.shape(database_codes)[0]
    graded = as_relevance(query_labels, database_labels, relevance, shape)
    hits, _ = _inside(query_codes, database_codes, graded, radius, bit_weights)
    return mean_of((hits > 0).astype(np.float64))


def hits_scorer(ranks: NDArray[Any], *, ties: str = "database") -> Callable[[RankedList], NDArray[Any]]:
    """Hits at given ranks of one ranked list, for `score_together`.

    Parameters
    ----------
    ranks : ndarray of int, shape (n_ranks,)
        Ranks.
    ties : {"database", "average", "optimistic", "pessimistic"}, default="database"
        Order of items at equal distance; see the module.

    Returns
    -------
    callable
        Maps a ranked list to (n_ranks + 1,) counts: hits among the first ranks[j] items, then all relevant items.

    Examples
    --------
    >>> from hbmp import metrics
    >>> import numpy as np
    >>> relevance = metrics.SharesClass([0], [0, 1, 0])
    >>> scorers = {"hits": metrics.hits_scorer(np.array([1, 2]))}
    >>> metrics.score_together([[1, 1]], [[1, 1], [1, -1], [-1, -1]], relevance, scorers)["hits"].tolist()
    [[1.0, 1.0, 2.0]]
    """
    check_choice("ties", ties, TIE_RULES)

    def score(ranked: RankedList) -> NDArray[Any]:
        if ties == "average":  # inside a level the expected number of hits grows evenly from item to item
            hits = np.interp(ranks, ranked.bounds, hits_before(ranked))
        else:
            hits = np.searchsorted(hit_ranks(ranked, ties), ranks)
        return np.append(hits, np.count_nonzero(ranked.grades))

    return score


def _check_cutoffs(cutoffs: Sequence[int], n_database: int) -> NDArray[Any]:
    return np.array([check_cutoff(cutoff, n_database) for cutoff in np.atleast_1d(cutoffs)], dtype=np.int64)


def _hits_and_totals(
    ranker: Ranker, relevance: Relevance, ranks: NDArray[Any], ties: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Hits of each query among the first ranks[j] items (n_queries, n_ranks), and its relevant items (n_queries,)."""
    scores = np.array(score_queries(ranker, relevance, hits_scorer(ranks, ties=ties)), dtype=np.float64)
    scores = scores.reshape(-1, len(ranks) + 1)
    return scores[:, :-1], scores[:, -1]


def _inside(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    relevance: Relevance,
    radius: float,
    bit_weights: ArrayLike | None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Relevant items and all items within the radius of each query, (n_queries,) each."""
    database = hamming.check_codes(database_codes, name="database codes")
    queries = hamming.check_queries(query_codes, database.shape[1], name="query codes")
    hits, found = np.zeros(len(queries)), np.zeros(len(queries))
    for start, stop in query_blocks(len(queries), max(len(database), 1)):
        inside = hamming.distances(queries[start:stop], database, bit_weights) <= radius
        found[start:stop] = np.count_nonzero(inside, axis=1)
        hits[start:stop] = np.count_nonzero(inside & (relevance.grades(start, stop) > 0), axis=1)
    return hits, found
