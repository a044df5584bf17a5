"""How far a mean over queries can be trusted: resample the queries and look at how the mean moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_VALUES_AT_ONCE = 1 << 22


class ConfidenceInterval(NamedTuple):
    """Lower and upper end of an interval."""

    low: float
    high: float


def confidence_interval(
    scores, *, confidence: float = 0.95, n_resamples: int = 2000, random_state=0
) -> ConfidenceInterval:
    """Percentile bootstrap interval for the mean of per-query scores (n_queries,); NaN marks dropped queries.

    It says how the mean would vary with other queries of the same kind, not with another training run.
    """
    scores = np.asarray(scores, dtype=np.float64)
    kept = scores[~np.isnan(scores)]
    if scores.ndim != 1 or len(kept) == 0:
        raise ValueError(f"Scores must be (n_queries,) with at least one number, found shape {scores.shape}.")
    if not 0 < confidence < 1 or n_resamples < 1:
        raise ValueError(
            f"confidence must lie between 0 and 1 and n_resamples be at least 1, found {confidence} and {n_resamples}."
        )
    rng = np.random.default_rng(random_state)
    means = np.empty(n_resamples)
    step = max(1, _VALUES_AT_ONCE // len(kept))
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        means[start:stop] = kept[rng.integers(0, len(kept), (stop - start, len(kept)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return ConfidenceInterval(float(low), float(high))
