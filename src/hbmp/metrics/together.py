"""Several metrics of the same ranking: sorting the database is most of the work, so it is done once for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hbmp.metrics.ranking import RankedList, make_ranker, score_queries
from hbmp.metrics.relevance import Relevance

Scorer = Callable[[RankedList], float | np.ndarray]


def score_together(
    query_codes,
    database_codes,
    relevance: Relevance,
    scorers: Mapping[str, Scorer],
    *,
    bit_weights=None,
) -> dict[str, np.ndarray]:
    """Every scorer's value for every query, (n_queries,) or (n_queries, k), by the scorer's name.

    Scorers come from `average_precision_scorer`, `ndcg_scorer` and `hits_scorer`, with the arguments of the metrics.
    """
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    rows = score_queries(ranker, relevance, lambda ranked: [score(ranked) for score in scorers.values()])
    columns = zip(*rows, strict=True) if rows else ([] for _ in scorers)
    return {name: np.array(column, dtype=np.float64) for name, column in zip(scorers, columns, strict=True)}
