"""What happens among items at the same distance from a query."""

from __future__ import annotations

import numpy as np

from hbmp.metrics.ranking import RankedList

TIE_RULES = ("database", "average", "optimistic", "pessimistic")
_LARGEST_TABLE = 65536


def break_ties(ranked: RankedList, ties: str) -> np.ndarray:
    """Grades by rank (n,) once ties are broken by the rule; "average" has no single order and is not asked here."""
    if ties == "database":
        return ranked.grades
    values, codes = grade_codes(ranked.grades)
    best_first = ties == "optimistic"
    levels = np.repeat(np.arange(len(ranked.bounds) - 1), np.diff(ranked.bounds))
    keys = levels * len(values) + (len(values) - 1 - codes if best_first else codes)
    keys.sort()
    sorted_codes = keys % len(values)
    return values[len(values) - 1 - sorted_codes if best_first else sorted_codes]


def hit_ranks(ranked: RankedList, ties: str) -> np.ndarray:
    """Ranks of the relevant items, from 0, once ties are broken by the rule."""
    return ranked.once(("hit ranks", ties), lambda: np.flatnonzero(break_ties(ranked, ties)))


def hits_before(ranked: RankedList) -> np.ndarray:
    """(levels + 1,) relevant items before each level, and all of them at the end."""
    return ranked.once("hits before", lambda: np.concatenate([[0], np.cumsum(ranked.grades > 0)])[ranked.bounds])


def grade_codes(grades: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ascending values and, for each grade, the number of its value among them: grades = values[codes]."""
    if grades.dtype.kind == "b":
        return np.arange(2), grades.view(np.uint8).astype(np.int64)
    if grades.dtype.kind in "ui" and grades.max() < _LARGEST_TABLE:
        return np.arange(int(grades.max()) + 1), grades.astype(np.int64)
    return np.unique(grades, return_inverse=True)
