"""voc2007: the official train and val images, small enough for minutes on a laptop."""

from __future__ import annotations

import numpy as np

from hbmp.datasets import Data
from hbmp.protocols._shared.base import Protocol
from hbmp.protocols._shared.data import need_label_sets
from hbmp.protocols._shared.measure import Measure, ndcg_measures
from hbmp.protocols._shared.split import Split, given_split


class VOC2007(Protocol):
    """Training on `train`. The images of `val` query the training images, or some of `val` query the rest of it.

    Parameters
    ----------
    database : {"train", "val"}, default="train"
        The database; "val" contains no training image.
    n_query : int, default=500
        With "val", how many images are drawn as queries.

    Examples
    --------
    >>> from hbmp import datasets, protocols
    >>> import numpy as np
    >>> labels = np.eye(3, dtype=np.uint8)[np.arange(60) % 3]
    >>> data = datasets.Data("voc2007", labels, split=np.arange(60, dtype=np.int8) % 2)
    >>> len(protocols.get("voc2007", database="val", n_query=10).split(data, seed=0).database)
    20
    """

    data = "voc2007"
    neighbours = "Neighbours share at least one label; the grade c is the number of shared labels."
    measures = (Measure("map"), Measure("map", 1000), *ndcg_measures())

    def __init__(self, *, database: str = "train", n_query: int = 500):
        self.database = database
        self.n_query = n_query

    @property
    def drawing(self) -> str:
        """How the split is drawn, for the caption."""
        if self.database == "train":
            return "the images of `val` query those of `train`, which are also the training set."
        return f"trained on `train`; {self.n_query} images drawn from `val` query the rest of `val`."

    def split(self, data: Data, seed: int) -> Split:
        """Return the given split; with database="val" the queries are drawn.

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
        if self.database not in ("train", "val"):
            raise ValueError(f"database must be 'train' or 'val', found {self.database!r}.")
        need_label_sets(data)
        given = given_split(data)
        train, val = np.flatnonzero(given == 1), np.flatnonzero(given == 0)
        if self.database == "train":
            return Split(train=train, query=val, database=train)
        if not 0 < self.n_query < len(val):
            raise ValueError(f"n_query must lie between 1 and {len(val) - 1}, found {self.n_query}.")
        order = np.random.default_rng(seed).permutation(val)
        return Split(train=train, query=np.sort(order[: self.n_query]), database=np.sort(order[self.n_query :]))
