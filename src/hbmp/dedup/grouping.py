"""Groups of near-duplicates from pairs, and the item of each group that is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def groups_of(pairs: NDArray[np.int64], n: int) -> list[NDArray[np.int64]]:
    """Connected items as groups of at least two, each ascending, in the order of their first items.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Rows that are near-duplicates.
    n : int
        Number of items.

    Returns
    -------
    list of ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.dedup.grouping import groups_of
    >>> groups_of(np.array([[3, 1], [4, 3], [5, 0]]), 6)
    [array([0, 5]), array([1, 3, 4])]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    labels = connected_components(links, directed=False)[1]
    used = np.unique(pairs)
    order = used[np.argsort(labels[used], kind="stable")]
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    return sorted(np.split(order, starts[1:]), key=lambda group: int(group[0])) if len(order) else []


def kept_of(group: NDArray[np.int64], sizes: NDArray[np.float64] | None, n_old: int) -> int:
    """The item of a group that is kept: an old one if there is any, else the largest, of these the first."""
    old = group[group < n_old]
    candidates = old if len(old) else group
    return int(candidates[0] if sizes is None else candidates[np.argmax(sizes[candidates])])
