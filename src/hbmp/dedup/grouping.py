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


def kept_of(
    groups: list[NDArray[np.int64]], pairs: NDArray[np.int64], n: int, sizes: NDArray[np.float64] | None, n_old: int
) -> NDArray[np.int64]:
    """The items to keep: every removed one is a near-duplicate of one that is kept, and no two kept ones are.

    Old items are kept in any case. Then the items of a group are taken in their order, or the largest first, and each
    is kept unless it is a near-duplicate of one that is kept already. So a chain a - b - c loses only b, if a is first.

    Parameters
    ----------
    groups : list of ndarray
        Groups of the pairs.
    pairs : ndarray of shape (n_pairs, 2)
        Near-duplicates.
    n : int
        Number of items.
    sizes : ndarray of shape (n,) or None
        Sizes, for keeping the largest.
    n_old : int
        Number of old items, which come first.

    Returns
    -------
    ndarray
        Rows, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.dedup.grouping import groups_of, kept_of
    >>> chain = np.array([[1, 0], [2, 1]])
    >>> kept_of(groups_of(chain, 3), chain, 3, None, 0)
    array([0, 2])
    """
    from scipy.sparse import coo_array

    links = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    near = (links + links.T).tocsr()
    dropped = np.zeros(n, bool)
    kept: list[int] = []
    for group in groups:
        rank = np.arange(len(group)) if sizes is None else np.argsort(-sizes[group], kind="stable")
        ordered = group[rank]
        for row in (*ordered[ordered < n_old].tolist(), *ordered[ordered >= n_old].tolist()):
            if row < n_old or not dropped[row]:
                kept.append(row)
                dropped[near.indices[near.indptr[row] : near.indptr[row + 1]]] = True
    return np.array(sorted(kept), np.int64)
