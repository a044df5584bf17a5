"""Spectral hashing: bits are thresholded eigenfunctions of the data's smoothness, as if the data filled a box.

Codes that change as little as possible between near samples, balanced and uncorrelated, are eigenvectors of a graph
Laplacian. For a uniform density on a box these are cosines along each side, so that the box of the principal
components gives them in closed form, for new samples too.

    W      components   (d, p)   leading principal components, p = min(b, d)
    a, c   low, high    (p,)     the range of the training samples on each component
    k      modes        (b,)     half waves over the range, at least one
    λ      eigenvalues           rise with the frequency k π / (c - a): the b lowest are taken

Outer products of cosines along several sides are left out, as in the publication: they are products of other bits.

Reference: Weiss, Torralba & Fergus, Spectral Hashing, NIPS 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.seeds import RandomState, as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.principal import principal_components


def smoothest_modes(ranges: np.ndarray, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(component, number of half waves) of the n_bits cosines of lowest frequency on a box; ties by component.

    A component of range c - a offers frequencies π/(c - a), 2π/(c - a), …; the longest side alone offers enough, and
    on a shorter one more than its share of n_bits + 1 half waves cannot be among the lowest.
    """
    shares = np.ceil((n_bits + 1) * ranges / ranges.max()).astype(int) - 1
    components = np.repeat(np.arange(len(ranges)), shares)
    modes = np.concatenate([np.arange(1, share + 1) for share in shares])
    lowest = np.argsort(modes / ranges[components], kind="stable")[:n_bits]
    return components[lowest], modes[lowest]


class SH(Hasher):
    """Spectral hashing: signs of cosines along the principal components, lowest frequencies first.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes. It may exceed the number of features.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the randomised solver, which is used for many features.

    Attributes
    ----------
    directions_ : ndarray of shape (d, n_bits)
        Principal component of each bit.
    frequencies_ : ndarray of shape (n_bits,)
        Frequency of each cosine.
    low_ : ndarray of shape (n_bits,)
        Lowest training value along each component.
    mean_ : ndarray of shape (d,)
        Mean of the training features.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.methods import SH
    >>> X = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    >>> model = SH(8, random_state=0).fit(X)
    >>> model.transform(X).shape
    (100, 8)
    >>> model.project(X[:5]).dtype
    dtype('float32')
    """

    citation = "Weiss, Torralba & Fergus, NIPS 2008"

    def __init__(self, n_bits: int = 32, *, random_state: RandomState = None):
        self.n_bits = n_bits
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        rng = as_generator(self.random_state)
        self.mean_, components = principal_components(X, min(self.n_bits, *X.shape), rng)
        projections = (X - self.mean_) @ components
        low, high = projections.min(axis=0), projections.max(axis=0)
        ranges = np.maximum(high - low, 1e-12).astype(np.float64)  # constant features have no range
        component, modes = smoothest_modes(ranges, self.n_bits)
        self.directions_ = np.ascontiguousarray(components[:, component])
        self.low_ = low[component]
        self.frequencies_ = (np.pi * modes / ranges[component]).astype(np.float32)

    def _project(self, X: Any) -> np.ndarray:
        along = (X - self.mean_) @ self.directions_ - self.low_
        return np.cos(self.frequencies_ * along)  # sin(π/2 + ω x) of the publication
