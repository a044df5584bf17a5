"""A loss on pairs of codes, one bit at a time: a binary quadratic problem min zᵀAz over z in {-1, +1}ⁿ.

Whatever the loss of a pair is, with the bits before fixed it takes two values, one where the new bits of the pair agree
and one where they differ; so up to a constant it is a multiple of their product z_i z_j (Lin et al., ICCV 2013, Eq. 7).

    y_ij   similar        (n, n) bool    the pair shares a label
    d_ij   distances      (n, n) int16   Hamming distance of the bits before
    r      n_done                        how many bits come before
    m      n_bits                        how many there will be
    a_ij   coefficients   (n, n)         (loss if the bits agree - loss if they differ) / 2, 0 on the diagonal
    z      signs          (n,) int8      the new bit
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LOSSES = ("ksh", "bre", "hinge")
_ROWS = 1024


def sampled_rows(n_rows: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted positions of all rows, or of `most` drawn from them."""
    return np.arange(n_rows) if n_rows <= most else np.sort(rng.choice(n_rows, most, replace=False))


def similar_pairs(labels: np.ndarray) -> np.ndarray:
    """Whether two rows of 0/1 labels share one, (n, n) bool; every sample is similar to itself."""
    similar = labels @ labels.T > 0
    np.fill_diagonal(similar, True)
    return similar


def pair_loss(loss: str, distances: np.ndarray, similar: np.ndarray, n_done: int, n_bits: int) -> np.ndarray:
    """The loss of each pair whose first `n_done` bits differ in `distances` positions.

    "ksh"    (m y - inner product)², y = ±1: a similar pair should agree in all bits, another in none
    "bre"    (distance - 0 or m)²: the same aim, measured on distances
    "hinge"  distance² for a similar pair, max(0, m/2 - distance)² for another
    """
    if loss == "ksh":
        return (np.where(similar, n_bits, -n_bits) - (n_done - 2.0 * distances)) ** 2
    if loss == "bre":
        return (np.where(similar, 0, n_bits) - distances) ** 2.0
    if loss == "hinge":
        return np.where(similar, distances, np.maximum(n_bits / 2 - distances, 0)) ** 2.0
    raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}; found {loss!r}.")


def coefficients(loss: str, distances: np.ndarray, similar: np.ndarray, n_done: int, n_bits: int) -> np.ndarray:
    """A of the next bit, float32, symmetric: looked up in a small table, in blocks of rows."""
    possible, kinds = np.arange(n_done + 1), np.array([[False], [True]])
    agree = pair_loss(loss, possible, kinds, n_done + 1, n_bits)
    differ = pair_loss(loss, possible + 1, kinds, n_done + 1, n_bits)
    table = ((agree - differ) / 2).astype(np.float32).ravel()  # dissimilar pairs first, by distance
    values = np.empty(distances.shape, dtype=np.float32)
    for start in range(0, len(values), _ROWS):
        rows = slice(start, start + _ROWS)
        np.take(table, distances[rows] + similar[rows] * np.int16(n_done + 1), out=values[rows])
    np.fill_diagonal(values, 0)
    return values


def total_loss(loss: str, codes: np.ndarray, similar: np.ndarray, n_bits: int) -> float:
    """Mean loss of all pairs of different samples for codes (n, r) of the first r bits."""
    signs, total = codes.astype(np.float32), 0.0
    for start in range(0, len(codes), _ROWS):
        rows = slice(start, start + _ROWS)
        distances = (codes.shape[1] - signs[rows] @ signs.T) / 2
        values = pair_loss(loss, distances, similar[rows], codes.shape[1], n_bits)
        own = np.arange(len(values))
        values[own, start + own] = 0
        total += float(values.sum(dtype=np.float64))
    return total / (len(codes) * (len(codes) - 1))


def add_bit(distances: np.ndarray, signs: np.ndarray) -> None:
    """Count one more bit into the distances, in place."""
    distances += signs[:, None] != signs


def infer_bits(
    similar: np.ndarray,
    n_bits: int,
    loss: str,
    solve: Callable[[np.ndarray, np.random.Generator], np.ndarray],
    rng: np.random.Generator,
) -> np.ndarray:
    """Codes (n, n_bits) int8, bit after bit; each is the solution `solve(A, rng)` of its own problem."""
    distances = np.zeros(similar.shape, dtype=np.int16)
    codes = np.empty((len(similar), n_bits), dtype=np.int8)
    for bit in range(n_bits):
        codes[:, bit] = solve(coefficients(loss, distances, similar, bit, n_bits), rng)
        add_bit(distances, codes[:, bit])
    return codes


def bqp_value(matrix: Any, signs: np.ndarray) -> float:
    """zᵀAz in double precision; A dense or sparse."""
    return float(signs.astype(np.float64) @ (matrix @ signs.astype(matrix.dtype)).astype(np.float64))
