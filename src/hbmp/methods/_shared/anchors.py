"""Kernel features on anchors, as in KSH and SDH: the proximity of a sample to each of m training samples.

a_j    anchors_    (m, d)   training samples drawn at random, centred and scaled to mean square 1 as all samples are
σ²     spread_              width² times the mean squared distance between samples and anchors
k(x)   features    (m,)     exp(-‖x - a_j‖² / 2σ²)
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from hbmp.functions.kernel import squared_distances
from hbmp.methods._shared.products import row_blocks


class AnchorKernel(BaseEstimator):
    """RBF features on randomly drawn anchors.

    Parameters
    ----------
    n_anchors : int, default=300
        Number of anchors, at most the number of samples.
    width : float, default=1.0
        σ, as a multiple of the root mean squared distance between samples and anchors.
    """

    def __init__(self, *, n_anchors: int = 300, width: float = 1.0) -> None:
        self.n_anchors = n_anchors
        self.width = width

    def fit(self, X: np.ndarray, rng: np.random.Generator) -> AnchorKernel:
        """Draw the anchors and measure the distances."""
        self.mean_ = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        squares = sum(float(np.square(X[rows] - self.mean_).sum(dtype=np.float64)) for rows in row_blocks(len(X)))
        self.scale_ = float(np.sqrt(squares / X.size)) or 1.0
        drawn = rng.choice(len(X), min(self.n_anchors, len(X)), replace=False)
        self.anchors_ = self._scaled(X[drawn])
        # The mean over all pairs is mean ‖x‖² + mean ‖a‖² - 2 mean(x)·mean(a), and the samples' mean is 0.
        distance = X.shape[1] + float(np.square(self.anchors_).sum(dtype=np.float64)) / len(self.anchors_)
        self.spread_ = self.width**2 * distance
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Features (n, m), float32."""
        features = np.empty((len(X), len(self.anchors_)), dtype=np.float32)
        for rows in row_blocks(len(X)):
            distances = squared_distances(self._scaled(X[rows]), self.anchors_)
            np.exp(distances / np.float32(-2 * self.spread_), out=features[rows])
        return features

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) / np.float32(self.scale_)
