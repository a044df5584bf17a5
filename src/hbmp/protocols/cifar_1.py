"""cifar-1: few training images per class, a large database (Table 1 of the paper)."""

from __future__ import annotations

from hbmp.datasets import Data
from hbmp.protocols._shared.base import Protocol
from hbmp.protocols._shared.data import need_classes
from hbmp.protocols._shared.measure import Measure
from hbmp.protocols._shared.split import Split, all_but, draw_per_class


class Cifar1(Protocol):
    """500 images per class train, 100 per class query, and all images except the queries are the database.

    Parameters
    ----------
    train_per_class : int, default=500
        Training images per class.
    query_per_class : int, default=100
        Queries per class.
    normalize : bool, default=False
        Whether to subtract the training mean from the features and scale them to unit length, as in the paper's
        released code.

    Examples
    --------
    >>> from hbmp import datasets, protocols
    >>> digits = datasets.load("digits")
    >>> protocol = protocols.get("cifar-1", train_per_class=10, query_per_class=4)
    >>> split = protocol.split(digits, seed=0)
    >>> len(split.train), len(split.query), len(split.database)
    (100, 40, 1757)
    """

    data = "cifar10"
    neighbours = "Neighbours have the same class."
    measures = (Measure("map"),)

    def __init__(self, *, train_per_class: int = 500, query_per_class: int = 100, normalize: bool = False):
        self.train_per_class = train_per_class
        self.query_per_class = query_per_class
        self.normalize = normalize

    @property
    def drawing(self) -> str:
        """How the split is drawn, for the caption."""
        return (
            f"all images pooled, {self.query_per_class} per class drawn as queries and {self.train_per_class} per "
            "class for training; the database is all except the queries and includes the training images."
        )

    def split(self, data: Data, seed: int) -> Split:
        """Draw a split; it is the same for any features of the same images.

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
        query, train = draw_per_class(classes, (self.query_per_class, self.train_per_class), seed)
        return Split(train=train, query=query, database=all_but(len(classes), query))
