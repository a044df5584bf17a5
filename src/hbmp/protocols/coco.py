"""coco: 80 labels, the split that comes with the data; where NUS-WIDE cannot be had, the multi-label benchmark."""

from __future__ import annotations

import numpy as np

from hbmp.protocols._shared.base import Measure, Protocol, Split, given_split, ndcg_measures, need_label_sets


class COCO(Protocol):
    """Given queries against the given training set and further database."""

    data = "coco"
    neighbours = "Neighbours share at least one label; the grade c is the number of labels shared."
    drawing = "queries, training set and further database as given with the data; the database includes training items."
    measures = (Measure("map", 5000), Measure("map"), *ndcg_measures())

    def split(self, data, seed: int) -> Split:
        """The given split, whatever the seed."""
        need_label_sets(data)
        given = given_split(data)
        train, query = np.flatnonzero(given == 1), np.flatnonzero(given == 0)
        return Split(train=train, query=query, database=np.flatnonzero(given >= 1))
