"""Ids of codes, and names of tables, collections and columns."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_ids(ids: ArrayLike, n: int) -> NDArray[np.int64]:
    """Check the ids of codes.

    Parameters
    ----------
    ids : array-like of int of shape (n,)
        Whole numbers, distinct and not negative, as -1 marks a missing result.
    n : int
        Number of codes.

    Returns
    -------
    ndarray of shape (n,), int64

    Examples
    --------
    >>> from hbmp.stores import check_ids
    >>> check_ids([7, 3], 2).dtype
    dtype('int64')
    """
    ids = np.asarray(ids)
    if ids.shape != (n,):
        raise ValueError(f"{n} codes need ids of shape ({n},), found {ids.shape}.")
    if n and ids.dtype.kind not in "iu":
        raise ValueError(f"The ids must be whole numbers, found dtype {ids.dtype}.")
    if n and (ids.min() < 0 or ids.max() > np.iinfo(np.int64).max):
        raise ValueError(f"The ids must lie between 0 and 2**63 - 1, found {ids.min()} to {ids.max()}.")
    ids = ids.astype(np.int64)
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < n:
        twice = values[counts > 1][0]
        raise ValueError(f"Ids must be distinct, found {twice} more than once.")
    return ids


def check_name(name: str, what: str) -> str:
    """Check the name of a table or collection.

    Parameters
    ----------
    name : str
        A letter or underscore, then letters, digits and underscores; 63 characters at most.
    what : str
        The word for it in the error message.

    Returns
    -------
    str
        The name.

    Examples
    --------
    >>> from hbmp.stores import check_name
    >>> check_name("hbmp_codes", "table")
    'hbmp_codes'
    """
    if not (isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name)):
        raise ValueError(f"The name of a {what} has letters, digits and underscores, 63 at most, found {name!r}.")
    return name
