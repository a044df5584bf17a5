"""The contract of every protocol: a seeded split, relevance, and named scores with their conventions.

The name of a score is the metric, followed by readings that are separated by dots:

    map                      plain Hamming distance, ties in database order
    map.tie-aware            the mean over all orders of tied items
    map.weighted             distance weighted by the method's bit weights
    map.real-valued          queries as real-valued scores, database as signs
    map.weighted.real-valued both
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import metrics
from hbmp._core.arrays import read_npz
from hbmp._core.files import beside
from hbmp._core.reading import reading
from hbmp.datasets import Data

GAINS = ("binary", "scaled", "shared")
_GAIN_TEXT = {"binary": "1 for any neighbour", "scaled": "2^(c/c_max) − 1", "shared": "2^c − 1"}


@dataclass(frozen=True)
class Split:
    """Training, query and database rows: sorted index arrays into the rows of the data.

    Parameters
    ----------
    train : ndarray of int, shape (n_train,)
        Training rows.
    query : ndarray of int, shape (n_query,)
        Queries.
    database : ndarray of int, shape (n_database,)
        Rows that are searched; training rows are included where the protocol includes them.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.protocols import Split
    >>> Split(np.array([0, 1]), np.array([2]), np.array([0, 1, 3])).checksum
    '527608f2a1d3'
    """

    train: NDArray[Any]
    query: NDArray[Any]
    database: NDArray[Any]

    @cached_property
    def checksum(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of all rows: equal splits have equal digits."""
        digest = hashlib.sha256()
        for rows in (self.train, self.query, self.database):
            digest.update(len(rows).to_bytes(8, "little") + rows.astype("<i8").tobytes())
        return digest.hexdigest()[:12]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a compressed `.npz` file with one byte per row: 1 for train, 2 for query, 4 for database, added up.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        n_rows = 1 + max(int(rows.max(initial=0)) for rows in (self.train, self.query, self.database))
        roles = np.zeros(n_rows, dtype=np.uint8)
        for role, rows in ((1, self.train), (2, self.query), (4, self.database)):
            roles[rows] |= role
        with beside(Path(path)) as part, open(part, "wb") as file:
            np.savez_compressed(file, roles=roles)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Split:
        """Read a split that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Split
            The split.
        """
        arrays = read_npz(Path(path))
        with reading(Path(path), "a split"):
            return cls(*(np.flatnonzero(arrays["roles"] & role) for role in (1, 2, 4)))


@dataclass(frozen=True)
class Measure:
    """A metric with its conventions.

    Parameters
    ----------
    metric : {"map", "ndcg"}
        The metric.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    gain : {"binary", "scaled", "shared"}, default=""
        Gain of NDCG.

    Examples
    --------
    >>> from hbmp.protocols import Measure
    >>> Measure("map", 5000).name, Measure("ndcg", gain="shared").name
    ('map@5000', 'ndcg-shared')
    """

    metric: str
    cutoff: int | None = None
    gain: str = ""

    @property
    def name(self) -> str:
        """Name of the score, such as "map", "map@5000" or "ndcg-shared"."""
        return self.metric + (f"-{self.gain}" if self.gain else "") + (f"@{self.cutoff}" if self.cutoff else "")

    @property
    def caption(self) -> str:
        """The conventions in words."""
        ranking = f"the first {self.cutoff:,} items" if self.cutoff else "the full ranking"
        if self.metric == "map":
            return (
                f"{self.name}: mean average precision over {ranking}, divided by the hits among these; queries "
                "without a hit are left out"
            )
        return f"{self.name}: NDCG over {ranking}, gain {_GAIN_TEXT[self.gain]}"

    def scorer(self, relevance: metrics.Relevance, *, ties: str, largest_grade: float | None) -> Callable[[Any], float]:
        """The metric of one ranked list, for `metrics.score_together`.

        Parameters
        ----------
        relevance : Relevance
            Grades of all queries.
        ties : str
            Tie rule.
        largest_grade : float or None
            Largest grade, for the scaled gain.

        Returns
        -------
        callable
            Maps a ranked list to its score.
        """
        if self.metric == "map":
            return metrics.average_precision_scorer(relevance.shape[1], cutoff=self.cutoff, ties=ties)
        largest = largest_grade if self.gain == "scaled" else None
        return metrics.ndcg_scorer(relevance, cutoff=self.cutoff, gain=self.gain, ties=ties, largest_grade=largest)


