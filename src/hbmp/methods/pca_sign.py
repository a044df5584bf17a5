"""The signs of the principal components: the simplest learned code, a lower bound for every other method.

W      components   (d, b)   leading eigenvectors of the covariance
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.seeds import RandomState, as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.principal import need_components, principal_components


class PCASign(Hasher):
    """Signs of the leading principal components.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, at most the number of features.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the randomised solver, which is used for many features.

    Attributes
    ----------
    components_ : ndarray of shape (d, n_bits)
        The principal components.
    mean_ : ndarray of shape (d,)
        Mean of the training features.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.methods import PCASign
    >>> X = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    >>> model = PCASign(8, random_state=0).fit(X)
    >>> model.transform(X).shape
    (100, 8)
    >>> model.project(X[:5]).dtype
    dtype('float32')
    """

    citation = "Wang, Kumar & Chang, CVPR 2010 (PCA hashing)"

    def __init__(self, n_bits: int = 32, *, random_state: RandomState = None):
        self.n_bits = n_bits
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        need_components("PCASign", X, self.n_bits)
        self.mean_, self.components_ = principal_components(X, self.n_bits, as_generator(self.random_state))

    def _project(self, X: Any) -> np.ndarray:
        return (X - self.mean_) @ self.components_
