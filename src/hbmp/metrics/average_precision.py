"""Average precision under every convention in use, each by name.

For one query, with hit_r = 1 where the item at rank r is relevant (grade above 0) and K the cutoff,

    AP@K = (1 / R) Σ_{r ≤ K} hit_r · P(r),    P(r) = hits among the first r / r

    denominator   "hits"      R = hits among the first K, as in the paper's code; rewards a query that finds few items
                  "relevant"  R = relevant items in the whole database
    empty         "drop"      a query with R = 0 is left out of the mean, as in the paper's code
                  "zero"      it counts as 0
    ties          "database"     equal distances keep the order of the database, as in the paper's code
                  "average"      the mean over all orders of tied items, in closed form (McSherry & Najork, ECIR 2008)
                  "optimistic"   relevant items first among equals
                  "pessimistic"  relevant items last among equals

Without a cutoff, or with denominator "relevant", the average lies between the pessimistic and the optimistic value.
With a cutoff and denominator "hits" that need not hold, because there one more hit can lower the score.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from hbmp.metrics.ranking import RankedList, make_ranker, score_queries
from hbmp.metrics.relevance import as_relevance
from hbmp.metrics.settings import check_choice, check_cutoff, mean_of
from hbmp.metrics.ties import TIE_RULES, hit_ranks, hits_before

DENOMINATORS = ("hits", "relevant")
EMPTY_RULES = ("drop", "zero")


def mean_average_precision(
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    bit_weights=None,
    cutoff: int | None = None,
    ties: str = "database",
    denominator: str = "hits",
    empty: str = "drop",
    relevance=None,
) -> float:
    """Mean average precision of queries (n_queries, bits) against a database (n_database, bits); see the module.

    Query codes are signs, or real-valued scores; labels are classes (n,) or 0/1 matrices (n, labels), and relevance=
    takes their place where relevance is graded otherwise. NaN where every query was dropped.
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
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    bit_weights=None,
    cutoff: int | None = None,
    ties: str = "database",
    denominator: str = "hits",
    empty: str = "drop",
    relevance=None,
) -> np.ndarray:
    """Average precision of each query, (n_queries,); NaN where a query is dropped."""
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    graded = as_relevance(query_labels, database_labels, relevance, ranker.shape)
    score = average_precision_scorer(ranker.shape[1], cutoff=cutoff, ties=ties, denominator=denominator, empty=empty)
    return np.array(score_queries(ranker, graded, score), dtype=np.float64)


def self_retrieval_map(
    codes,
    labels=None,
    *,
    bit_weights=None,
    cutoff: int | None = None,
    ties: str = "database",
    denominator: str = "hits",
    empty: str = "drop",
    relevance=None,
) -> float:
    """Mean average precision where each item (n, bits) queries all the others and never itself."""
    ranker = make_ranker(codes, codes, bit_weights)
    graded = as_relevance(labels, labels, relevance, ranker.shape)
    score = average_precision_scorer(ranker.shape[1], cutoff=cutoff, ties=ties, denominator=denominator, empty=empty)
    return mean_of(np.array(score_queries(ranker, graded, score, leave_one_out=True), dtype=np.float64))


def average_precision_scorer(
    n_database: int, *, cutoff: int | None = None, ties: str = "database", denominator: str = "hits", empty="drop"
) -> _Scorer:
    """The average precision of one ranked list as a function, for `score_together`."""
    return _Scorer(cutoff, ties, denominator, empty, n_database)


class _Scorer:
    """Average precision of one ranked list, with the settings checked once."""

    def __init__(self, cutoff, ties, denominator, empty, n_database: int):
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
        """The mean over all orders inside each level, level by level.

        Level l has n items, p of them relevant, after N items with P relevant. A random order puts a hit at its j-th
        place with probability p/n, and then finds (j-1)(p-1)/(n-1) others before it, so its expected sum of
        precisions over the first m places is  p/n Σ_{j≤m} [P + 1 + (j-1)(p-1)/(n-1)] / (N + j).
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

    def _sums_by_level(self, ranked: RankedList, before: np.ndarray) -> np.ndarray:
        return self._precision_sums(ranked.bounds[:-1], np.diff(ranked.bounds), before[:-1], np.diff(before))

    def _precision_sums(self, start, size, before, relevant) -> np.ndarray:
        """Expected sum of precisions of a level of `size` items, `relevant` of them hits in random order."""
        reciprocals = self._harmonic[start + size] - self._harmonic[start]
        slope = (relevant - 1) / np.maximum(size - 1, 1)
        precisions = (before + 1) * reciprocals + slope * (size - (start + 1) * reciprocals)
        return relevant / np.maximum(size, 1) * precisions


def _hits_in_sample(size: int, relevant: int, drawn: int) -> tuple[np.ndarray, np.ndarray]:
    """How many of `drawn` items out of `size` are relevant, and how likely each number is (hypergeometric)."""
    found = np.arange(max(0, drawn - (size - relevant)), min(drawn, relevant) + 1)
    logarithm = _log_choose(relevant, found) + _log_choose(size - relevant, drawn - found) - _log_choose(size, drawn)
    chances = np.exp(logarithm)
    return found, chances / chances.sum()


def _log_choose(total, part):
    return gammaln(total + 1) - gammaln(part + 1) - gammaln(total - part + 1)
