"""The contract of every protocol: a seeded split, what is relevant, and named scores with their conventions.

A score's name says how it was taken. After the metric come the readings, separated by dots:

    map                      plain Hamming distance, ties in database order
    map.tie-aware            the mean over all orders of tied items
    map.weighted             distance weighted by the method's bit weights
    map.real-valued          queries as real-valued scores, database as signs
    map.weighted.real-valued both
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hbmp import metrics

GAINS = ("binary", "scaled", "shared")
_GAIN_TEXT = {"binary": "1 for any neighbour", "scaled": "2^(c/c_max) − 1", "shared": "2^c − 1"}


@dataclass(frozen=True)
class Split:
    """Which rows train, ask and answer: sorted index arrays into the rows of the data."""

    train: np.ndarray  # (n_train,)
    query: np.ndarray  # (n_query,)
    database: np.ndarray  # (n_database,), training rows included where the protocol says so

    @cached_property
    def checksum(self) -> str:
        """Twelve hex digits of the SHA-256 of all drawn indices: equal splits, equal digits."""
        digest = hashlib.sha256()
        for rows in (self.train, self.query, self.database):
            digest.update(len(rows).to_bytes(8, "little") + rows.astype("<i8").tobytes())
        return digest.hexdigest()[:12]

    def save(self, path) -> None:
        """Write one byte a row, 1 for train, 2 for query, 4 for database, added up, to a compressed `.npz` file."""
        n_rows = 1 + max(int(rows.max(initial=0)) for rows in (self.train, self.query, self.database))
        roles = np.zeros(n_rows, dtype=np.uint8)
        for role, rows in ((1, self.train), (2, self.query), (4, self.database)):
            roles[rows] |= role
        np.savez_compressed(Path(path), roles=roles)

    @classmethod
    def load(cls, path) -> Split:
        """A split written by `save`."""
        with np.load(path, allow_pickle=False) as stored:
            roles = stored["roles"]
        return cls(*(np.flatnonzero(roles & role) for role in (1, 2, 4)))


@dataclass(frozen=True)
class Measure:
    """One metric with its conventions: `map` or `ndcg`, a cutoff or None, and for NDCG a gain."""

    metric: str
    cutoff: int | None = None
    gain: str = ""

    @property
    def name(self) -> str:
        """For example "map", "map@5000", "ndcg-shared"."""
        return self.metric + (f"-{self.gain}" if self.gain else "") + (f"@{self.cutoff}" if self.cutoff else "")

    @property
    def caption(self) -> str:
        """The conventions in words."""
        ranking = f"the first {self.cutoff:,} items" if self.cutoff else "the full ranking"
        if self.metric == "map":
            return (
                f"{self.name}: mean average precision over {ranking}, divided by the hits found there, queries without "
                "a hit left out"
            )
        return f"{self.name}: NDCG over {ranking}, gain {_GAIN_TEXT[self.gain]}"

    def scorer(self, relevance, *, ties: str, largest_grade: float | None):
        """The value for one ranked list, as `metrics.score_together` takes it."""
        if self.metric == "map":
            return metrics.average_precision_scorer(relevance.shape[1], cutoff=self.cutoff, ties=ties)
        largest = largest_grade if self.gain == "scaled" else None
        return metrics.ndcg_scorer(relevance, cutoff=self.cutoff, gain=self.gain, ties=ties, largest_grade=largest)


class Protocol:
    """Base of all protocols. A subclass stores its sizes and defines `split`.

    `data` names the data set of the paper; `drawing` and `neighbours` are the words a caption prints; `measures` the
    metrics, the first of which is the protocol's own.
    """

    data = ""
    neighbours = ""
    measures: tuple[Measure, ...] = ()

    @property
    def name(self) -> str:
        """The name of the protocol: its file's, with hyphens."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    @property
    def drawing(self) -> str:
        """How training, query and database items are drawn, in words."""
        raise NotImplementedError

    @property
    def caption(self) -> str:
        """What a table prints below itself: split, neighbours, cutoff, denominator, tie rule and gain."""
        measured = ". ".join(measure.caption for measure in self.measures)
        return (
            f"{self.name}: {self.drawing} {self.neighbours} {measured}. Items at equal distance keep the order of the "
            "database; “tie-aware” is the mean over all their orders."
        )

    def labels(self, data):
        """What the method learns from and what decides relevance: (n,) classes, (n, c) labels, or None."""
        return data.labels

    def features(self, data, split: Split) -> np.ndarray | None:
        """What the method sees, (n, d), for all rows; None where the data have no features."""
        return data.features

    def split(self, data, seed: int) -> Split:
        """Draw the split of `data` for a seed."""
        raise NotImplementedError

    def relevance(self, data, split: Split) -> metrics.Relevance:
        """What is relevant to the split's queries in its database."""
        labels = self.labels(data)
        kind = metrics.SameClass if np.ndim(labels) == 1 else metrics.SharedLabels
        return kind(labels[split.query], labels[split.database])

    def evaluate(
        self, query_codes, database_codes, data, split, *, bit_weights=None, query_scores=None
    ) -> dict[str, float]:
        """All scores of codes (n_query, bits) and (n_database, bits); the module says how they are named.

        query_scores (n_query, bits): the queries before the sign, for the real-valued readings.
        """
        return self.evaluate_with_curve(
            query_codes, database_codes, data, split, bit_weights=bit_weights, query_scores=query_scores
        )[0]

    def evaluate_with_curve(
        self, query_codes, database_codes, data, split, *, bit_weights=None, query_scores=None, n_points=30
    ) -> tuple[dict[str, float], dict[str, list]]:
        """All scores, and the precision–recall curve by the method's distance at about `n_points` ranks, for JSON."""
        weights = None if bit_weights is None or np.ptp(bit_weights) == 0 else np.asarray(bit_weights)
        relevance = metrics.remembered(self.relevance(data, split))
        largest = metrics.find_largest_grade(relevance) if any(m.gain == "scaled" for m in self.measures) else None
        ranks = metrics.curve_ranks(relevance.shape[1], n_points)
        values: dict[str, np.ndarray] = {}
        for ranking in _rankings(query_codes, query_scores, weights):
            scorers = {
                measure.name + reading: measure.scorer(relevance, ties=ties, largest_grade=largest)
                for measure in self.measures
                for reading, ties in ranking.readings.items()
            }
            if ranking.by_the_methods_distance:
                scorers["curve"] = metrics.hits_scorer(ranks)
            values |= metrics.score_together(
                ranking.queries, database_codes, relevance, scorers, bit_weights=ranking.weights
            )
        hits = values.pop("curve")
        curve = metrics.curve_of(ranks, hits[:, :-1], hits[:, -1])
        return {name: _mean(column) for name, column in sorted(values.items())}, {
            "rank": curve.cutoffs.tolist(),
            "precision": np.round(curve.precision, 4).tolist(),
            "recall": np.round(curve.recall, 5).tolist(),
        }


