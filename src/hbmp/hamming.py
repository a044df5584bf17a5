"""Codes as bytes and as distances: pack, unpack, plain and weighted Hamming distance, statistics.

    q   queries    (n_queries, n_bits)   signs in {-1, +1}, or real-valued scores
    u   database   (n_items, n_bits)     signs in {-1, +1}
    α   weights    (n_bits,)             any finite numbers, negative ones included

    d(q, u) = (Σ_k α_k |q_k| - Σ_k α_k q_k u_k) / 2

For signs this is the weighted Hamming distance Σ_k α_k [q_k ≠ u_k], and with α = 1 the number of differing bits. A
score counts by its size: a bit of which the query is unsure costs little, whatever its value in the item.

Distances are exact until the end. α_k q_k is first rounded to a power-of-two grid so coarse that every sum fits in the
53 bits of a double (the error is 2⁻⁵¹ of Σ|α_k q_k|). The order of summation then does not matter, equal distances are
equal bit for bit, and the result of a row does not depend on other rows. One rounding to float32 follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp._core.code_checks import check_codes, check_queries, check_weights
from hbmp._core.exact_terms import exact_terms

__all__ = [
    "bytes_for",
    "check_codes",
    "check_queries",
    "check_weights",
    "distances",
    "distances_from_terms",
    "pack",
    "query_terms",
    "signs",
    "statistics",
    "unpack",
]

_BLOCK_VALUES = 1 << 22  # doubles held at a time while distances are computed: 32 MB


def signs(scores: ArrayLike) -> NDArray[np.int8]:
    """Return the code of real-valued scores.

    Parameters
    ----------
    scores : array-like of any shape
        Real-valued scores.

    Returns
    -------
    codes : ndarray of the same shape, int8
        The signs. The sign of 0 is +1.

    Examples
    --------
    >>> from hbmp import hamming
    >>> hamming.signs([[0.3, -2.0, 0.0]])
    array([[ 1, -1,  1]], dtype=int8)
    """
    return np.where(np.asarray(scores) >= 0, np.int8(1), np.int8(-1))


def pack(codes: ArrayLike) -> NDArray[np.uint8]:
    """Pack signs into bytes.

    Parameters
    ----------
    codes : array-like of shape (n, n_bits)
        Signs in {-1, +1}.

    Returns
    -------
    packed : ndarray of shape (n, ceil(n_bits / 8)), uint8
        Bit k is in byte k // 8 at value 2**(k % 8). Padding bits are zero.

    Examples
    --------
    >>> from hbmp import hamming
    >>> hamming.pack([[1, -1, 1, -1, -1, -1, -1, -1, 1]])
    array([[5, 1]], dtype=uint8)
    """
    return _pack_checked(check_codes(codes))


def unpack(packed: ArrayLike, n_bits: int) -> NDArray[np.int8]:
    """Unpack bytes into signs.

    Parameters
    ----------
    packed : array-like of shape (n, ceil(n_bits / 8)), uint8
        Packed codes.
    n_bits : int
        Length of the codes.

    Returns
    -------
    codes : ndarray of shape (n, n_bits), int8
        Signs in {-1, +1}.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp import hamming
    >>> hamming.unpack(np.array([[5]], dtype=np.uint8), 4)
    array([[ 1, -1,  1, -1]], dtype=int8)
    """
    packed = np.asarray(packed)
    n_bytes = bytes_for(n_bits)
    if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != n_bytes:
        raise ValueError(
            f"Codes of {n_bits} bits are packed in a uint8 array of shape (n, {n_bytes}), "
            f"found {packed.dtype} of shape {packed.shape}."
        )
    signs = np.unpackbits(packed, axis=1, count=int(n_bits), bitorder="little").view(np.int8)
    signs *= 2
    signs -= 1
    return signs


def distances(queries: ArrayLike, database: ArrayLike, bit_weights: ArrayLike | None = None) -> np.ndarray:
    """Distance of every query to every database code.

    Parameters
    ----------
    queries : array-like of shape (n_queries, n_bits)
        Signs as integers, or real-valued scores as floating-point numbers.
    database : array-like of shape (n_database, n_bits)
        Signs in {-1, +1}.
    bit_weights : array-like of shape (n_bits,), optional
        Weights of the bits; negative ones are allowed.

    Returns
    -------
    distances : ndarray of shape (n_queries, n_database)
        Plain Hamming distances between signs are int32, all others float32.

    Examples
    --------
    >>> from hbmp import hamming
    >>> hamming.distances([[1, 1, 1]], [[1, 1, 1], [1, -1, -1]])
    array([[0, 2]], dtype=int32)
    >>> hamming.distances([[1, 1, 1]], [[1, 1, 1], [1, -1, -1]], bit_weights=[3, 2, 0.5])
    array([[0. , 2.5]], dtype=float32)
    """
    database = check_codes(database, name="database codes")
    queries = check_queries(queries, database.shape[1])
    plain = bit_weights is None and queries.dtype == np.int8
    query_vectors, offsets = query_terms(queries, bit_weights)
    result = np.empty((len(queries), len(database)), np.int32 if plain else np.float32)
    items_at_once = max(1, min(len(database), _BLOCK_VALUES // (4 * database.shape[1])))
    queries_at_once = max(1, _BLOCK_VALUES // items_at_once)
    for first in range(0, len(database), items_at_once):
        items = slice(first, first + items_at_once)
        item_vectors = database[items].T.astype(np.float64)
        for start in range(0, len(queries), queries_at_once):
            rows = slice(start, start + queries_at_once)
            result[rows, items] = distances_from_terms(query_vectors[rows], offsets[rows], item_vectors)
    return result


def query_terms(queries: np.ndarray, bit_weights: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Query terms of the distance on the exact grid: α∘q and Σ_k α_k |q_k|.

    Parameters
    ----------
    queries : ndarray of shape (n, n_bits)
        Signs or scores.
    bit_weights : array-like of shape (n_bits,) or None
        Weights of the bits.

    Returns
    -------
    query_vectors : ndarray of shape (n, n_bits)
    offsets : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp import hamming
    >>> hamming.query_terms(np.array([[1, -1]]), [2.0, 3.0])
    (array([[ 2., -3.]]), array([5.]))
    """
    n_bits = queries.shape[1]
    weights = np.ones(n_bits) if bit_weights is None else check_weights(bit_weights, n_bits)
    return exact_terms(queries, weights)


