"""Number and weight of detail bits, chosen on training instances that the function has not seen.

Codes are nested, so the first n - m label bits are what remains of n bits when m become detail bits. Each choice below
is tried as a search: held-out instances query the learned ones and one another.

    price      mAP of all n label bits minus the mAP with details, and its standard error over the queries
    recall     share of the ten nearest of the query's class or labels among the first ten
    worth      recall - `WORTH` · price, the mean of binary and of real-valued queries

    1  price of m      with tie-breaking weights, made to rise with m: each is a mean over few queries, and neighbours
                       know more together (isotonic regression)
    2  total           sum of the detail weights, in label bits, for each m: of the largest worth among those whose
                       price, with `SURE` standard errors, is at most `PRICE`; for codes and for real-valued queries,
                       whose detail scores are scaled by what it says
    3  m               of the largest worth among `SHARES` under the same limit; codes that tell `APART` of the
                       instances apart come first. If no share is that cheap, from `FLOOR_FROM` bits on the largest up
                       to `FLOOR` whose price alone is at most `PRICE`; otherwise none.

The standard error keeps the choice careful where few instances are held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from hbmp.methods.hbmp.detail import TIE_BREAKING
from hbmp.methods.hbmp.detail_trials import Details, OfLabelBits, ScoredRows, Search, Tried

SHARES = (0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.9375)
"""Shares of all bits that may become detail bits."""
PRICE, APART = 0.012, 0.99
"""The highest price in mAP, and the share of instances that codes should tell apart. See docs/detail-bits.md."""
FLOOR_FROM, FLOOR = 32, 0.125
"""Code length from which some bits are details even if held-out instances are too few to be sure of the price, and how
many at most."""
_MOST = 3000  # learned instances in the database
_ERRORS = 2e-4, 1.0  # standard errors that prices are weighed by: at least, at most


@dataclass(frozen=True)
class DetailChoice:
    """Number of detail bits, the sum of their weights for codes and for real-valued queries, in label bits."""

    n_bits: int
    total: float = TIE_BREAKING
    total_real: float = TIE_BREAKING


class Candidate(NamedTuple):
    """A number of detail bits with weights for codes and for real-valued queries."""

    n_bits: int
    apart: float
    codes: Tried
    real: Tried

    @property
    def worth(self) -> float:
        """The mean of both."""
        return (self.codes.worth + self.real.worth) / 2

    @property
    def mean(self) -> Tried:
        """Price and recall, the mean of both."""
        return Tried(*np.mean([self.codes, self.real], axis=0))


def choose_details(
    learned: ScoredRows,
    held: ScoredRows,
    label_weights: OfLabelBits,
    thresholds: OfLabelBits = np.zeros,
    *,
    shares: Sequence[float] = SHARES,
    price: float = PRICE,
    random_state: int | None = None,
) -> DetailChoice:
    """The choice for these instances: those the function learned from, and held-out ones, both in random order.

    label_weights: the weights of the first k label bits, for any k.
    """
    n = held.scores.shape[1]
    base = learned.first(_MOST)
    database = ScoredRows(*(np.concatenate(pair) for pair in zip(_fields(base), _fields(held), strict=True)))
    own = len(base.scores) + np.arange(len(held.scores))
    search = Search(held, database, label_weights, thresholds, own)
    found = _best(_candidates(search, base, n, shares, price, random_state), n, price)
    return DetailChoice(0) if found is None else DetailChoice(found.n_bits, found.codes.total, found.real.total)


def _candidates(
    search: Search, base: ScoredRows, n: int, shares: Sequence[float], price: float, seed: int | None
) -> list[Candidate]:
    """Numbers of detail bits, ascending, with their weights; it ends where tie-breaking surely costs too much."""
    numbers: list[tuple[int, float]] = []
    tries: dict[bool, list[list[Tried]]] = {False: [], True: []}
    for m in sorted({round(share * n) for share in shares} - {0, n}):
        details = Details(search, base, n - m, m, seed)
        numbers.append((m, details.apart))
        for real, found in tries.items():
            found.append(details.tries(real, price))
        if all(found[-1][0].surely_beyond(price) for found in tries.values()):
            break
    best = ([_best_weights(each, price) for each in rising(found)] for found in tries.values())
    return [Candidate(*number, *weights) for number, *weights in zip(numbers, *best, strict=True)]


def rising(tries: list[list[Tried]]) -> list[list[Tried]]:
    """The same with tie-breaking prices that are positive and rise; other prices move with those of their number."""
    first = [each[0] for each in tries]
    surest = 1 / np.clip([each.error for each in first], *_ERRORS) ** 2
    prices = isotonic_regression([max(each.price, 0.0) for each in first], sample_weight=surest)
    return [
        [tried._replace(price=tried.price + float(price) - each[0].price) for tried in each]
        for each, price in zip(tries, prices, strict=True)
    ]


def _best_weights(tries: list[Tried], price: float) -> Tried:
    """Step 2; the cheapest if none is within the price."""
    fitting = [each for each in tries if each.within(price)]
    return max(fitting or [min(tries, key=lambda each: each.price)], key=lambda each: each.worth)


def _best(candidates: list[Candidate], n: int, price: float) -> Candidate | None:
    """Step 3."""
    fitting = [each for each in candidates if each.mean.within(price)]
    if not fitting and n >= FLOOR_FROM:
        fitting = [each for each in candidates if each.n_bits <= FLOOR * n and each.mean.price <= price][-1:]
    fitting = [each for each in fitting if each.apart >= APART] or fitting
    return max(fitting, key=lambda each: each.worth, default=None)


def _fields(part: ScoredRows) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return part.scores, part.features, part.labels
