"""Number and weight of detail bits, chosen on training instances that the function has not seen.

Codes are nested, so the first n - m label bits are what remains of n bits when m become detail bits.

    1  m          the largest of `SHARES` whose remaining label bits lose at most `PRICE` of the mAP of all n; from
                  `FLOOR_FROM` bits on at least the smallest
    2  total      sum of the detail weights, in label bits: the largest of `STEPS`, or tie-breaking, at the same price
    3  calibrated the same for real-valued queries, whose detail scores are scaled by what it says

Details find more of the nearest items the more of them there are and the more they weigh. So the largest value that the
price allows is the best one, and step 1 needs no detail bits at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.methods.hbmp.detail import TIE_BREAKING, DetailBits, join_weights
from hbmp.metrics import mean_average_precision

SHARES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75)
"""Shares of all bits that may become detail bits."""
STEPS = (0.2, 0.5, 1.0)
"""Weights of one detail bit that are tried, in label bits; tie-breaking weights always stand."""
PRICE = 0.004
"""mAP that details may cost on held-out instances. Of 0.003 to 0.0075 the largest that, with the floor below, cost at
most half a point of test mAP on average over eight sets at 32 and 64 bits; the worst set lost one point."""
FLOOR_FROM = 32
"""Code length from which the smallest share is always taken: it cost at most a point on any set, and without it items
of a label can hardly be told apart."""
_QUERIES, _MOST = 500, 4000

LabelWeights = Callable[[int], NDArray]


@dataclass(frozen=True)
class DetailChoice:
    """Number of detail bits, the sum of their weights for codes and for real-valued queries, in label bits."""

    n_bits: int
    total: float = TIE_BREAKING
    total_real: float = TIE_BREAKING


@dataclass(frozen=True)
class ScoredRows:
    """Instances with label-bit scores (n, all bits), features (n, d) and labels: classes or rows of 0/1."""

    scores: NDArray
    features: NDArray
    labels: NDArray

    def first(self, n: int) -> ScoredRows:
        """The first n instances."""
        return ScoredRows(self.scores[:n], self.features[:n], self.labels[:n])

    def beyond(self, n: int) -> ScoredRows:
        """All but the first n instances."""
        return ScoredRows(self.scores[n:], self.features[n:], self.labels[n:])


def choose_details(
    learned: ScoredRows,
    held: ScoredRows,
    label_weights: LabelWeights,
    *,
    shares: Sequence[float] = SHARES,
    price: float = PRICE,
    random_state: int | None = None,
) -> DetailChoice:
    """The choice for these instances: those the function learned from, and held-out ones, both in random order.

    label_weights: the weights of the first k label bits, for any k.
    """
    n = held.scores.shape[1]
    n_queries = min(len(held.scores) // 2, _QUERIES)
    queries, rest, base = held.first(n_queries), held.beyond(n_queries), learned.first(_MOST)
    database = ScoredRows(*(np.concatenate(pair) for pair in zip(_fields(base), _fields(rest), strict=True)))

    def precision(keep: int, real: bool, fine: tuple[NDArray, NDArray] | None = None, weights=None) -> float:
        asked, stored = (part.scores[:, :keep] for part in (queries, database))
        if fine is not None:
            asked, stored = np.hstack([asked, fine[0]]), np.hstack([stored, fine[1]])
        weights = label_weights(keep) if weights is None else weights
        asked = asked if real else hamming.signs(asked)
        labels = queries.labels, database.labels
        found = mean_average_precision(asked, hamming.signs(stored), *labels, bit_weights=weights, ties="average")
        return float(np.nan_to_num(found))

    level = {real: precision(n, real) for real in (False, True)}
    sizes = sorted({round(share * n) for share in shares} - {0, n})
    n_bits = sizes[0] if n >= FLOOR_FROM and sizes else 0
    for m in sizes:
        cost = np.mean([level[real] - precision(n - m, real) for real in (False, True)])
        n_bits = m if cost <= price else n_bits
    if n_bits == 0:
        return DetailChoice(0)
    keep = n - n_bits
    detail = DetailBits(n_iter=10).fit(base.features, base.scores[:, :keep], n_bits, random_state=random_state)
    asked, stored = (detail.project(part.features, part.scores[:, :keep]) for part in (queries, database))
    totals = {}
    for real in (False, True):
        totals[real] = TIE_BREAKING
        for step in STEPS:
            weights = join_weights(label_weights(keep), detail.weights_, step * n_bits)
            if step * n_bits > TIE_BREAKING and level[real] - precision(keep, real, (asked, stored), weights) <= price:
                totals[real] = step * n_bits
    return DetailChoice(n_bits, totals[False], totals[True])


def _fields(part: ScoredRows) -> tuple[NDArray, NDArray, NDArray]:
    return part.scores, part.features, part.labels
