"""cifar-2: all images except the queries are training set and database (Table 2 of the paper)."""

from __future__ import annotations

from hbmp.datasets import Data
from hbmp.protocols._shared.base import Protocol
from hbmp.protocols._shared.data import need_classes
from hbmp.protocols._shared.measure import Measure
from hbmp.protocols._shared.split import Split, all_but, draw_per_class


class Cifar2(Protocol):
    """1,000 images per class query; all others are both training set and database.

    Parameters
    ----------
    query_per_class : int, default=1000
        Queries per class.
    normalize : bool, default=False
        Whether to subtract the training mean from the features and scale them to unit length, as in the paper's
        released code.

    Examples
    --------
    >>> from hbmp import datasets, protocols
    >>> digits = datasets.load("digits")
    >>> len(protocols.get("cifar-2", query_per_class=4).split(digits, seed=0).train)
    1757
    """

    data = "cifar10"
    neighbours = "Neighbours have the same class."
    measures = (Measure("map"),)

    def __init__(self, *, query_per_class: int = 1000, normalize: bool = False):
        self.query_per_class = query_per_class
        self.normalize = normalize

    @property
    def drawing(self) -> str:
        """How the split is drawn, for the caption."""
        return (
            f"all images pooled, {self.query_per_class:,} per class drawn as queries; all others are both training set "
            "and database."
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
        (query,) = draw_per_class(classes, (self.query_per_class,), seed)
        others = all_but(len(classes), query)
        return Split(train=others, query=query, database=others)
