"""Confidence intervals of a mean over queries, by resampling the queries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_VALUES_AT_ONCE = 1 << 22


class ConfidenceInterval(NamedTuple):
    """Bounds of an interval.

    Parameters
    ----------
    low : float
        Lower bound.
    high : float
        Upper bound.

    Examples
    --------
    >>> from hbmp import metrics
    >>> metrics.ConfidenceInterval(0.25, 0.75).high
    0.75
    """

    low: float
    high: float


def confidence_interval(
    scores: ArrayLike, *, confidence: float = 0.95, n_resamples: int = 2000, random_state: int = 0
) -> ConfidenceInterval:
    """Percentile bootstrap interval for the mean of per-query scores.

    The interval describes other queries of the same kind, not other training runs.

    Parameters
    ----------
    scores : array-like of shape (n_queries,)
        One score per query; NaN marks dropped queries.
    confidence : float, default=0.95
        Probability that the interval covers.
    n_resamples : int, default=2000
        Number of bootstrap samples.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ConfidenceInterval
        Lower and upper bound.

    Examples
    --------
    >>> from hbmp import metrics
    >>> interval = metrics.confidence_interval([0.2, 0.4, 0.6, 0.8])
    >>> interval.low < 0.5 < interval.high
    True
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
