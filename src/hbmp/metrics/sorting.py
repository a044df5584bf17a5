"""Stable sorts in linear time by the bucket sort of FAISS, which runs without the interpreter lock."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGIT_BITS = 13


def bucket_sort(keys: NDArray[Any], n_keys: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Stable order of integer keys in [0, n_keys), and bounds: key k is at order[bounds[k]:bounds[k + 1]]."""
    import faiss

    bounds, order = faiss.bucket_sort(keys, n_keys)
    return order, bounds


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
