"""The contract of every protocol: a seeded split, relevance, and named scores with their conventions.

The name of a score is the metric, followed by readings that are separated by dots:

    map                      plain Hamming distance, ties in database order
    map.tie-aware            the mean over all orders of tied items
    map.weighted             distance weighted by the method's bit weights
    map.real-valued          queries as real-valued scores, database as signs
    map.weighted.real-valued both
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import metrics
from hbmp.datasets import Data
from hbmp.protocols._shared.data import centred_unit
from hbmp.protocols._shared.measure import Measure
from hbmp.protocols._shared.readings import rankings_of
from hbmp.protocols._shared.split import Split


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
        for ranking in rankings_of(query_codes, query_scores, weights):
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


def _mean(column: NDArray[Any]) -> float:
    """Mean over the queries that were not dropped; NaN if all were."""
    return float(np.nanmean(column)) if not np.isnan(column).all() else float("nan")
