"""Iterative quantisation: rotate the principal components until the points lie as close as they can to their signs.

    V      projections  (n, b)   centred features on the leading principal components
    R      rotation     (b, b)   orthogonal
    B      signs        (n, b)   sign(V R)
    loss_                        ‖B - V R‖² / n, after each iteration

Reference: Gong & Lazebnik, Iterative Quantization: A Procrustean Approach to Learning Binary Codes, CVPR 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.seeds import RandomState, as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.principal import need_components, principal_components
from hbmp.methods._shared.rotation import learn_rotation


class ITQ(Hasher):
    """Iterative quantisation: signs of principal components under a learned rotation.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, at most the number of features.
    n_iter : int, default=50
        Alternations between signs and rotation.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the initial rotation.

    Attributes
    ----------
    directions_ : ndarray of shape (d, n_bits)
        Rotated principal components.
    mean_ : ndarray of shape (d,)
        Mean of the training features.
    loss_ : list of float
        Quantisation error after each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.methods import ITQ
    >>> X = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    >>> model = ITQ(8, random_state=0).fit(X)
    >>> model.transform(X).shape
    (100, 8)
    >>> model.project(X[:5]).dtype
    dtype('float32')
    """

    citation = "Gong & Lazebnik, CVPR 2011"
    smoke = {"n_iter": 3}
    never_rises = "loss_"

    def __init__(self, n_bits: int = 32, *, n_iter: int = 50, random_state: RandomState = None):
        self.n_bits = n_bits
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        need_counts(n_iter=self.n_iter)
        need_components("ITQ", X, self.n_bits)
        rng = as_generator(self.random_state)
        self.mean_, components = principal_components(X, self.n_bits, rng)
        rotation, self.loss_ = learn_rotation((X - self.mean_) @ components, self.n_bits, self.n_iter, rng)
        self.directions_ = np.ascontiguousarray(components @ rotation, dtype=np.float32)

    def _project(self, X: Any) -> np.ndarray:
        return (X - self.mean_) @ self.directions_
