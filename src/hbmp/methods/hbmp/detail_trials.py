"""Trials of label bits and detail bits as a search: what they cost in mAP and what they find.

Queries, which may be in the database, rank its instances by label bits, and by label bits and details of any weight.

    price      mAP of all n label bits minus the mAP with details, and its standard error over the queries
    recall     share of the ten nearest of the query's class or labels among the first ten
    worth      recall - `WORTH` · price
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.methods.hbmp.detail import TIE_BREAKING, DetailBits, join_weights
from hbmp.methods.hbmp.dither import with_signs_of
from hbmp.metrics import CountsSharedLabels, Nearest, SharesClass, self_first_share

STEPS = (0.05, 0.1, 0.2, 0.5)
"""Weights of one detail bit that are tried, in label bits; beside them stand tie-breaking weights."""
WORTH = 8.0
"""What a point of mAP is worth in points of recall. See docs/detail-bits.md."""
SURE = 1.5
"""Standard errors that a price is off at most."""
_NEAREST = 10
_TIES = 1e-4  # of a label bit: ties are broken at random, the same for every candidate

OfLabelBits = Callable[[int], NDArray[Any]]
"""A number for each of the first k label bits, for any k."""


@dataclass(frozen=True)
class ScoredRows:
    """Instances with label-bit scores (n, all bits), features (n, d) and labels: classes or rows of 0/1."""

    scores: NDArray[Any]
    features: NDArray[Any]
    labels: NDArray[Any]

    def first(self, n: int) -> ScoredRows:
        """The first n instances."""
        return ScoredRows(self.scores[:n], self.features[:n], self.labels[:n])


class Found(NamedTuple):
    """Average precision of each query, and the mean recall of the nearest."""

    precision: NDArray[np.float64]
    recall: float


class Tried(NamedTuple):
    """A sum of weights, the loss in mAP that comes with it, its standard error, and the recall."""

    total: float
    price: float
    error: float
    recall: float

    @property
    def worth(self) -> float:
        """Recall less the price of it; no credit for a gain in mAP, which is chance."""
        return self.recall - WORTH * max(self.price, 0.0)

    def within(self, price: float) -> bool:
        """Whether the price is surely no higher than this one."""
        return self.price + SURE * self.error <= price

    def surely_beyond(self, price: float) -> bool:
        """Whether the price is surely higher than this one."""
        return self.price - SURE * self.error > price


class Search:
    """Held-out queries in a database: label bits, and detail bits that join them."""

    def __init__(
        self,
        queries: ScoredRows,
        database: ScoredRows,
        label_weights: OfLabelBits,
        thresholds: OfLabelBits = np.zeros,
        own: NDArray[np.int64] | None = None,
    ):
        """own: the place of each query in the database, where it is in it and is not to find itself."""
        self.queries, self.database = queries, database
        self.label_weights, self.thresholds = label_weights, thresholds
        labels = queries.labels, database.labels
        kind = SharesClass if labels[0].ndim == 1 else CountsSharedLabels
        n = len(queries.labels)
        self.relevant = kind(*labels).grades(0, n) > 0
        nearest = _NEAREST if own is None else _NEAREST + 1
        self.near = Nearest(queries.features, database.features, *labels, levels=(nearest,)).grades(0, n) > 0
        if own is not None:
            self.relevant[np.arange(n), own] = self.near[np.arange(n), own] = False
        kept = self.relevant.any(axis=1)
        self.own = None if own is None else own[kept]
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
        distance = -(similarity + self.ties)
        if self.own is not None:
            distance[np.arange(len(distance)), self.own] = np.inf
        order = np.argsort(distance, axis=1)
        relevant = np.take_along_axis(self.relevant, order, axis=1)
        hits = np.cumsum(relevant, axis=1, dtype=np.float32)
        ranks = np.arange(1, relevant.shape[1] + 1, dtype=np.float32)
        precision = ((hits / ranks) * relevant).sum(axis=1, dtype=np.float64) / np.maximum(hits[:, -1], 1)
        among = np.take_along_axis(self.near, order[:, :_NEAREST], axis=1).sum(axis=1)
        recall = among / np.maximum(self.near.sum(axis=1), 1)
        return Found(precision, float(recall.mean()) if len(recall) else 0.0)

    def tried(self, total: float, similarity: NDArray[np.float32], real: bool) -> Tried:
        """Price and recall of a ranking, compared with the ranking by all label bits."""
        found, level = self.found(similarity), self.level[real]
        lost = level.precision - found.precision
        price = float(lost.mean()) if len(lost) else 0.0
        error = float(lost.std(ddof=1) / np.sqrt(len(lost))) if len(lost) > 1 else np.inf
        return Tried(total, price, error, found.recall)


class Details:
    """Detail bits after the first `keep` label bits, before they are weighted."""

    def __init__(self, search: Search, base: ScoredRows, keep: int, n_bits: int, seed: int | None):
        self.search, self.n_bits = search, n_bits
        detail = DetailBits(n_iter=6).fit(base.features, search.held(base, keep), n_bits, random_state=seed)
        parts = search.queries, search.database
        asked, stored = (detail.project(part.features, search.held(part, keep)) for part in parts)
        weights = join_weights(np.ones(1), detail.weights_, 1.0)[1:]
        self.apart = self_first_share(
            np.hstack([hamming.signs(search.held(search.database, keep)), hamming.signs(stored)]),
            search.database.features,
        )
        self.label = {real: search.similarity(keep, real) for real in (False, True)}
        asked = asked[search.kept]
        self.fine = {
            real: _agreement(asked if real else hamming.signs(asked), stored, weights) for real in (False, True)
        }

    def tried(self, total: float, real: bool) -> Tried:
        """Price and recall if the details weigh this many label bits together."""
        return self.search.tried(total, self.label[real] + np.float32(total) * self.fine[real], real)

    def tries(self, real: bool, price: float) -> list[Tried]:
        """Tie-breaking weights, then others, heavier and heavier until they surely cost more than this."""
        found = [self.tried(TIE_BREAKING, real)]
        if real:
            found.append(self.tried(TIE_BREAKING / 3, real))
        for total in (step * self.n_bits for step in STEPS if step * self.n_bits > TIE_BREAKING):
            found.append(self.tried(total, real))
            if found[-1].surely_beyond(price):
                break
        return found


def _agreement(asked: NDArray[Any], stored: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float32]:
    """Half the weighted inner product with signs: the distance, negative, but for a constant of the query."""
    weighed = asked.astype(np.float32) * (weights / 2).astype(np.float32)
    agreement: NDArray[np.float32] = weighed @ hamming.signs(stored).T.astype(np.float32)
    return agreement


def _in_units(weights: NDArray[Any]) -> NDArray[Any]:
    """Weights over the mean of their sizes."""
    return weights / (float(np.abs(weights).mean()) or 1.0)
