"""cifar-1: few training images a class, a large database (Table 1 of the paper)."""

from __future__ import annotations

from hbmp.protocols._shared.base import Measure, Protocol, Split, all_but, draw_per_class, need_classes


class Cifar1(Protocol):
    """500 images a class to train, 100 a class as queries, everything but the queries as database."""

    data = "cifar10"
    neighbours = "Neighbours have the same class."
    measures = (Measure("map"),)

    def __init__(self, *, train_per_class=500, query_per_class=100):
        self.train_per_class = train_per_class
        self.query_per_class = query_per_class

    @property
    def drawing(self) -> str:
        """How the split is drawn."""
        return (
            f"all images pooled, {self.query_per_class} a class drawn as queries and {self.train_per_class} a class to "
            "train; the database is everything but the queries, training images included."
        )

    def split(self, data, seed: int) -> Split:
        """Draw a split; the same for any features of the same images."""
        classes = need_classes(data)
        query, train = draw_per_class(classes, (self.query_per_class, self.train_per_class), seed)
        return Split(train=train, query=query, database=all_but(len(classes), query))
