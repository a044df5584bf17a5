"""RBF features on anchors, then a hyperplane a bit: a smooth non-linear function at the price of a linear one.

    a_j    anchors   (m, d)    training samples drawn at random
    φ(x)   features  (m,)      exp(-‖x - a_j‖² / 2σ²), σ² a multiple of the median squared distance to anchors

Anchors are drawn, not clustered: on digits and CIFAR-10 features k-means centres gave mAP 0.983 and 0.814 at 16 bits,
drawn samples 0.988 and 0.817, in a tenth of the time.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from hbmp._core.seeds import as_generator, draw_seed
from hbmp.functions._shared.base import HashFunction
from hbmp.functions.linear import Linear


class Kernel(HashFunction):
    """RBF features on `n_anchors` anchors and a linear function on top.

    Parameters
    ----------
    n_anchors : anchors, at most the number of samples
    width : σ as a multiple of the typical distance between samples and anchors
    max_rows : more samples than this are drawn down to it for training, which bounds memory
    linear : the function on top, with its own settings, or None for its defaults
    device, verbose : of that default
    """

    smoke = {"n_anchors": 8, "linear": Linear(epochs=2)}

    def __init__(self, *, n_anchors=2000, width=0.5, max_rows=100_000, linear=None, device="auto", verbose=False):
        self.n_anchors = n_anchors
        self.width = width
        self.max_rows = max_rows
        self.linear = linear
        self.device = device
        self.verbose = verbose

    def code_loss(self, bit_weights=None):
        """That of the linear function."""
        return self._linear().code_loss(bit_weights)

    def learn(self, X, loss, *rest, n_bits, random_state=None):
        """Draw the anchors, measure the width, minimise `loss(scores, *rest)`."""
        rows, drawn, rng = self._anchor(X, random_state)
        drawn_rest = [array[drawn] for array in rest]
        self.linear_.learn(self._kernel(rows), loss, *drawn_rest, n_bits=n_bits, random_state=draw_seed(rng))
        return self

    def rescale(self, factor, shift):
        """Fold a factor and a shift of each score into the linear function."""
        self.linear_.rescale(factor, shift)

    def drop(self, columns):
        """Leave these scores out of the linear function."""
        self.linear_.drop(columns)

    def project(self, X):
        """Scores of the linear function on the kernel features, a few thousand rows at a time."""
        parts = [self._rows(X[start : start + 8192]) for start in range(0, len(X), 8192)]
        return np.concatenate([self.linear_.project(self._kernel(part)) for part in parts])

    def _anchor(self, X, random_state):
        """Anchors and width from at most `max_rows` samples: (these, their positions, the generator)."""
        rng = as_generator(random_state)
        drawn = rng.permutation(len(X))[: self.max_rows]
        X = X[drawn]
        self.mean_, self.scale_ = X.mean(axis=0), max(float(X.std()), 1e-12)
        rows = self._rows(X)
        self.anchors_ = rows[: self.n_anchors].copy()
        typical = float(np.median(squared_distances(rows[-2000:], self.anchors_)))
        self.spread_ = max(typical * self.width**2, 1e-12)
        self.linear_ = self._linear()
        return rows, drawn, rng

    def _linear(self):
        default = Linear(device=self.device, verbose=self.verbose)
        return clone(default if self.linear is None else self.linear)

    def _rows(self, X):
        return (np.asarray(X, dtype=np.float32) - self.mean_) / np.float32(self.scale_)

    def _kernel(self, rows):
        return np.exp(squared_distances(rows, self.anchors_) / np.float32(-2 * self.spread_))


def squared_distances(a, b):
    """‖a_i - b_j‖², (n, d) and (m, d) to (n, m); centre both first, large means cost digits."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
    return np.maximum(squares - 2 * (a @ b.T), 0)
