"""nus-1: few training images a concept, a large database (Tables 1 and 4 of the paper)."""

from __future__ import annotations

import numpy as np

from hbmp.protocols._shared.base import Measure, Split, ndcg_measures
from hbmp.protocols._shared.nus import FrequentConcepts as _FrequentConcepts
from hbmp.protocols._shared.nus import draw_per_concept


class Nus1(_FrequentConcepts):
    """500 images a concept to train, 100 a concept as queries, everything but the queries as database."""

    measures = (Measure("map", 5000), Measure("map"), *ndcg_measures())

    def __init__(self, *, train_per_concept=500, query_per_concept=100, n_concepts=21):
        self.train_per_concept = train_per_concept
        self.query_per_concept = query_per_concept
        self.n_concepts = n_concepts

    @property
    def drawing(self) -> str:
        """How the split is drawn."""
        return (
            f"images with any of the {self.n_concepts} most frequent concepts, {self.query_per_concept} a concept drawn"
            f" as queries and {self.train_per_concept} a concept to train, none twice; the database is everything but "
            "the queries, training images included."
        )

    def split(self, data, seed: int) -> Split:
        """Draw a split, concepts in descending frequency."""
        labels, rng = self.labels(data), np.random.default_rng(seed)
        used = labels.any(axis=1)
        free = used.copy()
        query = draw_per_concept(labels, self.query_per_concept, free, rng)
        train = draw_per_concept(labels, self.train_per_concept, free, rng)
        used[query] = False
        return Split(train=train, query=query, database=np.flatnonzero(used))
