"""Shared by nus-1 and nus-2: the 21 most frequent concepts, and the draw of images per concept.

Concepts are visited in descending frequency, and images drawn already are skipped. 100 per concept are therefore
exactly 2,100 images.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.datasets import Data
from hbmp.protocols._shared.base import Protocol
from hbmp.protocols._shared.data import need_label_sets


class FrequentConcepts(Protocol):
    """Label sets over the most frequent concepts; images without any of them are left out."""

    data = "nuswide"
    neighbours = "Neighbours share at least one label; the grade c is the number of shared labels."

    n_concepts = 21

    def labels(self, data: Data) -> NDArray[Any]:
        """Labels of the most frequent concepts, most frequent first.

        Parameters
        ----------
        data : Data
            The data set.

        Returns
        -------
        ndarray of uint8, shape (n, n_concepts)
            0/1 labels.
        """
        labels = need_label_sets(data)
        if labels.shape[1] < self.n_concepts:
            raise ValueError(
                f"{self.name} uses the {self.n_concepts} most frequent labels; {data.name} has {labels.shape[1]}."
            )
        frequency = labels.sum(axis=0, dtype=np.int64)
        columns = np.argsort(-frequency, kind="stable")[: self.n_concepts]
        return labels[:, columns]


def draw_per_concept(labels: NDArray[Any], count: int, free: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """`count` rows of every label, none twice, most frequent label first; marks them as taken in `free` (n,) bool."""
    drawn = []
    for column in range(labels.shape[1]):
        available = np.flatnonzero(free & (labels[:, column] > 0))
        if len(available) < count:
            raise ValueError(
                f"The protocol draws {count} images per label, and label {column} has {len(available)} left. "
                "Use the whole data set, or set fewer images per label."
            )
        rows = rng.choice(available, count, replace=False)
        free[rows] = False
        drawn.append(rows)
    return np.sort(np.concatenate(drawn))
