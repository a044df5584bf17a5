"""nus-2: all images but the queries train and answer (Table 2 of the paper)."""

from __future__ import annotations

import numpy as np

from hbmp.protocols._shared.base import Measure, Split
from hbmp.protocols._shared.nus import FrequentConcepts as _FrequentConcepts
from hbmp.protocols._shared.nus import draw_per_concept


class Nus2(_FrequentConcepts):
    """100 images a concept as queries, all others to train and as database."""

    measures = (Measure("map", 50000), Measure("map"))

    def __init__(self, *, query_per_concept=100, n_concepts=21):
        self.query_per_concept = query_per_concept
        self.n_concepts = n_concepts

    @property
    def drawing(self) -> str:
        """How the split is drawn."""
        return (
            f"images with any of the {self.n_concepts} most frequent concepts, {self.query_per_concept} a concept drawn"
            " as queries, none twice; all others are both training set and database."
        )

    def split(self, data, seed: int) -> Split:
        """Draw a split, concepts in descending frequency; the queries are those of nus-1 with the same seed."""
        labels = self.labels(data)
        free = labels.any(axis=1)
        query = draw_per_concept(labels, self.query_per_concept, free, np.random.default_rng(seed))
        others = np.flatnonzero(free)
        return Split(train=others, query=query, database=others)
