"""voc2007: the official train and val images, small enough for minutes on a laptop."""

from __future__ import annotations

import numpy as np

from hbmp.protocols._shared.base import Measure, Protocol, Split, given_split, ndcg_measures, need_label_sets


class VOC2007(Protocol):
    """Trains on `train`; the images of `val` query the training images, or part of `val` queries the rest of it.

    database : "train", or "val" for a database of which nothing was trained on
    n_query : with "val", how many images are drawn as queries
    """

    data = "voc2007"
    neighbours = "Neighbours share at least one label; the grade c is the number of labels shared."
    measures = (Measure("map"), Measure("map", 1000), *ndcg_measures())

    def __init__(self, *, database="train", n_query=500):
        self.database = database
        self.n_query = n_query

    @property
    def drawing(self) -> str:
        """How the split is drawn."""
        if self.database == "train":
            return "the images of `val` query those of `train`, which are also the training set."
        return f"trained on `train`; {self.n_query} images drawn from `val` query the rest of `val`."

    def split(self, data, seed: int) -> Split:
        """The given split; with database="val" the queries are drawn."""
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
