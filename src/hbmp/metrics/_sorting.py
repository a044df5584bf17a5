"""Stable sorts in linear time, on the bucket sort of FAISS, which runs free of the interpreter lock."""

from __future__ import annotations

import numpy as np

_DIGIT_BITS = 12


def bucket_sort(keys: np.ndarray, n_keys: int) -> tuple[np.ndarray, np.ndarray]:
    """Stable order of whole keys in [0, n_keys), and bounds: key k stands at order[bounds[k]:bounds[k + 1]]."""
    import faiss

    bounds, order = faiss.bucket_sort(keys, n_keys)
    return order, bounds


def sort_distinct(keys: np.ndarray, n_bits: int) -> np.ndarray:
    """Distinct float64 keys (n,) of absolute value below 2^n_bits, in ascending order.

    Two bucket sorts, by the lower and then by the upper half of the first 24 binary digits, leave almost
    everything in place; timsort, linear on nearly sorted input, settles the rest.
    """
    if len(keys) <= 2**_DIGIT_BITS:
        return np.sort(keys)
    scale = 2.0 ** (2 * _DIGIT_BITS - 1 - n_bits)
    digits = (keys * scale + 2.0 ** (2 * _DIGIT_BITS - 1)).astype(np.int64)
    by_lower, _ = bucket_sort(digits & (2**_DIGIT_BITS - 1), 2**_DIGIT_BITS)
    by_upper, _ = bucket_sort(digits.take(by_lower) >> _DIGIT_BITS, 2**_DIGIT_BITS)
    nearly_sorted = keys.take(by_lower.take(by_upper))
    nearly_sorted.sort(kind="stable")
    return nearly_sorted
