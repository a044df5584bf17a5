"""imagenet100: a hundred classes, given lists (Table 3 of the paper)."""

from __future__ import annotations

import numpy as np

from hbmp.datasets import Data
from hbmp.protocols._shared.base import Protocol
from hbmp.protocols._shared.data import need_classes
from hbmp.protocols._shared.measure import Measure
from hbmp.protocols._shared.split import Split, all_but, draw_per_class, given_split


class ImageNet100(Protocol):
    """The lists that come with the data; without lists, 50 items per class query and 100 per class train.

    Parameters
    ----------
    train_per_class : int, default=100
        Training images per class.
    query_per_class : int, default=50
        Queries per class, if the data have no lists.
    normalize : bool, default=False
        Whether to subtract the training mean from the features and scale them to unit length, as in the paper's
        released code.

    Examples
    --------
    >>> from hbmp import datasets, protocols
    >>> digits = datasets.load("digits")
    >>> len(protocols.get("imagenet100").split(digits, seed=0).query)
    500
    """

    data = "imagenet100"
    neighbours = "Neighbours have the same class."
    measures = (Measure("map", 1000), Measure("map"))

    def __init__(self, *, train_per_class: int = 100, query_per_class: int = 50, normalize: bool = False):
        self.train_per_class = train_per_class
        self.query_per_class = query_per_class
        self.normalize = normalize

    @property
    def drawing(self) -> str:
        """How the split is drawn, for the caption."""
        return (
            f"queries, training images and database as listed, {self.train_per_class} training images per class drawn "
            f"from the list; without lists, {self.query_per_class} per class drawn as queries. The "
            "database includes the training images."
        )

    def split(self, data: Data, seed: int) -> Split:
        """Return the given lists, or draw a split if there are none.

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
        classes = need_classes(data)
        if data.split is None:
            query, train = draw_per_class(classes, (self.query_per_class, self.train_per_class), seed)
            return Split(train=train, query=query, database=all_but(len(classes), query))
        given = given_split(data)
        listed = np.flatnonzero(given == 1)
        (drawn,) = draw_per_class(classes[listed], (self.train_per_class,), seed)
        return Split(train=listed[drawn], query=np.flatnonzero(given == 0), database=np.flatnonzero(given >= 1))
