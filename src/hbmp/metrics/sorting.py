"""Stable sorts in linear time: the bucket sort of FAISS, which releases the interpreter lock, or NumPy's radix sort.

NumPy sorts where FAISS is not installed, so that metrics run on machines that only train.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGIT_BITS = 13


def bucket_sort(keys: NDArray[Any], n_keys: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Stable order of integer keys in [0, n_keys), and bounds: key k is at order[bounds[k]:bounds[k + 1]]."""
    try:
        import faiss
    except ModuleNotFoundError:
        return _radix_sort(keys, n_keys)
    bounds, order = faiss.bucket_sort(keys, n_keys)
    return order, bounds


def _radix_sort(keys: NDArray[Any], n_keys: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """`bucket_sort` by NumPy, whose stable sort of 16-bit keys is a radix sort."""
    order = np.argsort(keys.astype(np.min_scalar_type(n_keys)), kind="stable")
    return order, np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=n_keys))])


def digit_sort(keys: NDArray[Any], n_digits: int) -> NDArray[Any]:
    """Stable order of integer keys (n,) in [0, 2^(13 · n_digits) + 1], thirteen binary digits at a time, lowest first.

    The highest digit may be 2^13 itself.
    """
    if len(keys) < 2**DIGIT_BITS:
        return np.argsort(keys, kind="stable")
    order, _ = bucket_sort(keys & (2**DIGIT_BITS - 1), 2**DIGIT_BITS)
    for number in range(1, n_digits):
        digits = (keys >> (number * DIGIT_BITS)).take(order)
        if number < n_digits - 1:
            digits &= 2**DIGIT_BITS - 1
        step, _ = bucket_sort(digits, 2**DIGIT_BITS + 1)
        order = order.take(step)
    return order
