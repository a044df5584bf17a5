"""The first ten results of a database, as a sentence: right kind, right ones, distinct codes, ties.

A sample of items queries a sample of the other items by codes, so that no item finds itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hbmp import metrics
from hbmp.database import Database
from hbmp.evaluation import FirstResults

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUERIES, _SEARCHED, _FEWEST = 200, 20_000, 30
_SHOWN = 10


def first_sight(database: Database) -> str | None:
    """One or two sentences about the first ten results; None for too few items."""
    if len(database) < _FEWEST:
        return None
    places = np.random.default_rng(0).permutation(len(database))[: _QUERIES + _SEARCHED]
    n_queries = min(_QUERIES, len(places) // 3)
    asked, searched = np.sort(places[:n_queries]), np.sort(places[n_queries:])
    codes, weights = database.codes(), database.index.bit_weights
    queries, stored = codes[asked], codes[searched]
    labels = None if database.labels is None else np.asarray(database.labels)
    own, theirs = (None, None) if labels is None else (labels[asked], labels[searched])
    return FirstResults(
        right_kind=None if own is None else _right_kind(queries, stored, own, theirs, weights),
        right_ones=_right_ones(database, asked, searched, queries, stored, own, theirs),
        distinct=metrics.distinct_codes(codes),
        items=len(database),
        tied=metrics.tied_share(queries, stored, k=_SHOWN, bit_weights=weights),
    ).sentence()


def _right_kind(queries: np.ndarray, stored: NDArray[Any], own: Any, theirs: Any, weights: np.ndarray) -> float:
    """Precision of the first ten."""
    return float(
        metrics.precision_at(queries, stored, own, theirs, cutoffs=(_SHOWN,), bit_weights=weights, ties="average")[0]
    )


def _right_ones(
    database: Database,
    asked: NDArray[Any],
    searched: NDArray[Any],
    queries: np.ndarray,
    stored: NDArray[Any],
    own: Any,
    theirs: Any,
) -> float | None:
    """Neighbour recall, where the database keeps vectors."""
    if database.vectors is None:
        return None
    vectors = [database.vectors_of(database.ids[places]) for places in (asked, searched)]
    settings = {"query_labels": own, "database_labels": theirs, "bit_weights": database.index.bit_weights}
    return float(metrics.neighbour_recall(queries, stored, *vectors, k=_SHOWN, ties="average", **settings))
