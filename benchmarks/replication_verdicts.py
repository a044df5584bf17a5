"""Verdicts on claims of the paper: intervals over seeds, what follows from them, and the lines they are taken from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[1]
HOLDS, PART, NOT, UNTESTED = "holds", "holds in part", "does not hold", "could not be tested"
EQUAL = 0.01  # differences of mAP or NDCG that count as none

Record = dict
Rows = list[tuple[str, ...]]


def interval(values: Iterable[float]) -> tuple[float, float | None]:
    """Mean, and half of its 95 % interval by Student's t; None for one value."""
    values = np.asarray(list(values), dtype=float)
    if len(values) < 2:
        return float(values.mean()), None
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(half)


def shown(values: Iterable[float], digits: int = 3, *, signed: bool = False) -> str:
    """`+0.012 ± 0.004`, or `+0.012 (one seed)`."""
    mean, half = interval(values)
    text = f"{mean:+.{digits}f}" if signed else f"{mean:.{digits}f}"
    return f"{text} (one seed)" if half is None else f"{text} ± {half:.{digits}f}"


def of_difference(values: list[float], wanted: str) -> str:
    """Verdict on "positive" or "none" from the interval of a mean difference.

    "positive" holds if the interval lies above zero, and does not hold if it lies below. "none" holds if the interval
    lies within 0.01 of zero, and does not hold if it lies outside. All else, and a single seed, holds in part at most.
    """
    mean, half = interval(values)
    low, high = (mean - (half or 0), mean + (half or 0))
    if wanted == "positive":
        sure, against = low > 0, high < 0
    else:
        sure, against = low > -EQUAL and high < EQUAL, low > EQUAL or high < -EQUAL
    if against:
        return NOT
    return HOLDS if sure and half is not None else PART


def markdown(header: tuple[str, ...], rows: Rows) -> str:
    """A table of text."""
    lines = ["| " + " | ".join(row) + " |" for row in (header, tuple(":---" for _ in header), *rows)]
    return "\n".join(lines)


def stored(name: str = "replication") -> list[Record]:
    """The lines of one file in results/."""
    return [json.loads(line) for line in (ROOT / "results" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def by(lines: list[Record], **wanted: object) -> list[Record]:
    """The lines with these values."""
    return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]
