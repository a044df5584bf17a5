"""The query's part of a weighted Hamming distance, on a grid on which sums are exact; `hbmp.hamming` explains it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LARGEST = float(np.finfo(np.float32).max)


def exact_terms(queries: np.ndarray, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """α∘q (n, n_bits) and Σ_k α_k |q_k| (n,) of checked queries and weights."""
    with np.errstate(over="ignore"):
        products = queries.astype(np.float64) * weights
        sizes = np.abs(products).sum(axis=1, keepdims=True)
    if sizes.max(initial=0) > LARGEST:
        raise ValueError(
            "The scores times the bit_weights add up to more than a float32 distance can hold; scale them."
        )
    # Sums stay below 2^52 grid steps, and so are exact, when the step is at least sizes * 2^-51.
    _, exponents = np.frexp(sizes)
    steps = np.ldexp(1.0, np.maximum(exponents - 51, -1074))  # no double is finer
    products /= steps
    np.rint(products, out=products)
    products *= steps
    return products, np.copysign(products, weights).sum(axis=1)  # α_k |q_k| has the sign of α_k
