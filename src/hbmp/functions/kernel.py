"""RBF features on anchors, then a hyperplane a bit: a smooth non-linear function at the price of a linear one.

a_j    anchors   (m, d)    k-means centres of the training features
φ(x)   features  (m,)      exp(-‖x - a_j‖² / 2σ²), σ² the mean squared distance to the nearest tenth of anchors
"""

from __future__ import annotations

import numpy as np

from hbmp.functions._base import HashFunction
from hbmp.functions.linear import Linear
from hbmp.seeds import as_generator, draw_seed


class Kernel(HashFunction):
    """RBF features on `n_anchors` anchors and a linear function on top.

    Parameters
    ----------
    n_anchors : anchors, at most the number of samples
    width : σ as a multiple of the typical distance between samples and anchors
    linear : the function on top, with its own settings
    """

    smoke = {"n_anchors": 8, "linear": Linear(epochs=2)}

    def __init__(self, *, n_anchors=1000, width=0.5, linear=None):
        self.n_anchors = n_anchors
        self.width = width
        self.linear = linear

    def fit(self, X, targets, *, bit_weights=None, random_state=None):
        """Place the anchors, measure the width, learn the targets."""
        from sklearn.base import clone
        from sklearn.cluster import MiniBatchKMeans

        rng = as_generator(random_state)
        self.mean_ = X.mean(axis=0)
        self.scale_ = max(float(X.std()), 1e-12)
        rows = self._rows(X)
        n_anchors = min(self.n_anchors, len(X))
        means = MiniBatchKMeans(n_anchors, n_init=1, max_iter=20, batch_size=4096, random_state=draw_seed(rng))
        self.anchors_ = means.fit(rows).cluster_centers_.astype(np.float32)
        sample = rows[rng.choice(len(rows), min(2000, len(rows)), replace=False)]
        self.spread_ = float(np.median(_squared_distances(sample, self.anchors_))) * self.width**2
        self.linear_ = clone(self.linear if self.linear is not None else Linear())
        self.linear_.fit(self._kernel(rows), targets, bit_weights=bit_weights, random_state=draw_seed(rng))
        return self

    def project(self, X):
        """Scores of the linear function on the kernel features."""
        return self.linear_.project(self._kernel(self._rows(X)))

    def _rows(self, X):
        return (np.asarray(X, dtype=np.float32) - self.mean_) / np.float32(self.scale_)

    def _kernel(self, rows):
        return np.exp(_squared_distances(rows, self.anchors_) / np.float32(-2 * max(self.spread_, 1e-12)))


def _squared_distances(a, b):
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
    return np.maximum(squares - 2 * (a @ b.T), 0)
