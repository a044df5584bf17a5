"""Order of items at the same distance from a query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.metrics.ranking import RankedList

TIE_RULES = ("database", "average", "optimistic", "pessimistic")
_LARGEST_TABLE = 65536


def break_ties(ranked: RankedList, ties: str) -> NDArray[Any]:
    """Grades by rank (n,) after ties are broken by the rule; "average" has no single order and is not accepted."""
    if ties == "database":
        return ranked.grades
    values, codes = grade_codes(ranked.grades)
    best_first = ties == "optimistic"
    levels = np.repeat(np.arange(len(ranked.bounds) - 1), np.diff(ranked.bounds))
    keys = levels * len(values) + (len(values) - 1 - codes if best_first else codes)
    keys.sort()
    sorted_codes = keys % len(values)
    grades: NDArray[Any] = values[len(values) - 1 - sorted_codes if best_first else sorted_codes]
    return grades


def hit_ranks(ranked: RankedList, ties: str) -> NDArray[Any]:
    """Ranks of the relevant items, from 0, after ties are broken by the rule."""
    ranks: NDArray[Any] = ranked.once(("hit ranks", ties), lambda: np.flatnonzero(break_ties(ranked, ties)))
    return ranks


def hits_before(ranked: RankedList) -> NDArray[Any]:
    """(levels + 1,) relevant items before each level, and all of them at the end."""

    def compute() -> NDArray[Any]:
        counts: NDArray[Any] = np.concatenate([[0], np.cumsum(ranked.grades > 0)])[ranked.bounds]
        return counts

    before: NDArray[Any] = ranked.once("hits before", compute)
    return before


def grade_codes(grades: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ascending values, and the position of each grade among them: grades = values[codes]."""
    if grades.dtype.kind == "b":
        return np.arange(2), grades.view(np.uint8).astype(np.int64)
    if grades.dtype.kind in "ui" and grades.max() < _LARGEST_TABLE:
        return np.arange(int(grades.max()) + 1), grades.astype(np.int64)
    return np.unique(grades, return_inverse=True)
