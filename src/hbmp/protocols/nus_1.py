"""nus-1: few training images per concept, a large database (Tables 1 and 4 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.datasets import Data
from hbmp.protocols._shared.measure import Measure, ndcg_measures
from hbmp.protocols._shared.nus import FrequentConcepts as _FrequentConcepts
from hbmp.protocols._shared.nus import draw_per_concept
from hbmp.protocols._shared.split import Split


class Nus1(_FrequentConcepts):
    """500 images per concept train, 100 per concept query, and all images except the queries are the database.

    Parameters
    ----------
    train_per_concept : int, default=500
        Training images per concept.
    query_per_concept : int, default=100
        Queries per concept.
    n_concepts : int, default=21
        Number of most frequent concepts that count.
    normalize : bool, default=False
        Whether to subtract the training mean from the features and scale them to unit length, as in the paper's
        released code.

    Examples
    --------
    >>> from hbmp import datasets, protocols
    >>> import numpy as np
    >>> labels = np.eye(3, dtype=np.uint8)[np.arange(60) % 3]
    >>> protocol = protocols.get("nus-1", train_per_concept=5, query_per_concept=2, n_concepts=3)
    >>> len(protocol.split(datasets.Data("nuswide", labels), seed=0).train)
    15
    """

    measures = (Measure("map", 5000), Measure("map"), *ndcg_measures())

    def __init__(
        self,
        *,
        train_per_concept: int = 500,
        query_per_concept: int = 100,
        n_concepts: int = 21,
        normalize: bool = False,
    ):
        self.train_per_concept = train_per_concept
        self.query_per_concept = query_per_concept
        self.n_concepts = n_concepts
        self.normalize = normalize

    @property
    def drawing(self) -> str:
        """How the split is drawn, for the caption."""
        return (
            f"images with any of the {self.n_concepts} most frequent concepts, {self.query_per_concept} per concept "
            f"drawn as queries and {self.train_per_concept} per concept for training, none twice; the database is all "
            "except the queries and includes the training images."
        )

    def split(self, data: Data, seed: int) -> Split:
        """Draw a split, concepts in descending frequency.

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
        labels, rng = self.labels(data), np.random.default_rng(seed)
        used: NDArray[Any] = np.asarray(labels.any(axis=1))
        free = used.copy()
        query = draw_per_concept(labels, self.query_per_concept, free, rng)
        train = draw_per_concept(labels, self.train_per_concept, free, rng)
        used[query] = False
        return Split(train=train, query=query, database=np.flatnonzero(used))
