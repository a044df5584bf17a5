"""Number and weight of detail bits, chosen on training instances that the function has not seen.

Codes are nested, so the first n - m label bits are what remains of n bits when m become detail bits. Each choice below
is tried as a search: held-out queries, in a database of learned and of other held-out instances.

    price      mAP of all n label bits minus the mAP with details, and its standard error over the queries
    recall     share of the ten nearest of the query's class or labels among the first ten
    worth      recall - `WORTH` · price, the mean of binary and of real-valued queries

    1  m           of the largest worth among `SHARES` whose price, with one standard error, is at most `PRICE`; codes
                   that tell `APART` of the instances apart come first. If no share is that cheap, from `FLOOR_FROM`
                   bits on the smallest, if its price alone is at most `PRICE`; otherwise none.
    2  total       sum of the detail weights, in label bits: of the largest worth under the same limit
    3  total_real  the same for real-valued queries, whose detail scores are scaled by what it says

The standard error keeps the choice careful where few instances are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.methods.hbmp.detail import TIE_BREAKING, DetailBits, join_weights
from hbmp.methods.hbmp.dither import with_signs_of
from hbmp.metrics import CountsSharedLabels, Nearest, SharesClass, self_first_share

SHARES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)
"""Shares of all bits that may become detail bits."""
STEPS, STEPS_REAL = (0.5, 1.0), (0.2, 0.5)
"""Weights of one detail bit that are tried, in label bits; beside them stand tie-breaking weights."""
PRICE, WORTH, APART = 0.01, 3.0, 0.99
"""Chosen by leave-one-set-out on held-out rows of nineteen sets, at 32 and 64 bits. See docs/detail-bits.md."""
FLOOR_FROM = 32
"""Code length from which some bits are details even if held-out instances are too few to be sure of the price."""
_QUERIES, _MOST = 500, 3000
_NEAREST = 10
_TIES = 1e-4  # of a label bit: ties are broken at random, the same for every candidate

OfLabelBits = Callable[[int], NDArray[Any]]
"""A number for each of the first k label bits, for any k."""


@dataclass(frozen=True)
class DetailChoice:
    """Number of detail bits, the sum of their weights for codes and for real-valued queries, in label bits."""

    n_bits: int
    total: float = TIE_BREAKING
    total_real: float = TIE_BREAKING


@dataclass(frozen=True)
class ScoredRows:
    """Instances with label-bit scores (n, all bits), features (n, d) and labels: classes or rows of 0/1."""

    scores: NDArray[Any]
    features: NDArray[Any]
    labels: NDArray[Any]

    def first(self, n: int) -> ScoredRows:
        """The first n instances."""
        return ScoredRows(self.scores[:n], self.features[:n], self.labels[:n])

    def beyond(self, n: int) -> ScoredRows:
        """All but the first n instances."""
        return ScoredRows(self.scores[n:], self.features[n:], self.labels[n:])


class Found(NamedTuple):
    """Average precision of each query, and the mean recall of the nearest."""

    precision: NDArray[np.float64]
    recall: float


class Tried(NamedTuple):
    """The loss in mAP of a choice, its standard error, and its worth."""

    price: float
    error: float
    worth: float

    def within(self, price: float) -> bool:
        """Whether the price is no higher than this one, with one standard error."""
        return self.price + self.error <= price


class Search:
    """Held-out queries in a database: label bits, and detail bits that join them."""

    def __init__(
        self,
        queries: ScoredRows,
        database: ScoredRows,
        label_weights: OfLabelBits,
        thresholds: OfLabelBits = np.zeros,
    ):
        self.queries, self.database = queries, database
        self.label_weights, self.thresholds = label_weights, thresholds
        labels = queries.labels, database.labels
        kind = SharesClass if labels[0].ndim == 1 else CountsSharedLabels
        n = len(queries.labels)
        self.relevant = kind(*labels).grades(0, n) > 0
        self.near = Nearest(queries.features, database.features, *labels, levels=(_NEAREST,)).grades(0, n) > 0
        kept = self.relevant.any(axis=1)
        self.relevant, self.near, self.kept = self.relevant[kept], self.near[kept], kept
        self.ties = np.random.default_rng(0).random(len(database.labels)).astype(np.float32) * np.float32(_TIES)
        whole = queries.scores.shape[1]
        self.level = {real: self.found(self.similarity(whole, real)) for real in (False, True)}

    def similarity(self, keep: int, real: bool) -> NDArray[np.float32]:
        """Agreement of the first `keep` label bits, in units of a mean label bit, (queries, database)."""
        weights = self.label_weights(keep)
        asked = self.held(self.queries, keep)[self.kept]
        asked = with_signs_of(self.queries.scores[self.kept, :keep], asked) if real else hamming.signs(asked)
        return _agreement(asked, self.held(self.database, keep), _in_units(weights))

    def held(self, part: ScoredRows, keep: int) -> NDArray[Any]:
        """The first label scores less their thresholds; their signs are the bits."""
        return part.scores[:, :keep] - self.thresholds(keep)

    def found(self, similarity: NDArray[np.float32]) -> Found:
        """Precision and recall of a ranking by similarity."""
        order = np.argsort(-(similarity + self.ties), axis=1)
        relevant = np.take_along_axis(self.relevant, order, axis=1)
        hits = np.cumsum(relevant, axis=1, dtype=np.float32)
        ranks = np.arange(1, relevant.shape[1] + 1, dtype=np.float32)
        precision = ((hits / ranks) * relevant).sum(axis=1, dtype=np.float64) / np.maximum(hits[:, -1], 1)
        among = np.take_along_axis(self.near, order[:, :_NEAREST], axis=1).sum(axis=1)
        recall = among / np.maximum(self.near.sum(axis=1), 1)
        return Found(precision, float(recall.mean()) if len(recall) else 0.0)

    def tried(self, similarity: NDArray[np.float32], real: bool) -> Tried:
        """Price and worth of a ranking, compared with the ranking by all label bits."""
        found, level = self.found(similarity), self.level[real]
        lost = level.precision - found.precision
        price = float(lost.mean()) if len(lost) else 0.0
        error = float(lost.std(ddof=1) / np.sqrt(len(lost))) if len(lost) > 1 else np.inf
        return Tried(price, error, found.recall - WORTH * max(price, 0.0))


class Details:
    """Detail bits after the first `keep` label bits, before they are weighted."""

    def __init__(self, search: Search, base: ScoredRows, keep: int, n_bits: int, seed: int | None):
        self.search, self.n_bits = search, n_bits
        detail = DetailBits(n_iter=6).fit(base.features, search.held(base, keep), n_bits, random_state=seed)
        parts = search.queries, search.database
        asked, stored = (detail.project(part.features, search.held(part, keep)) for part in parts)
        weights = join_weights(np.ones(1), detail.weights_, 1.0)[1:]
        self.apart = self_first_share(
            np.hstack([hamming.signs(search.held(search.database, keep)), hamming.signs(stored)])
        )
        self.label = {real: search.similarity(keep, real) for real in (False, True)}
        asked = asked[search.kept]
        self.fine = {
            real: _agreement(asked if real else hamming.signs(asked), stored, weights) for real in (False, True)
        }

    def tried(self, total: float, real: bool) -> Tried:
        """Price and worth if the details weigh this many label bits together."""
        return self.search.tried(self.label[real] + np.float32(total) * self.fine[real], real)

    def breaking_ties(self) -> Tried:
        """The mean over binary and real-valued queries, with tie-breaking weights."""
        return Tried(*np.mean([self.tried(TIE_BREAKING, real) for real in (False, True)], axis=0))

    def best_total(self, totals: Iterable[float], real: bool, price: float) -> float:
        """The total of the largest worth within the price; tie-breaking if none is."""
        tried = {total: self.tried(total, real) for total in totals}
        fitting = [total for total in tried if tried[total].within(price)]
        return max(fitting, key=lambda total: tried[total].worth, default=TIE_BREAKING)


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
    n_queries = min(len(held.scores) // 2, _QUERIES)
    base, rest = learned.first(_MOST), held.beyond(n_queries)
    database = ScoredRows(*(np.concatenate(pair) for pair in zip(_fields(base), _fields(rest), strict=True)))
    search = Search(held.first(n_queries), database, label_weights, thresholds)
    found = _best(_candidates(search, base, n, shares, price, random_state), n, price)
    if found is None:
        return DetailChoice(0)
    m = found.n_bits
    total = found.best_total((TIE_BREAKING, *(step * m for step in STEPS)), False, price)
    real = (TIE_BREAKING / 3, TIE_BREAKING, *(step * m for step in STEPS_REAL))
    return DetailChoice(m, total, found.best_total(real, True, price))


def _candidates(
    search: Search, base: ScoredRows, n: int, shares: Sequence[float], price: float, seed: int | None
) -> list[tuple[Details, Tried]]:
    """Numbers of detail bits, ascending, with their trials; it ends where the price is surely too high."""
    found = []
    for m in sorted({round(share * n) for share in shares} - {0, n}):
        details = Details(search, base, n - m, m, seed)
        found.append((details, details.breaking_ties()))
        if found[-1][1].price - found[-1][1].error > price:
            break
    return found


def _best(candidates: list[tuple[Details, Tried]], n: int, price: float) -> Details | None:
    """Step 1."""
    fitting = [each for each in candidates if each[1].within(price)]
    if not fitting and n >= FLOOR_FROM:
        fitting = [each for each in candidates[:1] if each[1].price <= price]
    fitting = [each for each in fitting if each[0].apart >= APART] or fitting
    return max(fitting, key=lambda each: each[1].worth)[0] if fitting else None


def _agreement(asked: NDArray[Any], stored: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float32]:
    """Half the weighted inner product with signs: the distance, negative, but for a constant of the query."""
    weighed = asked.astype(np.float32) * (weights / 2).astype(np.float32)
    agreement: NDArray[np.float32] = weighed @ hamming.signs(stored).T.astype(np.float32)
    return agreement


def _in_units(weights: NDArray[Any]) -> NDArray[Any]:
    """Weights over the mean of their sizes."""
    return weights / (float(np.abs(weights).mean()) or 1.0)


def _fields(part: ScoredRows) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return part.scores, part.features, part.labels
