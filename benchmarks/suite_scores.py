"""Arithmetic on the lines of the development suite: means, ranks, margins, regret.

score     mean of `own` and `real`, both mAP; or any one measure
margin    points of mAP between a method and the best of the others
regret    points of mAP that a set loses when its setting is the best one on average over the other sets,
          against the best setting for that set
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

OURS = "hbmp"
NEAR = 0.3  # points within which hbmp counts as level with the first
Scores = Mapping[str, Mapping[str, float]]  # {set: {name: mean score}}


def score_of(line: dict, measure: str) -> float:
    """A measure of a line; "score" is the mean of both distances."""
    return (line["own"] + line["real"]) / 2 if measure == "score" else line[measure]


def mean_scores(lines: Iterable[dict], measure: str, bits: Iterable[int] | None = None) -> dict[str, dict[str, float]]:
    """{set: {name: score}}, the mean over the code lengths and seeds that every name of the set has."""
    cells: dict[str, dict[str, dict]] = {}
    for line in lines:
        if "failed" not in line and (bits is None or line["bits"] in bits):
            found = cells.setdefault(line["set"], {}).setdefault(line["name"], {})
            found[line["bits"], line["seed"]] = score_of(line, measure)
    return {name: _means(found) for name, found in cells.items()}


def _means(found: dict[str, dict]) -> dict[str, float]:
    common = set.intersection(*(set(scores) for scores in found.values()))
    return {name: float(np.mean([scores[key] for key in common])) for name, scores in found.items()} if common else {}


def ranks(scores: Scores, ours: str = OURS) -> list[dict]:
    """One row per set: our score and rank, the best other and our margin over it in points."""
    rows = []
    for name, found in scores.items():
        others = {other: value for other, value in found.items() if other != ours}
        if ours in found and others:
            best = max(others, key=others.__getitem__)
            rank = 1 + sum(value > found[ours] for value in others.values())
            margin = 100 * (found[ours] - others[best])
            rows.append(
                {"set": name, "score": found[ours], "rank": rank, "of": len(found), "best": best, "margin": margin}
            )
    return rows


def with_seeds(lines: Iterable[dict], seeds: Iterable[int]) -> list[dict]:
    """The lines with these seeds, of cells that were measured with all of them."""
    wanted = set(seeds)
    found: dict[tuple, list[dict]] = {}
    for line in lines:
        if line["seed"] in wanted and "failed" not in line:
            found.setdefault((line["set"], line["name"], line["bits"]), []).append(line)
    return [line for cell in found.values() if {line["seed"] for line in cell} == wanted for line in cell]


def summary(lines: list[dict], measure: str, bits: int) -> dict | None:
    """How often hbmp is first, or within 0.3 points of the first, and its margins; None without other methods."""
    rows = ranks(mean_scores(lines, measure, [bits]))
    if not rows:
        return None
    margins = {row["set"]: row["margin"] for row in rows}
    worst = min(margins, key=margins.__getitem__)
    return {
        "sets": len(rows),
        "first": sum(margin >= 0 for margin in margins.values()),
        "near": sum(margin >= -NEAR for margin in margins.values()),
        "mean": float(np.mean(list(margins.values()))),
        "worst": margins[worst],
        "worst_set": worst,
    }


def complete(scores: Scores) -> dict[str, Mapping[str, float]]:
    """The sets where every variant was measured."""
    names = set().union(*scores.values()) if scores else set()
    return {name: found for name, found in scores.items() if set(found) == names}


def regret(scores: Scores) -> list[dict]:
    """One row per set: the variant that is best on average over the other sets, and what it loses here in points.

    Of variants that are equally good, the first one counts. At least two sets are needed.
    """
    rows = []
    for held, found in scores.items():
        others = [scores[name] for name in scores if name != held]
        choice = max(found, key=lambda name: np.mean([other[name] for other in others]))
        best = max(found, key=found.__getitem__)
        rows.append({"set": held, "choice": choice, "best": best, "regret": 100 * (found[best] - found[choice])})
    return rows


def per_variant(scores: Scores, base: str) -> list[dict]:
    """One row per variant: its mean score, and its gain over the base variant in points: mean, worst and best set."""
    rows = []
    for name in next(iter(scores.values())):
        gains = {held: 100 * (found[name] - found[base]) for held, found in scores.items()}
        losses = [100 * (max(found.values()) - found[name]) for found in scores.values()]
        worst, best = min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__)
        mean = float(np.mean([found[name] for found in scores.values()]))
        gain = {"gain": float(np.mean(list(gains.values()))), "worst": gains[worst], "best": gains[best]}
        where = {"worst_set": worst, "best_set": best, "mean_regret": np.mean(losses), "worst_regret": max(losses)}
        rows.append({"variant": name, "score": mean, **gain, **where})
    return rows