@dataclass(frozen=True)
class _Ranking:
    """One way to order the database, and the readings taken of it: name after the metric's → tie rule."""

    queries: np.ndarray
    weights: np.ndarray | None
    readings: dict[str, str]
    by_the_methods_distance: bool = False


def _rankings(query_codes, query_scores, weights) -> list[_Ranking]:
    """Plain, weighted and real-valued; weighted ones only where the weights differ."""
    plain = {"": "database", ".tie-aware": "average"}
    rankings = [_Ranking(query_codes, None, plain, by_the_methods_distance=weights is None)]
    if weights is not None:
        weighted = {".weighted" + reading: ties for reading, ties in plain.items()}
        rankings.append(_Ranking(query_codes, weights, weighted, by_the_methods_distance=True))
    if query_scores is not None:
        rankings.append(_Ranking(query_scores, None, {".real-valued": "database"}))
        if weights is not None:
            rankings.append(_Ranking(query_scores, weights, {".weighted.real-valued": "database"}))
    return rankings


def _mean(column: np.ndarray) -> float:
    """Mean over the queries that were not dropped; NaN where all were."""
    return float(np.nanmean(column)) if not np.isnan(column).all() else float("nan")


def ndcg_measures(cutoff: int | None = None) -> tuple[Measure, ...]:
    """NDCG in its three readings: published numbers do not say which of them they are."""
    return tuple(Measure("ndcg", cutoff, gain) for gain in GAINS)


def draw_per_class(classes: np.ndarray, counts: tuple[int, ...], seed: int) -> list[np.ndarray]:
    """Disjoint sorted index arrays, one for each count, with that many items of every class."""
    rng = np.random.default_rng(seed)
    drawn: list[list[np.ndarray]] = [[] for _ in counts]
    for value in np.unique(classes):
        rows = rng.permutation(np.flatnonzero(classes == value))
        if len(rows) < sum(counts):
            raise ValueError(
                f"The protocol draws {sum(counts)} items of every class, class {value} has {len(rows)}. "
                "Use the whole data set, or set fewer items a class."
            )
        for part, piece in zip(drawn, np.split(rows, np.cumsum(counts))[:-1], strict=True):
            part.append(piece)
    return [np.sort(np.concatenate(part)) for part in drawn]


def all_but(n_rows: int, left_out: np.ndarray) -> np.ndarray:
    """The indices below n_rows that are not left out, sorted."""
    kept = np.ones(n_rows, dtype=bool)
    kept[left_out] = False
    return np.flatnonzero(kept)


def need_classes(data) -> np.ndarray:
    """One class an item, (n,), or one sentence saying what is wrong."""
    if data.labels is None or np.ndim(data.labels) != 1:
        found = "no labels" if data.labels is None else f"label sets of shape {np.shape(data.labels)}"
        raise ValueError(f"This protocol needs one class an item; {data.name} has {found}. Use another data set.")
    return np.asarray(data.labels)


def need_label_sets(data) -> np.ndarray:
    """Rows of 0/1 labels, (n, c), or one sentence saying what is wrong."""
    if data.labels is None or np.ndim(data.labels) != 2:
        found = "no labels" if data.labels is None else "one class an item"
        raise ValueError(f"This protocol needs rows of 0/1 labels; {data.name} has {found}. Use another data set.")
    return np.asarray(data.labels)


def given_split(data) -> np.ndarray:
    """The split that comes with the data, (n,): 0 query, 1 train, 2 further database, -1 unused."""
    if data.split is None:
        raise ValueError(f"This protocol uses the split that comes with the data; {data.name} has none. Add `split`.")
    return np.asarray(data.split)
