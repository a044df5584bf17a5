"""Precision and recall: after k items, along the whole ranking, and inside a Hamming ball.

    precision@k   hits among the first k / k            (k at most the size of the database)
    recall@k      hits among the first k / relevant items in the database
    radius r      the items at distance r or less; with bit weights r is in the units of the weights

Ties at rank k follow the same four rules as average precision; "average" is the expected number of hits when tied items
come in random order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hbmp import hamming
from hbmp.metrics.ranking import RankedList, make_ranker, query_blocks, score_queries
from hbmp.metrics.relevance import Relevance, as_relevance
from hbmp.metrics.settings import check_choice, check_cutoff, mean_of
from hbmp.metrics.ties import TIE_RULES, hit_ranks, hits_before

EMPTY_RULES = ("drop", "zero")


class PrecisionRecall(NamedTuple):
    """A precision–recall curve: after the first cutoffs[i] items, mean precision and mean recall over the queries."""

    cutoffs: np.ndarray
    precision: np.ndarray
    recall: np.ndarray


def precision_at(
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    cutoffs: Sequence[int],
    bit_weights=None,
    ties: str = "database",
    relevance=None,
) -> np.ndarray:
    """Mean precision after each of the cutoffs, (len(cutoffs),); a query with nothing relevant counts as 0."""
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    ranks = _check_cutoffs(cutoffs, ranker.shape[1])
    hits, _ = _hits_and_totals(ranker, graded, ranks, ties)
    return (hits / ranks).mean(axis=0)


def recall_at(
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    cutoffs: Sequence[int],
    bit_weights=None,
    ties: str = "database",
    empty: str = "drop",
    relevance=None,
) -> np.ndarray:
    """Mean recall after each of the cutoffs, (len(cutoffs),); empty: what queries with nothing relevant count."""
    check_choice("empty", empty, EMPTY_RULES)
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    hits, totals = _hits_and_totals(ranker, graded, _check_cutoffs(cutoffs, ranker.shape[1]), ties)
    recalls = hits / np.maximum(totals, 1)[:, None]
    kept = recalls[totals > 0] if empty == "drop" else recalls
    return kept.mean(axis=0) if len(kept) else np.full(hits.shape[1], np.nan)


def precision_recall_curve(
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    n_points: int = 100,
    bit_weights=None,
    ties: str = "database",
    relevance=None,
) -> PrecisionRecall:
    """Mean precision and recall at about n_points ranks from 1 to n_database, evenly spaced on a logarithmic scale.

    Queries with nothing relevant have no recall and are left out of both means.
    """
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    ranks = curve_ranks(ranker.shape[1], n_points)
    return curve_of(ranks, *_hits_and_totals(ranker, graded, ranks, ties))


def curve_ranks(n_database: int, n_points: int) -> np.ndarray:
    """About n_points ranks from 1 to n_database, evenly spaced on a logarithmic scale."""
    return np.unique(np.rint(np.geomspace(1, n_database, max(int(n_points), 2))).astype(np.int64))


def curve_of(ranks: np.ndarray, hits: np.ndarray, totals: np.ndarray) -> PrecisionRecall:
    """The curve of queries with hits (n_queries, n_ranks) among the first ranks, of totals (n_queries,) relevant."""
    hits, totals = hits[totals > 0], totals[totals > 0]
    if len(totals) == 0:
        raise ValueError("No query has anything relevant in the database, so there is no curve. Check the labels.")
    return PrecisionRecall(ranks, (hits / ranks).mean(axis=0), (hits / totals[:, None]).mean(axis=0))


def radius_precision(
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    radius: float = 2,
    bit_weights=None,
    empty: str = "zero",
    relevance=None,
) -> float:
    """Mean share of relevant items among those within the radius; empty: what a query with an empty ball counts."""
    check_choice("empty", empty, EMPTY_RULES)
    graded = as_relevance(query_labels, database_labels, relevance, (len(query_codes), len(database_codes)))
    hits, found = _inside(query_codes, database_codes, graded, radius, bit_weights)
    nothing = np.nan if empty == "drop" else 0.0
    return mean_of(np.where(found > 0, hits / np.maximum(found, 1), nothing))


def radius_success(
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    radius: float = 2,
    bit_weights=None,
    relevance=None,
) -> float:
    """Share of queries that have at least one relevant item within the radius."""
    graded = as_relevance(query_labels, database_labels, relevance, (len(query_codes), len(database_codes)))
    hits, _ = _inside(query_codes, database_codes, graded, radius, bit_weights)
    return mean_of((hits > 0).astype(np.float64))


def hits_scorer(ranks: np.ndarray, *, ties: str = "database"):
    """Hits among the first ranks[j] items of one ranked list, and its relevant items at the end, (n_ranks + 1,)."""
    check_choice("ties", ties, TIE_RULES)

    def score(ranked: RankedList) -> np.ndarray:
        if ties == "average":  # inside a level the expected number of hits grows evenly from item to item
            hits = np.interp(ranks, ranked.bounds, hits_before(ranked))
        else:
            hits = np.searchsorted(hit_ranks(ranked, ties), ranks)
        return np.append(hits, np.count_nonzero(ranked.grades))

    return score


def _check_cutoffs(cutoffs: Sequence[int], n_database: int) -> np.ndarray:
    return np.array([check_cutoff(cutoff, n_database) for cutoff in np.atleast_1d(cutoffs)], dtype=np.int64)


def _hits_and_totals(ranker, relevance, ranks: np.ndarray, ties: str) -> tuple[np.ndarray, np.ndarray]:
    """Hits among the first ranks[j] items of each query (n_queries, n_ranks), and its relevant items (n_queries,)."""
    scores = np.array(score_queries(ranker, relevance, hits_scorer(ranks, ties=ties)), dtype=np.float64)
    scores = scores.reshape(-1, len(ranks) + 1)
    return scores[:, :-1], scores[:, -1]


def _inside(query_codes, database_codes, relevance: Relevance, radius: float, bit_weights):
    """Relevant items and all items within the radius of each query, (n_queries,) each."""
    database = hamming.check_codes(database_codes, name="database codes")
    queries = hamming.check_queries(query_codes, database.shape[1], name="query codes")
    hits, found = np.zeros(len(queries)), np.zeros(len(queries))
    for start, stop in query_blocks(len(queries), max(len(database), 1)):
        inside = hamming.distances(queries[start:stop], database, bit_weights) <= radius
        found[start:stop] = np.count_nonzero(inside, axis=1)
        hits[start:stop] = np.count_nonzero(inside & (relevance.grades(start, stop) > 0), axis=1)
    return hits, found
