"""The readings of one pair of code arrays: plain, weighted and real-valued distances, and their tie rules."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Ranking:
    """One order of the database, and the readings computed from it: suffix of the score's name → tie rule."""

    queries: ArrayLike
    weights: ArrayLike | None
    readings: dict[str, str]
    by_the_methods_distance: bool = False


def rankings_of(query_codes: ArrayLike, query_scores: ArrayLike | None, weights: ArrayLike | None) -> list[Ranking]:
    """Plain, weighted and real-valued rankings; weighted ones only if the weights differ."""
    plain = {"": "database", ".tie-aware": "average"}
    rankings = [Ranking(query_codes, None, plain, by_the_methods_distance=weights is None)]
    if weights is not None:
        weighted = {".weighted" + reading: ties for reading, ties in plain.items()}
        rankings.append(Ranking(query_codes, weights, weighted, by_the_methods_distance=True))
    if query_scores is not None:
        rankings.append(Ranking(query_scores, None, {".real-valued": "database"}))
        if weights is not None:
            rankings.append(Ranking(query_scores, weights, {".weighted.real-valued": "database"}))
    return rankings
