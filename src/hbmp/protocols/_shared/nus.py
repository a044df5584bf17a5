"""What nus-1 and nus-2 share: the 21 most frequent concepts, and drawing so many images of each.

Concepts are taken in descending frequency and images chosen already are skipped, so 100 of each are exactly 2,100.
"""

from __future__ import annotations

import numpy as np

from hbmp.protocols._shared.base import Protocol, need_label_sets


class FrequentConcepts(Protocol):
    """Label sets over the most frequent concepts; images that carry none of them are left out."""

    data = "nuswide"
    neighbours = "Neighbours share at least one label; the grade c is the number of labels shared."

    n_concepts = 21

    def labels(self, data):
        """Rows of 0/1 over the most frequent concepts, most frequent first, (n, n_concepts) uint8."""
        labels = need_label_sets(data)
        if labels.shape[1] < self.n_concepts:
            raise ValueError(
                f"{self.name} uses the {self.n_concepts} most frequent labels; {data.name} has {labels.shape[1]}."
            )
        frequency = labels.sum(axis=0, dtype=np.int64)
        return labels[:, np.argsort(-frequency, kind="stable")[: self.n_concepts]]


def draw_per_concept(labels: np.ndarray, count: int, free: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`count` rows of every label, none twice, most frequent label first; marks them as taken in `free` (n,) bool."""
    drawn = []
    for column in range(labels.shape[1]):
        candidates = np.flatnonzero(free & (labels[:, column] > 0))
        if len(candidates) < count:
            raise ValueError(
                f"The protocol draws {count} images of every label; label {column} has {len(candidates)} left. "
                "Use the whole data set, or set fewer images a label."
            )
        rows = rng.choice(candidates, count, replace=False)
        free[rows] = False
        drawn.append(rows)
    return np.sort(np.concatenate(drawn))