class Protocol:
    """Base of all protocols. A subclass stores its sizes and defines `split`.

    Attributes
    ----------
    data : str
        Name of the paper's data set.
    neighbours : str
        Definition of relevance, for the caption.
    measures : tuple of Measure
        The metrics; the first one is the protocol's own.
    normalize : bool
        Whether to subtract the training mean from the features and scale them to unit length. A parameter of most
        protocols.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp import datasets
    >>> from hbmp.protocols import Measure, Protocol, Split
    >>> class Halves(Protocol):
    ...     measures = (Measure("map"),)
    ...     def split(self, data, seed):
    ...         train, query = np.split(np.random.default_rng(seed).permutation(len(data)), [len(data) // 2])
    ...         return Split(np.sort(train), np.sort(query), np.sort(train))
    >>> digits = datasets.load("digits")
    >>> split = Halves().split(digits, seed=0)
    >>> signs = np.where(digits.features > 0.5, 1, -1).astype(np.int8)
    >>> scores = Halves().evaluate(signs[split.query], signs[split.database], digits, split)
    >>> sorted(scores)
    ['map', 'map.tie-aware']
    """

    data = ""
    neighbours = ""
    measures: tuple[Measure, ...] = ()
    normalize: bool = False

    @property
    def name(self) -> str:
        """Name of the protocol: the name of its file, with hyphens."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    @property
    def drawing(self) -> str:
        """How training, query and database items are drawn, for the caption."""
        raise NotImplementedError

    @property
    def caption(self) -> str:
        """The caption of a table: split, relevance, cutoff, denominator, tie rule and gain."""
        measured = ". ".join(measure.caption for measure in self.measures)
        return (
            f"{self.name}: {self.drawing} {self.neighbours} {measured}. Items at equal distance keep the order of the "
            "database; “tie-aware” is the mean over all orders of such items."
        )

    def labels(self, data: Data) -> NDArray[Any] | None:
        """Labels that the method learns from and that decide relevance.

        Parameters
        ----------
        data : Data
            The data set.

        Returns
        -------
        ndarray of shape (n,) or (n, c), or None
            Classes, 0/1 labels, or nothing.
        """
        return data.labels

    def features(self, data: Data, split: Split) -> NDArray[Any] | None:
        """Features that the method learns from.

        Parameters
        ----------
        data : Data
            The data set.
        split : Split
            The split.

        Returns
        -------
        ndarray of shape (n, d), or None
            Features of all rows; None if the data have none.
        """
        return centred_unit(data.features, split) if self.normalize and data.features is not None else data.features

    def split(self, data: Data, seed: int) -> Split:
        """Draw the split of a data set.

        Parameters
        ----------
        data : Data
            The data set.
        seed : int
            Seed of the draw.

        Returns
        -------
        Split
            Training, query and database rows.
        """
        raise NotImplementedError

    def relevance(self, data: Data, split: Split) -> metrics.Relevance:
        """Relevance of the database for the queries of a split.

        Parameters
        ----------
        data : Data
            The data set.
        split : Split
            The split.

        Returns
        -------
        Relevance
            Grades of the database for each query.
        """
        labels = self.labels(data)
        if labels is None:
            raise ValueError(f"{self.name} defines relevance by labels, and {data.name} has none. Use other data.")
        kind: type = metrics.SharesClass if np.ndim(labels) == 1 else metrics.CountsSharedLabels
        relevance: metrics.Relevance = kind(labels[split.query], labels[split.database])
        return relevance

    def evaluate(
        self,
        query_codes: ArrayLike,
        database_codes: ArrayLike,
        data: Data,
        split: Split,
        *,
        bit_weights: ArrayLike | None = None,
        query_scores: ArrayLike | None = None,
    ) -> dict[str, float]:
        """Compute all scores of codes.

        Parameters
        ----------
        query_codes : array-like of shape (n_query, bits)
            Codes of the queries.
        database_codes : array-like of shape (n_database, bits)
            Codes of the database.
        data : Data
            The data set.
        split : Split
            The split.
        bit_weights : array-like of shape (bits,), default=None
            Weights of the bits, for the weighted readings.
        query_scores : array-like of shape (n_query, bits), default=None
            The queries before the sign, for the real-valued readings.

        Returns
        -------
        dict of str to float
            Scores by name; see the module.
        """
        return self.evaluate_with_curve(
            query_codes, database_codes, data, split, bit_weights=bit_weights, query_scores=query_scores
        )[0]

    def evaluate_with_curve(
        self,
        query_codes: ArrayLike,
        database_codes: ArrayLike,
        data: Data,
        split: Split,
        *,
        bit_weights: ArrayLike | None = None,
        query_scores: ArrayLike | None = None,
        n_points: int = 30,
    ) -> tuple[dict[str, float], dict[str, list[float]]]:
        """Compute all scores, and the precision–recall curve by the method's own distance.

        Parameters
        ----------
        query_codes : array-like of shape (n_query, bits)
            Codes of the queries.
        database_codes : array-like of shape (n_database, bits)
            Codes of the database.
        data : Data
            The data set.
        split : Split
            The split.
        bit_weights : array-like of shape (bits,), default=None
            Weights of the bits, for the weighted readings.
        query_scores : array-like of shape (n_query, bits), default=None
            The queries before the sign, for the real-valued readings.
        n_points : int, default=30
            Approximate number of ranks of the curve.

        Returns
        -------
        scores : dict of str to float
            Scores by name.
        curve : dict of str to list
            "rank", "precision" and "recall", rounded for JSON.
        """
        weights = None if bit_weights is None or np.ptp(bit_weights) == 0 else np.asarray(bit_weights)
        relevance = metrics.remembered(self.relevance(data, split))
        largest = metrics.find_largest_grade(relevance) if any(m.gain == "scaled" for m in self.measures) else None
        ranks = metrics.curve_ranks(relevance.shape[1], n_points)
        values: dict[str, NDArray[Any]] = {}
        for ranking in _rankings(query_codes, query_scores, weights):
            scorers: dict[str, Callable[[Any], Any]] = {
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
    """One order of the database, and the readings computed from it: suffix of the score's name → tie rule."""

    queries: ArrayLike
    weights: ArrayLike | None
    readings: dict[str, str]
    by_the_methods_distance: bool = False


