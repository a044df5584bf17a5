"""Normalised discounted cumulative gain (NDCG) with graded relevance, in the three readings that papers use.

    DCG@K = Σ_{r ≤ K} G(c_r) / log2(r + 1),    NDCG@K = DCG@K / (DCG@K of the best possible order)

    gain    "binary"   G = 1 where c > 0              what the paper's released code computes
            "scaled"   G = 2^(c / c_max) − 1          affinities divided by their maximum, as in its code inference
            "shared"   G = 2^c − 1                    c shared labels, or integer levels
    empty   "one"      a query with nothing relevant scores 1, as in the released code
            "zero"     it scores 0
            "drop"     it is left out of the mean
    ties    as for average precision; "average" gives each tied item the mean discount of its level

c_max is the largest grade that any query has with any database item, unless largest_grade= names it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hbmp.metrics.ranking import RankedList, make_ranker, query_blocks, score_queries
from hbmp.metrics.relevance import Relevance, as_relevance
from hbmp.metrics.settings import check_choice, check_cutoff, mean_of
from hbmp.metrics.ties import TIE_RULES, break_ties, grade_codes

GAINS = ("binary", "scaled", "shared")
EMPTY_RULES = ("one", "zero", "drop")


def ndcg(
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    bit_weights=None,
    cutoff: int | None = None,
    gain: str = "shared",
    ties: str = "database",
    empty: str = "one",
    largest_grade: float | None = None,
    relevance=None,
) -> float:
    """Mean NDCG of queries (n_queries, bits) against a database (n_database, bits); see the module.

    Query codes are signs, or real-valued scores; labels are classes (n,) or 0/1 matrices (n, labels), and relevance=
    takes their place where relevance is graded otherwise. NaN where every query was dropped.
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
    query_codes,
    database_codes,
    query_labels=None,
    database_labels=None,
    *,
    bit_weights=None,
    cutoff: int | None = None,
    gain: str = "shared",
    ties: str = "database",
    empty: str = "one",
    largest_grade: float | None = None,
    relevance=None,
) -> np.ndarray:
    """NDCG of each query, (n_queries,); NaN where a query is dropped."""
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
    """The NDCG of one ranked list as a function, for `score_together`."""
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


def _discounts_by_grade(ranked: RankedList, sums: np.ndarray, ties: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grades in use, the discounts of the ranks that each holds added up, and the same in the best possible order."""
    values, codes = grade_codes(ranked.grades if ties == "average" else break_ties(ranked, ties))
    discounts = np.diff(sums)
    if ties == "average":
        discounts = _mean_by_level(sums, ranked.bounds)
    found = np.bincount(codes, weights=discounts, minlength=len(values))
    ends = np.cumsum(np.bincount(codes, minlength=len(values))[::-1])
    best = np.diff(np.concatenate([[0.0], sums[ends]]))[::-1]
    return values, found, best


def _gains(grades: np.ndarray, gain: str, largest_grade: float | None) -> np.ndarray:
    if gain == "binary":
        return (grades > 0).astype(np.float64)
    return np.exp2(grades / largest_grade if gain == "scaled" else grades.astype(np.float64)) - 1.0


def _mean_by_level(sums: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Each rank's discount (n,), from the sums of the first r, replaced by the mean over its level."""
    sizes = np.diff(bounds)
    return np.repeat(np.diff(sums[bounds]) / np.maximum(sizes, 1), sizes)


def find_largest_grade(relevance: Relevance) -> float:
    """The largest grade that any query has with any database item."""
    blocks = (relevance.grades(start, stop) for start, stop in query_blocks(*relevance.shape))
    return float(max((block.max(initial=0) for block in blocks), default=0))
