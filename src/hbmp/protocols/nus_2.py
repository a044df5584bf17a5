"""nus-2: all images except the queries are training set and database (Table 2 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.datasets import Data
from hbmp.protocols._shared.measure import Measure
from hbmp.protocols._shared.nus import FrequentConcepts as _FrequentConcepts
from hbmp.protocols._shared.nus import draw_per_concept
from hbmp.protocols._shared.split import Split


class Nus2(_FrequentConcepts):
    """100 images per concept query; all others are both training set and database.

    Parameters
    ----------
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
    >>> protocol = protocols.get("nus-2", query_per_concept=2, n_concepts=3)
    >>> len(protocol.split(datasets.Data("nuswide", labels), seed=0).database)
    54
    """

    measures = (Measure("map", 50000), Measure("map"))

    def __init__(self, *, query_per_concept: int = 100, n_concepts: int = 21, normalize: bool = False):
        self.query_per_concept = query_per_concept
        self.n_concepts = n_concepts
        self.normalize = normalize

    @property
    def drawing(self) -> str:
        """How the split is drawn, for the caption."""
        return (
            f"images with any of the {self.n_concepts} most frequent concepts, {self.query_per_concept} per concept "
            "drawn as queries, none twice; all others are both training set and database."
        )

    def split(self, data: Data, seed: int) -> Split:
        """Draw a split, concepts in descending frequency; the queries equal those of nus-1 with the same seed.

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
        labels = self.labels(data)
        free: NDArray[Any] = np.asarray(labels.any(axis=1))
        query = draw_per_concept(labels, self.query_per_concept, free, np.random.default_rng(seed))
        others = np.flatnonzero(free)
        return Split(train=others, query=query, database=others)
