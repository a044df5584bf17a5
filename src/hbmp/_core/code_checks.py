"""Checks of codes, queries and bit weights, as `hbmp.hamming` offers them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_codes(codes: ArrayLike, n_bits: int | None = None, name: str = "codes") -> NDArray[np.int8]:
    """Check codes and convert them to int8.

    Parameters
    ----------
    codes : array-like of shape (n, n_bits)
        Integers or floating-point numbers, all -1 or +1.
    n_bits : int, optional
        Required length.
    name : str, default="codes"
        Name in error messages.

    Returns
    -------
    codes : ndarray of shape (n, n_bits), int8

    Examples
    --------
    >>> from hbmp import hamming
    >>> hamming.check_codes([[1.0, -1.0]])
    array([[ 1, -1]], dtype=int8)
    """
    codes = _check_table(codes, n_bits, name)
    # Three passes without a temporary array: nothing outside [-1, 1], no fraction, no zero.
    inside = codes.size == 0 or (codes.min() >= -1 and codes.max() <= 1)
    signs = codes.astype(np.int8, copy=False) if inside else codes
    whole = inside and np.count_nonzero(signs) == codes.size
    if whole and codes.dtype.kind == "f":
        whole = np.array_equal(signs, codes)
    if not whole:
        wrong = codes[np.abs(codes) != 1].ravel()[0]
        hint = " Turn 0/1 bits into signs with 2 * bits - 1." if wrong == 0 else ""
        raise ValueError(f"The {name} must hold only -1 and +1, found {wrong}.{hint}")
    return signs


def check_queries(queries: ArrayLike, n_bits: int | None = None, name: str = "queries") -> np.ndarray:
    """Check queries: integers become int8 signs, floating-point scores must be finite.

    Parameters
    ----------
    queries : array-like of shape (n, n_bits)
        Signs or scores.
    n_bits : int, optional
        Required length.
    name : str, default="queries"
        Name in error messages.

    Returns
    -------
    queries : ndarray of shape (n, n_bits)
        int8 signs, or scores in their own type.

    Examples
    --------
    >>> from hbmp import hamming
    >>> hamming.check_queries([[0.5, -1.5]])
    array([[ 0.5, -1.5]])
    """
    queries = np.asarray(queries)
    if queries.dtype.kind != "f":
        return check_codes(queries, n_bits, name)
    queries = _check_table(queries, n_bits, name)
    if not np.isfinite(queries).all():
        raise ValueError(f"The {name} must be signs or finite scores, found NaN or infinity.")
    return queries


def check_weights(bit_weights: ArrayLike, n_bits: int) -> NDArray[np.float64]:
    """Check the weights of the bits and convert them to float64.

    Parameters
    ----------
    bit_weights : array-like of shape (n_bits,)
        Finite numbers of any sign whose absolute sum fits in float32.
    n_bits : int
        Required length.

    Returns
    -------
    weights : ndarray of shape (n_bits,), float64

    Examples
    --------
    >>> from hbmp import hamming
    >>> hamming.check_weights([1, 0.5], 2)
    array([1. , 0.5])
    """
    weights = np.asarray(bit_weights, dtype=np.float64)
    if weights.shape != (n_bits,):
        raise ValueError(f"Codes of {n_bits} bits need bit_weights of shape ({n_bits},), found {weights.shape}.")
    if not np.isfinite(weights).all():
        raise ValueError(f"The bit_weights must be finite, found {weights[~np.isfinite(weights)][0]}.")
    if np.abs(weights).sum() > np.finfo(np.float32).max:
        raise ValueError("The bit_weights add up to more than a float32 distance can hold; divide them by a constant.")
    return weights


def _check_table(values: ArrayLike, n_bits: int | None, name: str) -> np.ndarray:
    table = np.asarray(values)
    if table.dtype.kind not in "iuf":
        raise ValueError(f"The {name} must be an array of numbers, found dtype {table.dtype}.")
    if table.ndim != 2:
        hint = " Pass one code as codes[None, :]." if table.ndim == 1 else ""
        raise ValueError(f"The {name} must have shape (n, n_bits), found shape {table.shape}.{hint}")
    if n_bits is not None and table.shape[1] != n_bits:
        raise ValueError(f"The {name} must have {n_bits} bits, found {table.shape[1]}.")
    if table.shape[1] == 0:
        raise ValueError(f"The {name} must have at least one bit, found shape {table.shape}.")
    return table
