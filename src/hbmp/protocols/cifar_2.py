"""cifar-2: all images but the queries train and answer (Table 2 of the paper)."""

from __future__ import annotations

from hbmp.protocols._shared.base import Measure, Protocol, Split, all_but, draw_per_class, need_classes


class Cifar2(Protocol):
    """1,000 images a class as queries, all others to train and as database."""

    data = "cifar10"
    neighbours = "Neighbours have the same class."
    measures = (Measure("map"),)

    def __init__(self, *, query_per_class=1000):
        self.query_per_class = query_per_class

    @property
    def drawing(self) -> str:
        """How the split is drawn."""
        return (
            f"all images pooled, {self.query_per_class:,} a class drawn as queries; all others are both training set "
            "and database."
        )

    def split(self, data, seed: int) -> Split:
        """Draw a split; the same for any features of the same images."""
        classes = need_classes(data)
        (query,) = draw_per_class(classes, (self.query_per_class,), seed)
        others = all_but(len(classes), query)
        return Split(train=others, query=query, database=others)