def _rankings(query_codes: ArrayLike, query_scores: ArrayLike | None, weights: ArrayLike | None) -> list[_Ranking]:
    """Plain, weighted and real-valued rankings; weighted ones only if the weights differ."""
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


def _mean(column: NDArray[Any]) -> float:
    """Mean over the queries that were not dropped; NaN if all were."""
    return float(np.nanmean(column)) if not np.isnan(column).all() else float("nan")


def ndcg_measures(cutoff: int | None = None) -> tuple[Measure, ...]:
    """NDCG in its three readings: published numbers rarely state which one they are."""
    return tuple(Measure("ndcg", cutoff, gain) for gain in GAINS)


def centred_unit(features: NDArray[Any] | None, split: Split) -> NDArray[Any]:
    """Features minus the mean of the training rows, scaled to unit length, float32."""
    rows = np.asarray(features, dtype=np.float32)
    centred: NDArray[Any] = rows - rows[split.train].mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
    return centred


def draw_per_class(classes: NDArray[Any], counts: tuple[int, ...], seed: int) -> list[NDArray[Any]]:
    """Disjoint sorted index arrays, one per count, with that many items of every class."""
    rng = np.random.default_rng(seed)
    drawn: list[list[NDArray[Any]]] = [[] for _ in counts]
    for value in np.unique(classes):
        rows = rng.permutation(np.flatnonzero(classes == value))
        if len(rows) < sum(counts):
            raise ValueError(
                f"The protocol draws {sum(counts)} items per class, and class {value} has {len(rows)}. "
                "Use the whole data set, or set fewer items per class."
            )
        for part, piece in zip(drawn, np.split(rows, np.cumsum(counts))[:-1], strict=True):
            part.append(piece)
    return [np.sort(np.concatenate(part)) for part in drawn]


def all_but(n_rows: int, left_out: NDArray[Any]) -> NDArray[Any]:
    """The sorted indices below n_rows without those left out."""
    kept = np.ones(n_rows, dtype=bool)
    kept[left_out] = False
    return np.flatnonzero(kept)


def need_classes(data: Data) -> NDArray[Any]:
    """One class per item, (n,), or an error of one sentence."""
    if data.labels is None or np.ndim(data.labels) != 1:
        found = "no labels" if data.labels is None else f"a label matrix of shape {np.shape(data.labels)}"
        raise ValueError(f"This protocol needs one class per item; {data.name} has {found}. Use another data set.")
    return np.asarray(data.labels)


def need_label_sets(data: Data) -> NDArray[Any]:
    """Rows of 0/1 labels, (n, c), or an error of one sentence."""
    if data.labels is None or np.ndim(data.labels) != 2:
        found = "no labels" if data.labels is None else "one class per item"
        raise ValueError(f"This protocol needs rows of 0/1 labels; {data.name} has {found}. Use another data set.")
    return np.asarray(data.labels)


def given_split(data: Data) -> NDArray[Any]:
    """The split that comes with the data, (n,): 0 query, 1 train, 2 further database, -1 unused."""
    if data.split is None:
        raise ValueError(f"This protocol uses the split that comes with the data; {data.name} has none. Add `split`.")
    return np.asarray(data.split)
