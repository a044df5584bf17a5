"""imagenet100: a hundred classes, given lists (Table 3 of the paper)."""

from __future__ import annotations

import numpy as np

from hbmp.protocols._shared.base import Measure, Protocol, Split, all_but, draw_per_class, given_split, need_classes


class ImageNet100(Protocol):
    """The lists that come with the data; without lists 50 items a class as queries and 100 a class to train."""

    data = "imagenet100"
    neighbours = "Neighbours have the same class."
    measures = (Measure("map", 1000), Measure("map"))

    def __init__(self, *, train_per_class=100, query_per_class=50):
        self.train_per_class = train_per_class
        self.query_per_class = query_per_class

    @property
    def drawing(self) -> str:
        """How the split is drawn."""
        return (
            f"queries, training images and database as listed, {self.train_per_class} training images a class drawn "
            f"from the list; where no lists come with the data, {self.query_per_class} a class drawn as queries. The "
            "database includes the training images."
        )

    def split(self, data, seed: int) -> Split:
        """The given lists, or a draw where there are none."""
        classes = need_classes(data)
        if data.split is None:
            query, train = draw_per_class(classes, (self.query_per_class, self.train_per_class), seed)
            return Split(train=train, query=query, database=all_but(len(classes), query))
        given = given_split(data)
        listed = np.flatnonzero(given == 1)
        (drawn,) = draw_per_class(classes[listed], (self.train_per_class,), seed)
        return Split(train=listed[drawn], query=np.flatnonzero(given == 0), database=np.flatnonzero(given >= 1))