def distances_from_terms(
    query_vectors: np.ndarray, offsets: np.ndarray, item_vectors: np.ndarray
) -> NDArray[np.float64]:
    """Exact distances from `query_terms` and item signs.

    Parameters
    ----------
    query_vectors : ndarray of shape (n_queries, n_bits)
        From `query_terms`.
    offsets : ndarray of shape (n_queries,)
        From `query_terms`.
    item_vectors : ndarray of shape (n_bits, n_items), float64
        Signs of the items, one item per column.

    Returns
    -------
    distances : ndarray of shape (n_queries, n_items)

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp import hamming
    >>> terms = hamming.query_terms(np.array([[1, -1]]), [2.0, 3.0])
    >>> hamming.distances_from_terms(*terms, np.array([[1.0, -1.0], [-1.0, -1.0]]))
    array([[0., 2.]])
    """
    products: NDArray[np.float64] = query_vectors @ item_vectors
    np.subtract(offsets[:, None], products, out=products)
    products *= 0.5
    return products


def statistics(codes: ArrayLike, bit_weights: ArrayLike | None = None) -> dict[str, Any]:
    """Statistics of a set of codes.

    Parameters
    ----------
    codes : array-like of shape (n, n_bits)
        Signs in {-1, +1}.
    bit_weights : array-like of shape (n_bits,), optional
        Weights of the bits.

    Returns
    -------
    statistics : dict
        - `n_items`, `n_bits`: shape of the codes.
        - `balance` (n_bits,): mean sign of each bit; 0 for half plus and half minus, ±1 for a constant bit.
        - `mean_abs_correlation`: over pairs of non-constant bits; 0 if there is no such pair.
        - `distinct_codes`, `largest_bucket`: number of different codes, and count of the most frequent one.
        - `collisions`: fraction of items whose code occurs more than once.
        - `mean_distance`: (weighted) distance averaged over all pairs of different items.
        - `effective_bits`: (Σ|α|)² / Σα², the number of equal weights that are as concentrated as α.

    Examples
    --------
    >>> from hbmp import hamming
    >>> found = hamming.statistics([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    >>> found["balance"], found["distinct_codes"], found["effective_bits"]
    (array([0., 0.]), 4, 2.0)
    """
    codes = check_codes(codes)
    n_items, n_bits = codes.shape
    if n_items == 0:
        raise ValueError("Statistics need at least one code, found none.")
    weights = np.ones(n_bits) if bit_weights is None else check_weights(bit_weights, n_bits)
    balance = codes.mean(axis=0, dtype=np.float64)
    packed = _pack_checked(codes)
    _, bucket_sizes = np.unique(packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_counts=True)
    pairs_per_item = max(1, n_items - 1)
    sum_of_squares = float(np.square(weights).sum())
    return {
        "n_items": n_items,
        "n_bits": n_bits,
        "balance": balance,
        "mean_abs_correlation": _mean_abs_correlation(codes, balance),
        "distinct_codes": len(bucket_sizes),
        "largest_bucket": int(bucket_sizes.max()),
        "collisions": float(bucket_sizes[bucket_sizes > 1].sum() / n_items),
        # Two random items differ in a bit of mean sign m with probability (1 - m²)/2.
        "mean_distance": float(weights @ (1 - balance**2) / 2 * n_items / pairs_per_item),
        "effective_bits": float(np.abs(weights).sum() ** 2 / sum_of_squares) if sum_of_squares else 0.0,
    }


def _mean_abs_correlation(codes: NDArray[np.int8], balance: NDArray[np.float64]) -> float:
    n_items, n_bits = codes.shape
    gram = np.zeros((n_bits, n_bits))
    rows_at_once = max(1, _BLOCK_VALUES // n_bits)
    for start in range(0, n_items, rows_at_once):
        block = codes[start : start + rows_at_once].astype(np.float64)
        gram += block.T @ block
    covariance = gram / n_items - np.outer(balance, balance)
    changing = np.flatnonzero(np.abs(balance) < 1)
    if len(changing) < 2:
        return 0.0
    deviation = np.sqrt(1 - balance[changing] ** 2)
    correlation = np.abs(covariance[np.ix_(changing, changing)] / np.outer(deviation, deviation))
    return float((correlation.sum() - np.trace(correlation)) / (len(changing) * (len(changing) - 1)))


def bytes_for(n_bits: int) -> int:
    """Number of bytes of a packed code.

    Parameters
    ----------
    n_bits : int
        Length of the code.

    Returns
    -------
    n_bytes : int

    Examples
    --------
    >>> from hbmp import hamming
    >>> hamming.bytes_for(12)
    2
    """
    if int(n_bits) != n_bits or n_bits < 1:
        raise ValueError(f"A code has a whole number of bits, at least 1, found n_bits={n_bits!r}.")
    return (int(n_bits) + 7) // 8


def _pack_checked(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    return np.packbits(codes > 0, axis=1, bitorder="little")
