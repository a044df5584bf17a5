"""labelme: graded neighbours by distance between feature vectors, without labels (Table 4 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import metrics
from hbmp.datasets import Data
from hbmp.protocols._shared.base import Protocol
from hbmp.protocols._shared.data import centred_unit
from hbmp.protocols._shared.measure import ndcg_measures
from hbmp.protocols._shared.split import Split, all_but


class LabelMe(Protocol):
    """2,000 items query, and all others are the database; 5,000 of these train. The nearest 2, 5, 10 and 20 % have
    grades 10, 5, 2 and 1.

    Parameters
    ----------
    n_train : int, default=5000
        Training items.
    n_query : int, default=2000
        Queries.
    normalize : bool, default=True
        Whether to subtract the training mean and scale every row to unit length, as the paper's released code does.

    Examples
    --------
    >>> from hbmp import datasets, protocols
    >>> digits = datasets.load("digits")
    >>> protocol = protocols.get("labelme", n_train=200, n_query=20)
    >>> split = protocol.split(digits, seed=0)
    >>> protocol.relevance(digits, split).shape
    (20, 1777)
    """

    data = "labelme"
    measures = (ndcg_measures()[1], ndcg_measures()[0], ndcg_measures()[2])

    percentiles = (2, 5, 10, 20)
    grades = (10, 5, 2, 1)

    def __init__(self, *, n_train: int = 5000, n_query: int = 2000, normalize: bool = True):
        self.n_train = n_train
        self.n_query = n_query
        self.normalize = normalize

    @property
    def drawing(self) -> str:
        """How the split is drawn, for the caption."""
        return (
            f"{self.n_query:,} items drawn as queries; the database is all others; {self.n_train:,} of these train, "
            "without labels." + (" Features less the training mean, scaled to unit length." if self.normalize else "")
        )

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """Definition of relevance, for the caption."""
        levels = ", ".join(f"{share} % ({grade})" for share, grade in zip(self.percentiles, self.grades, strict=True))
        return (
            "Neighbours are close in Euclidean distance; the grade c follows from the percentile of the distances "
            f"between training items: {levels}, 0 beyond."
        )

    def labels(self, data: Data) -> None:
        """Return None: the method learns from features alone.

        Parameters
        ----------
        data : Data
            The data set.
        """
        return None

    def split(self, data: Data, seed: int) -> Split:
        """Draw a split.

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
        n_rows = len(data)
        if n_rows < self.n_query + self.n_train:
            raise ValueError(
                f"{self.name} draws {self.n_query} queries and {self.n_train} to train; {data.name} has {n_rows} rows. "
                "Set n_query and n_train lower."
            )
        order = np.random.default_rng(seed).permutation(n_rows)
        query = np.sort(order[: self.n_query])
        train = np.sort(order[self.n_query : self.n_query + self.n_train])
        return Split(train=train, query=query, database=all_but(n_rows, query))

    def features(self, data: Data, split: Split) -> NDArray[Any]:
        """Features minus the training mean, scaled to unit length; unchanged without `normalize`.

        Parameters
        ----------
        data : Data
            The data set.
        split : Split
            The split.

        Returns
        -------
        ndarray of float32, shape (n, d)
            Features of all rows.
        """
        if self.normalize:
            return centred_unit(data.features, split)
        return np.asarray(data.features, dtype=np.float32)

    def relevance(self, data: Data, split: Split) -> metrics.Relevance:
        """Grades by distance, with the thresholds of the training set.

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
        from scipy.spatial.distance import pdist

        features = self.features(data, split).astype(np.float64)
        thresholds = np.percentile(pdist(features[split.train]), self.percentiles)
        return metrics.DistanceGrades(features[split.query], features[split.database], thresholds, self.grades)
