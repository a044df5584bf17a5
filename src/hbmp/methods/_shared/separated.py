"""Centres with a distance that no two of them fall below, found by local search; and the distance to aim for.

h_i    centres       (c, b)   entries ±1
p_j    products      (c,)     h_i · h_j, between b and -b
d      distance               least Hamming distance: p_j ≤ b − 2d for j ≠ i
f      cost                   of the products of one centre with the others
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from hbmp.methods._shared.centres import nearest

Cost = Callable[[np.ndarray, int], np.ndarray]
"""f(products (k, c), i): the cost of k candidates for centre i, (k,)."""

_SWEEPS = 30
_TRIES = 4


def gilbert_varshamov(n_codes: int, n_bits: int) -> int:
    """The largest d for which the bound promises `n_codes` words of `n_bits` bits, any two at least d apart.

    The balls of radius d − 1 around fewer than 2ᵇ / V(d − 1) words leave a word uncovered, so that one more fits.
    """
    volume, distance = 1, 1  # V(0), and any two different words are 1 apart
    while distance < n_bits:
        volume += comb(n_bits, distance)
        if n_codes * volume > 2**n_bits:
            break
        distance += 1
    return distance


def separated_centres(start: np.ndarray, cost: Cost, distance: int, rng: np.random.Generator) -> np.ndarray:
    """Centres (c, b), int8: cost as low as flips of single bits reach, no two nearer than the distance.

    The bound promises that centres exist, not that flips find them. The distance is lowered by one after a few starts
    without success.
    """
    for least in range(distance, 0, -1):
        for attempt in range(_TRIES):
            noise = rng.random(start.shape) < 0.05 * attempt
            found = _descend(np.where(noise, -start, start), cost, least, rng)
            if nearest(found) >= least:
                return found.astype(np.int8)
    return start.astype(np.int8)


def _descend(start: np.ndarray, cost: Cost, distance: int, rng: np.random.Generator) -> np.ndarray:
    """Sweep over centres with a growing penalty of pairs that are too close, until a sweep changes nothing."""
    centres = start.astype(np.float64)
    limit = centres.shape[1] - 2 * distance
    penalty = 1.0
    for _ in range(_SWEEPS):
        changed = sum(_improve(centres, i, cost, limit, penalty) for i in rng.permutation(len(centres)))
        if nearest(centres) < distance:
            penalty *= 2
        elif not changed:
            break
    return centres


def _improve(centres: np.ndarray, i: int, cost: Cost, limit: float, penalty: float) -> bool:
    """Flip the best bit of centre i while that helps; whether any was flipped."""

    def value(products: np.ndarray) -> np.ndarray:
        excess = np.maximum(products - limit, 0)
        excess[:, i] = 0
        return cost(products, i) + penalty * np.square(excess).sum(axis=1)

    changed = False
    products = centres @ centres[i]
    now = float(value(products[None])[0])
    for _ in range(centres.shape[1]):
        flipped = products - 2 * (centres * centres[i]).T  # (b, c): the products after a flip of each bit
        values = value(flipped)
        bit = int(values.argmin())
        if values[bit] >= now - 1e-9:
            break
        now, products, changed = float(values[bit]), flipped[bit].copy(), True
        centres[i, bit] *= -1
        products[i] = centres.shape[1]
    return changed
