"""What happens among items at the same distance from a query."""

from __future__ import annotations

import numpy as np

from hbmp.metrics._ranking import RankedList

TIE_RULES = ("database", "average", "optimistic", "pessimistic")


def break_ties(ranked: RankedList, ties: str) -> np.ndarray:
    """Grades by rank (n,) once ties are broken by the rule; "average" has no single order and is not asked here."""
    if ties == "database":
        return ranked.grades
    values, codes = np.unique(ranked.grades, return_inverse=True)
    levels = np.repeat(np.arange(len(ranked.bounds) - 1), np.diff(ranked.bounds))
    keys = levels * len(values) + (len(values) - 1 - codes if ties == "optimistic" else codes)
    keys.sort()
    sorted_codes = keys % len(values)
    return values[len(values) - 1 - sorted_codes if ties == "optimistic" else sorted_codes]
