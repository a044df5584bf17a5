"""Arguments that several metrics share, each checked with one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """The value, if it is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown. Choose one of {', '.join(map(repr, choices))}.")
    return value


def check_cutoff(cutoff: int | None, n_database: int) -> int:
    """How many ranks count: the cutoff, at most the size of the database."""
    if cutoff is None:
        return n_database
    if int(cutoff) != cutoff or cutoff < 1:
        raise ValueError(
            f"cutoff must be a whole number of at least 1, found {cutoff!r}. Use None for the full ranking."
        )
    return min(int(cutoff), n_database)


def mean_of(scores: NDArray[Any]) -> float:
    """Mean over the queries that have a score; NaN if none has."""
    kept = scores[~np.isnan(scores)]
    return float(kept.mean()) if len(kept) else float("nan")
