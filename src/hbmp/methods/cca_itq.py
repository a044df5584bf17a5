"""CCA-ITQ: the directions of the features that the labels explain best, then iterative quantisation.

Canonical correlation analysis finds directions of the features and of the labels whose projections correlate most. The
directions of the features replace the principal components of ITQ.

    X, Y   features, label rows   (n, d), (n, c)   both centred
    ρ      regularization                          added to both covariances
    w_k    directions             (d, r)           wᵀ (XᵀX/n + ρ) w = 1
    λ_k    correlations_          (r,)             of the k-th pair of directions, falling
    V      projections            (n, r)           X w_k λ_k: a direction counts as much as it correlates
    R, B   rotation, signs        (r, b), (n, b)   as in ITQ; loss_ is ‖B - V R‖² / n

Departs from the publication where there are more bits than correlated directions (c - 1 for classes). There the d × d
eigenproblem gives further directions with correlation 0, and scaling by the correlation makes their projections 0;
so only the r correlated ones are kept, and the rotation spreads them over b bits by b directions in r dimensions
(a tight frame), which is the same as padding V with zeros.

Reference: Gong, Lazebnik, Gordo & Perronnin, Iterative Quantization, TPAMI 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from hbmp._core.seeds import RandomState, as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.checks import need_counts, need_positive
from hbmp.methods._shared.label_rows import label_rows
from hbmp.methods._shared.products import gram
from hbmp.methods._shared.rotation import learn_rotation


def canonical_directions(X: np.ndarray, Y: np.ndarray, regularization: float) -> tuple[np.ndarray, np.ndarray]:
    """(w_k (d, r), λ_k (r,)) for centred X and Y, most correlated first; directions without correlation are dropped.

    With XᵀX/n + ρ = L Lᵀ and YᵀY/n + ρ = M Mᵀ the pairs are the singular vectors of L⁻¹ (XᵀY/n) M⁻ᵀ.
    """
    n = len(X)
    features = cholesky(gram(X, X) / n + regularization * np.eye(X.shape[1]), lower=True)
    labels = cholesky(gram(Y, Y) / n + regularization * np.eye(Y.shape[1]), lower=True)
    whitened = solve_triangular(features, gram(X, Y) / n, lower=True)
    whitened = solve_triangular(labels, whitened.T, lower=True).T
    left, correlations, _ = np.linalg.svd(whitened, full_matrices=False)
    kept = correlations > 1e-6 * max(correlations[0], 1e-300)
    return solve_triangular(features, left[:, kept], lower=True, trans="T"), correlations[kept]


class CCAITQ(Hasher):
    """Signs of rotated canonical directions between features and labels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes. It may exceed the number of classes and features.
    regularization : float, default=1e-4
        ρ, relative to the mean variance of the features.
    n_iter : int, default=50
        Alternations between signs and rotation.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the initial rotation.

    Attributes
    ----------
    directions_ : ndarray of shape (d, n_bits)
        Rotated canonical directions.
    correlations_ : ndarray of shape (r,)
        Canonical correlations, decreasing.
    mean_ : ndarray of shape (d,)
        Mean of the training features.
    loss_ : list of float
        Quantisation error after each iteration.

    Notes
    -----
    Departs from the publication, where ρ is added to the covariances as they are. A relative ρ does not depend on the
    unit of the features.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import CCAITQ
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = CCAITQ(8, random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Gong & Lazebnik, CVPR 2011; Gong et al., TPAMI 2013"
    supervised = True
    smoke = {"n_iter": 3}
    search = {"regularization": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
    never_rises = "loss_"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        regularization: float = 1e-4,
        n_iter: int = 50,
        random_state: RandomState = None,
    ):
        self.n_bits = n_bits
        self.regularization = regularization
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        need_counts(n_iter=self.n_iter)
        need_positive(regularization=self.regularization)
        Y = label_rows(y)
        self.mean_ = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        centred = X - self.mean_
        scale = max(float(centred.std(dtype=np.float64)), 1e-12)  # features in units of their own spread
        centred /= np.float32(scale)
        directions, correlations = canonical_directions(centred, Y - Y.mean(axis=0), self.regularization)
        self.correlations_ = correlations[: self.n_bits]
        scaled = (directions * correlations)[:, : self.n_bits]
        projections = centred @ scaled.astype(np.float32)
        rotation, self.loss_ = learn_rotation(projections, self.n_bits, self.n_iter, as_generator(self.random_state))
        self.directions_ = (scaled @ rotation / scale).astype(np.float32)

    def _project(self, X: Any) -> np.ndarray:
        return (X - self.mean_) @ self.directions_
