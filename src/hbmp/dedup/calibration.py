"""The least similarity of a near-duplicate, from the similarities of unrelated items and the rate of error allowed.

    s    similarity    of a pair, and its Fisher transform z = artanh s
    u    start         of the tail that is fitted
    c    cut           its end: pairs above it are not used
    p    rate          share of unrelated pairs that may be called near-duplicates
    t    threshold     P(s > t) = p for unrelated pairs

Wanted rates, such as 1e-8, are far below what a sample of pairs can show, so the tail of the similarities is extended.
In the space of `hbmp.dedup.space` similarities of unrelated items scatter around 0 like correlations, whose Fisher
transform has no upper end. Beyond a high start u its excess is taken to be exponential, P(z > t) = P(z > u)
e^(-(t - u) / σ): the generalised Pareto distribution of shape 0, to which the tails of many distributions converge.

A sample of pairs holds near-duplicates too. They lie at the end of the tail. So the scale σ is fitted to the pairs
between u and c alone, by maximum likelihood for an exponential that is cut off at c, and P(z > u) follows from their
number. What lies above c has no effect at all. There are two kinds of rounds:

1. All items, c at a share of the pairs that leaves room for five near-duplicates per item. u has to lie low then, and
   the tail gets heavier further out, so that this threshold is too low.
2. One item of each group by the threshold of the round before, c at that threshold, or at the last similarity that
   twenty pairs of the sample exceed. Few near-duplicates are left below it, so u may lie high, and the threshold rises.
   This is done twice.

References: Balkema & de Haan, Annals of Probability 1974; Pickands, Annals of Statistics 1975.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

_ITEMS = 5000  # of the sample: 12.5 million pairs
_START, _CUT = 1e-3, 1e-4  # shares of the pairs above u and c in the first round
_LATER_START, _LATER_PAIRS = 3e-4, 300  # share above u in later rounds, and the least number of pairs
_ROUNDS = 3
_RESOLVED = 20  # pairs: a share of fewer is not seen in the sample
_PARTNERS = 5  # near-duplicates per item that the cut leaves room for
_LEAST_ITEMS = 100
_BINS, _END = 40_000, 4.0  # of Fisher transforms from -4 to 4
_HIGHEST = 0.995  # two encodings of one item are at least this similar, so no threshold is higher
_HIGHEST_OF_ALL = 0.9993  # artanh below 4
_LEVELS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)


@dataclass(frozen=True)
class Calibration:
    """A threshold and how it was determined.

    Parameters
    ----------
    rate : float
        Share of unrelated pairs that may be near-duplicates.
    threshold : float
        Least similarity of a near-duplicate.
    n_pairs : int
        Number of pairs in the sample.
    start, share, scale : float
        The tail: u, P(s > u) and σ.
    levels : tuple of (float, float, float)
        Shares of the pairs, with the similarity that this share exceeds in the sample and by the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.dedup import calibrate
    >>> rows = np.random.default_rng(0).standard_normal((1500, 64))
    >>> found = calibrate(rows / np.linalg.norm(rows, axis=1, keepdims=True), rate=1e-8)
    >>> 0.6 < found.threshold < 0.9
    True
    """

    rate: float
    threshold: float
    n_pairs: int
    start: float
    share: float
    scale: float
    levels: tuple[tuple[float, float, float], ...] = ()

    def rate_at(self, similarity: float) -> float:
        """Share of unrelated pairs above a similarity in the tail."""
        excess = np.arctanh(similarity) - np.arctanh(self.start)
        return float(self.share * np.exp(-excess / self.scale))

    def similarity_at(self, rate: float) -> float:
        """The inverse of `rate_at`."""
        return float(np.tanh(np.arctanh(self.start) + self.scale * np.log(self.share / rate)))


def calibrate(rows: NDArray[np.floating], *, rate: float, random_state: int = 0) -> Calibration:
    """Find the threshold for a rate.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Rows of length one, see `hbmp.dedup.space`.
    rate : float
        Share of unrelated pairs that may be called near-duplicates.
    random_state : int, default=0
        Seed of the sample.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.dedup import calibrate
    >>> rows = np.random.default_rng(0).standard_normal((1000, 32))
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> calibrate(rows, rate=1e-6).threshold > calibrate(rows, rate=1e-4).threshold
    True
    """
    if not 0 < rate < 1:
        raise ValueError(f"The rate of false positives is a share of the pairs, between 0 and 1; found {rate}.")
    rng = np.random.default_rng(random_state)
    chosen = np.sort(rng.choice(len(rows), min(len(rows), _ITEMS), replace=False))
    sample = np.asarray(rows[chosen], np.float32)
    sample = sample[np.abs(sample).max(axis=1, initial=0) > 0]
    if len(sample) < _LEAST_ITEMS:
        raise ValueError(
            f"{len(sample)} items are too few to estimate the similarity of unrelated ones, {_LEAST_ITEMS} are needed; "
            "pass the threshold instead (threshold=, --threshold)."
        )
    cut = max(_CUT, _PARTNERS / len(rows))
    counts = _Counts(sample)
    found = _fitted(counts, rate, counts.place(max(_START, 4 * cut)), counts.place(cut))
    for _ in range(_ROUNDS - 1):
        end = min(found.similarity_at(max(rate, _RESOLVED / found.n_pairs)), _HIGHEST)
        counts = _Counts(_one_of_each_group(sample, end))
        last = int(np.searchsorted(counts.edges, np.arctanh(end)))
        first = counts.place(max(_LATER_START, _LATER_PAIRS / counts.n_pairs))
        found = _fitted(counts, rate, min(first, last - _BINS // 100), last)
    return found


class _Counts:
    """The Fisher transforms of all pairs of a sample, counted in bins."""

    def __init__(self, sample: NDArray[np.float32]):
        self.edges = np.linspace(-_END, _END, _BINS + 1)
        self.bins = np.zeros(_BINS, np.int64)
        for start in range(0, len(sample), 512):
            block = sample[start : start + 512] @ sample[: start + 512].T
            rows = np.arange(start, start + len(block))
            used = np.clip(block[rows[:, None] > np.arange(block.shape[1])], -_HIGHEST_OF_ALL, _HIGHEST_OF_ALL)
            places = ((np.arctanh(used) + _END) * (_BINS / 2 / _END)).astype(np.int64)
            self.bins += np.bincount(places, minlength=_BINS)
        self.n_pairs = int(self.bins.sum())
        self._above = np.cumsum(self.bins[::-1])[::-1]  # pairs in this bin or a higher one

    def place(self, share: float) -> int:
        """The first bin that at most this share of the pairs reaches."""
        return int(np.searchsorted(-self._above, -self.n_pairs * share))


def _fitted(counts: _Counts, rate: float, first: int, last: int) -> Calibration:
    """The fit to the bins from `first` to `last`."""
    edges, used = counts.edges, counts.bins[first:last]
    width = float(edges[last] - edges[first])
    excess = edges[first:last] + _END / _BINS - edges[first]
    scale = _scale(float((used * excess).sum() / max(used.sum(), 1)), width)
    share = float(used.sum() / counts.n_pairs / -np.expm1(-width / scale))
    found = Calibration(rate, 0.0, counts.n_pairs, float(np.tanh(edges[first])), share, scale)
    levels = tuple(
        (level, float(np.tanh(edges[min(counts.place(level), _BINS)])), found.similarity_at(level)) for level in _LEVELS
    )
    threshold = found.similarity_at(rate) if rate < share else float(np.tanh(edges[counts.place(rate)]))
    return replace(found, threshold=min(threshold, _HIGHEST), levels=levels)


def _scale(mean: float, width: float) -> float:
    """σ of greatest likelihood, from the mean excess between 0 and w: mean = σ - w / (e^(w/σ) - 1)."""
    from scipy.optimize import brentq

    if mean >= 0.49 * width:  # no decay: the threshold is the highest there is
        return 1e3

    def gap(scale: float) -> float:
        return float(scale - width / np.expm1(width / scale) - mean)

    low = width / 500
    return float(brentq(gap, low, 1e3)) if gap(low) < 0 else mean


def _one_of_each_group(sample: NDArray[np.float32], threshold: float) -> NDArray[np.float32]:
    """The sample without items that are near-duplicates of an earlier one."""
    keep = np.ones(len(sample), bool)
    for start in range(0, len(sample), 512):
        block = sample[start : start + 512] @ sample[: start + 512].T
        rows = np.arange(start, start + len(block))
        keep[rows] = ~((block >= threshold) & (rows[:, None] > np.arange(block.shape[1]))).any(axis=1)
    return sample[keep]
