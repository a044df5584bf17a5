"""Principal components under a random rotation, then the sign (PCA-RR): the rotation spreads variance over the bits.

Without it the first component counts as much as the last, although it has far more of the variance.

    W      components   (d, b)   leading eigenvectors of the covariance
    R      rotation     (b, b)   drawn uniformly from the orthogonal matrices

Reference: Jégou, Douze, Schmid & Pérez, Aggregating local descriptors into a compact image representation, CVPR 2010;
as a code in Gong & Lazebnik, CVPR 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.seeds import RandomState, as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.principal import need_components, principal_components
from hbmp.methods._shared.rotation import random_rotation


class PCARotation(Hasher):
    """Signs of randomly rotated principal components.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, at most the number of features.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the rotation.

    Attributes
    ----------
    directions_ : ndarray of shape (d, n_bits)
        Rotated principal components.
    mean_ : ndarray of shape (d,)
        Mean of the training features.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.methods import PCARotation
    >>> X = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    >>> model = PCARotation(8, random_state=0).fit(X)
    >>> model.transform(X).shape
    (100, 8)
    >>> model.project(X[:5]).dtype
    dtype('float32')
    """

    citation = "Jégou et al., CVPR 2010; Gong & Lazebnik, CVPR 2011 (PCA-RR)"

    def __init__(self, n_bits: int = 32, *, random_state: RandomState = None):
        self.n_bits = n_bits
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        need_components("PCARotation", X, self.n_bits)
        rng = as_generator(self.random_state)
        self.mean_, components = principal_components(X, self.n_bits, rng)
        rotation = random_rotation(self.n_bits, self.n_bits, rng)
        self.directions_ = np.ascontiguousarray(components @ rotation, dtype=np.float32)

    def _project(self, X: Any) -> np.ndarray:
        return (X - self.mean_) @ self.directions_
