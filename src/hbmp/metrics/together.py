"""Several metrics of one ranking: sorting the database dominates the cost, so it is done once for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp.metrics.ranking import RankedList, make_ranker, score_queries
from hbmp.metrics.relevance import Relevance

Scorer = Callable[[RankedList], float | NDArray[Any]]


def score_together(
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    relevance: Relevance,
    scorers: Mapping[str, Scorer],
    *,
    bit_weights: ArrayLike | None = None,
) -> dict[str, NDArray[Any]]:
    """Score every query by several metrics with one ranking.

    Parameters
    ----------
    query_codes : array-like of shape (n_queries, n_bits)
        Signs in {-1, +1}, or real-valued scores.
    database_codes : array-like of shape (n_database, n_bits)
        Signs in {-1, +1}.
    relevance : Relevance
        Grades of the database items for each query.
    scorers : mapping of str to callable
        From `average_precision_scorer`, `ndcg_scorer` and `hits_scorer`, which take the arguments of the metrics.
    bit_weights : array-like of shape (n_bits,), default=None
        Weights of the bits in the distance; all ones if None.

    Returns
    -------
    dict of str to ndarray of shape (n_queries,) or (n_queries, k)
        Values per query, by the name of the scorer.

    Examples
    --------
    >>> from hbmp import metrics
    >>> relevance = metrics.SharesClass([0], [0, 1])
    >>> scorers = {"map": metrics.average_precision_scorer(2), "ndcg": metrics.ndcg_scorer(relevance)}
    >>> metrics.score_together([[1, 1]], [[1, 1], [1, -1]], relevance, scorers)
    {'map': array([1.]), 'ndcg': array([1.])}
    """
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    rows = score_queries(ranker, relevance, lambda ranked: [score(ranked) for score in scorers.values()])
    columns = zip(*rows, strict=True) if rows else ([] for _ in scorers)
    return {name: np.array(column, dtype=np.float64) for name, column in zip(scorers, columns, strict=True)}
