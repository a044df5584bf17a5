"""coco: 80 labels and the split that comes with the data; the multi-label benchmark if NUS-WIDE is unavailable."""

from __future__ import annotations

import numpy as np

from hbmp.datasets import Data
from hbmp.protocols._shared.base import Protocol
from hbmp.protocols._shared.data import need_label_sets
from hbmp.protocols._shared.measure import Measure, ndcg_measures
from hbmp.protocols._shared.split import Split, given_split


class COCO(Protocol):
    """The given queries against the given training set and further database.

    Examples
    --------
    >>> from hbmp import datasets, protocols
    >>> import numpy as np
    >>> labels = np.eye(3, dtype=np.uint8)[np.arange(60) % 3]
    >>> data = datasets.Data("coco", labels, split=np.arange(60, dtype=np.int8) % 3)
    >>> len(protocols.get("coco").split(data, seed=0).database)
    40
    """

    data = "coco"
    neighbours = "Neighbours share at least one label; the grade c is the number of shared labels."
    drawing = "queries, training set and further database as given with the data; the database includes training items."
    measures = (Measure("map", 5000), Measure("map"), *ndcg_measures())

    def split(self, data: Data, seed: int) -> Split:
        """Return the given split, whatever the seed.

        Parameters
        ----------
        data : Data
            The data set.
        seed : int
            Not used.

        Returns
        -------
        Split
            Training, query and database rows.
        """
        need_label_sets(data)
        given = given_split(data)
        train, query = np.flatnonzero(given == 1), np.flatnonzero(given == 0)
        return Split(train=train, query=query, database=np.flatnonzero(given >= 1))
