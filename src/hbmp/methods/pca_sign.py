"""The sign of the principal components: the simplest learned code, and the floor every method should clear.

W      components   (d, b)   leading eigenvectors of the covariance
"""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from hbmp.hasher import Hasher
from hbmp.seeds import as_generator, draw_seed


class PCASign(Hasher):
    """Bits are the signs of the leading principal components.

    Parameters
    ----------
    n_bits : length of the codes, at most the number of features
    random_state : seed of the randomised solver, used for many features
    """

    paper = "Wang, Kumar & Chang, CVPR 2010 (PCA hashing)"

    def __init__(self, n_bits=32, *, random_state=None):
        self.n_bits = n_bits
        self.random_state = random_state

    def _fit(self, X, y):
        if self.n_bits > min(X.shape):
            raise ValueError(
                f"PCASign takes its bits from principal components: n_bits={self.n_bits} needs {self.n_bits} features "
                f"and samples, found {X.shape[1]} and {X.shape[0]}. Ask for fewer bits."
            )
        components = PCA(self.n_bits, random_state=draw_seed(as_generator(self.random_state))).fit(X)
        self.mean_ = components.mean_.astype(np.float32)
        self.components_ = np.ascontiguousarray(components.components_.T, dtype=np.float32)

    def _project(self, X):
        return (X - self.mean_) @ self.components_
