"""The sign of the principal components: the simplest learned code, and the floor every method should clear.

W      components   (d, b)   leading eigenvectors of the covariance
"""

from __future__ import annotations

from hbmp._core.seeds import as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.principal import need_components, principal_components


class PCASign(Hasher):
    """Bits are the signs of the leading principal components.

    Parameters
    ----------
    n_bits : length of the codes, at most the number of features
    random_state : seed of the randomised solver, used for many features
    """

    citation = "Wang, Kumar & Chang, CVPR 2010 (PCA hashing)"

    def __init__(self, n_bits=32, *, random_state=None):
        self.n_bits = n_bits
        self.random_state = random_state

    def _fit(self, X, y):
        need_components("PCASign", X, self.n_bits)
        self.mean_, self.components_ = principal_components(X, self.n_bits, as_generator(self.random_state))

    def _project(self, X):
        return (X - self.mean_) @ self.components_
