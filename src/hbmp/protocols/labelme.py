"""labelme: neighbours by distance between feature vectors, in levels, without labels (Table 4 of the paper)."""

from __future__ import annotations

import numpy as np

from hbmp import metrics
from hbmp.protocols._shared.base import Protocol, Split, all_but, ndcg_measures


class LabelMe(Protocol):
    """2,000 queries, a database of all others, of which 5,000 train; the nearest 2, 5, 10, 20 % grade 10, 5, 2, 1.

    normalize : subtract the training mean and scale every row to unit length first, as the paper's released code does
    """

    data = "labelme"
    measures = (ndcg_measures()[1], ndcg_measures()[0], ndcg_measures()[2])

    percentiles = (2, 5, 10, 20)
    grades = (10, 5, 2, 1)

    def __init__(self, *, n_train=5000, n_query=2000, normalize=True):
        self.n_train = n_train
        self.n_query = n_query
        self.normalize = normalize

    @property
    def drawing(self) -> str:
        """How the split is drawn."""
        return (
            f"{self.n_query:,} items drawn as queries; the database is all others, of which {self.n_train:,} train, "
            "without labels." + (" Features less the training mean, scaled to unit length." if self.normalize else "")
        )

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """What is relevant, in words."""
        levels = ", ".join(f"{share} % ({grade})" for share, grade in zip(self.percentiles, self.grades, strict=True))
        return (
            "Neighbours lie near in Euclidean distance; the grade c follows from the percentile of the distances "
            f"between training items: {levels}, 0 beyond."
        )

    def labels(self, data):
        """None: the method sees features alone."""
        return None

    def split(self, data, seed: int) -> Split:
        """Draw a split."""
        n_rows = len(data.features)
        if n_rows < self.n_query + self.n_train:
            raise ValueError(
                f"{self.name} draws {self.n_query} queries and {self.n_train} to train; {data.name} has {n_rows} rows. "
                "Set n_query and n_train lower."
            )
        order = np.random.default_rng(seed).permutation(n_rows)
        query = np.sort(order[: self.n_query])
        train = np.sort(order[self.n_query : self.n_query + self.n_train])
        return Split(train=train, query=query, database=all_but(n_rows, query))

    def features(self, data, split: Split) -> np.ndarray:
        """Rows less the training mean, scaled to unit length, (n, d) float32; as given without `normalize`."""
        rows = np.asarray(data.features, dtype=np.float32)
        if not self.normalize:
            return rows
        rows = rows - rows[split.train].mean(axis=0)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    def relevance(self, data, split: Split) -> metrics.Relevance:
        """Grades by distance, with the thresholds of the training set."""
        from scipy.spatial.distance import pdist

        features = self.features(data, split).astype(np.float64)
        thresholds = np.percentile(pdist(features[split.train]), self.percentiles)
        return metrics.DistanceLevels(features[split.query], features[split.database], thresholds, self.grades)
