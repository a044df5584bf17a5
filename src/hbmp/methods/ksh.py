"""KSH, supervised hashing with kernels: one bit after another, each by the kernel hyperplane that most reduces
the difference between the target similarities and the inner products of the codes.

A bit starts at the top eigenvector of the relaxed problem; accelerated gradient steps on a smooth sign follow, and
their result is kept if its sign fits better.

    l, m   labelled samples, anchors
    S      similarity    (l, l)   +1 for the same class or a shared label, -1 otherwise; never formed
    K̄      features      (l, m)   RBF features on anchors, less their mean over all samples
    a_k    directions_   (m, b)   one hyperplane per bit
    h_k    signs         (l,)     sign(K̄ a_k)
    R_k    residue                b S - Σ_{j<k} h_j h_jᵀ
    φ                             2 / (1 + e^-x) - 1, the smooth sign
    objective_           (b + 1,) ‖S - H Hᵀ / b‖² / l² after each bit

The objective need not fall with every bit: a bit adds a whole h hᵀ, even if less would be better (a single bit for
ten classes raises it). The free step sizes of the pursuit avoid this.

On CIFAR-10 features (cifar-1, 32 bits) it reaches mAP 0.786, last of the supervised methods together with VDSH, as in
Table 1 of the paper: its hyperplanes depend on a few hundred anchors and two thousand labelled samples, and no bit is
learned again from all samples.

Reference: Liu, Wang, Ji, Jiang & Chang, Supervised Hashing with Kernels, CVPR 2012.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from hbmp._core.labels import distinct_rows
from hbmp._core.seeds import RandomState, as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.anchors import AnchorKernel
from hbmp.methods._shared.checks import need_counts, need_positive, need_spread
from hbmp.methods._shared.label_rows import label_rows
from hbmp.methods._shared.products import row_blocks

_TOLERANCE = 1e-6  # relative change of the smooth objective at which a bit has converged


class _Residue:
    """R_k as an operator: the similarities of distinct label rows, spread over the samples, less the bits so far."""

    def __init__(self, labels: np.ndarray, n_bits: int):
        sets, self.set_of, _ = distinct_rows(labels)
        self.wanted = n_bits * np.where(sets @ sets.T > 0, 1.0, -1.0)
        self.signs = np.empty((len(labels), 0))

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """R_k vectors, (l,) or (l, q)."""
        sums = np.zeros((len(self.wanted), *vectors.shape[1:]))
        np.add.at(sums, self.set_of, vectors)
        return (self.wanted @ sums)[self.set_of] - self.signs @ (self.signs.T @ vectors)

    def take_off(self, signs: np.ndarray) -> None:
        """The next residue, less h hᵀ."""
        self.signs = np.column_stack([self.signs, signs])


def whitening(features: np.ndarray) -> np.ndarray:
    """P (m, r) for which K̄ P has orthogonal columns of mean square 1, without directions in which nothing varies."""
    values, vectors = eigh(features.T @ features / len(features))
    kept = values > 1e-10 * max(values[-1], 1e-300)
    return vectors[:, kept] / np.sqrt(values[kept])


def spectral_start(features: np.ndarray, residue: _Residue) -> np.ndarray:
    """The relaxed bit: the direction a that maximises (K̄a)ᵀ R (K̄a) at (K̄a)ᵀ(K̄a) = l, for whitened features."""
    matrix = features.T @ residue.times(features)
    last = len(matrix) - 1
    _, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=(last, last))
    return vectors[:, 0]


def smooth_objective(scores: np.ndarray, residue: _Residue) -> tuple[float, np.ndarray]:
    """-φᵀ R φ for scores K̄a, and its gradient by the scores, -Rφ ∘ (1 - φ²): φ' is (1 - φ²)/2, the form quadratic."""
    smooth = np.tanh(scores / 2)
    image = residue.times(smooth)
    return -float(smooth @ image), -image * (1 - smooth**2)


def descend(direction: np.ndarray, features: np.ndarray, residue: _Residue, n_iter: int) -> np.ndarray:
    """The best of n_iter accelerated gradient steps. The step is halved until the expected descent is reached.

    Scores are linear in the direction, so trial steps need no further product with the features.
    """
    here = before = best = direction
    scores = scores_before = features @ direction
    lowest, last = smooth_objective(scores, residue)[0], np.inf
    momentum, step = 1.0, 0.0
    for _ in range(n_iter):
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / following
        ahead, scores_ahead = here + push * (here - before), scores + push * (scores - scores_before)
        value, by_scores = smooth_objective(scores_ahead, residue)
        gradient = features.T @ by_scores
        size = float(gradient @ gradient)
        if size == 0 or abs(last - value) <= _TOLERANCE * abs(value):
            break
        scores_step = features @ gradient
        step = step or np.linalg.norm(direction) / np.sqrt(size)  # at first as long as the direction itself
        while (reached := smooth_objective(scores_ahead - step * scores_step, residue)[0]) > value - step * size / 2:
            step /= 2
        before, scores_before = here, scores
        here, scores = ahead - step * gradient, scores_ahead - step * scores_step
        momentum, last = following, value
        if reached < lowest:  # with momentum not every step goes down
            best, lowest = here, reached
    return best


def learn_bit(features: np.ndarray, residue: _Residue, n_iter: int) -> tuple[np.ndarray, np.ndarray, float]:
    """(direction, signs h, hᵀ R h) of the next bit, for whitened features."""
    start = spectral_start(features, residue)
    refined = descend(start, features, residue, n_iter)
    best = (start, *_sign_fit(start, features, residue))
    signs, fit = _sign_fit(refined, features, residue)
    return (refined, signs, fit) if fit > best[2] else best


def _sign_fit(direction: np.ndarray, features: np.ndarray, residue: _Residue) -> tuple[np.ndarray, float]:
    signs = np.where(features @ direction >= 0, 1.0, -1.0)
    return signs, float(signs @ residue.times(signs))


class KSH(Hasher):
    """Kernel hyperplanes, learned one by one to fit pairwise similarities.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    n_anchors : int, default=300
        Anchors of the kernel features.
    n_labelled : int, default=2000
        The most labelled samples to fit the similarities on.
    n_iter : int, default=500
        The most accelerated gradient steps per bit.
    width : float, default=1.0
        σ of the kernel as a multiple of the root mean squared distance.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the anchors and the sampled rows.

    Attributes
    ----------
    directions_ : ndarray of shape (n_anchors, n_bits)
        Hyperplane of each bit on the kernel features.
    objective_ : ndarray of shape (n_bits + 1,)
        Squared error of the similarities after each bit.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import KSH
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = KSH(8, n_anchors=30, random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Liu et al., CVPR 2012"
    supervised = True
    smoke = {"n_anchors": 20, "n_iter": 5}
    search = {"n_anchors": [300, 600], "width": [0.5, 0.7, 1.0]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_anchors: int = 300,
        n_labelled: int = 2000,
        n_iter: int = 500,
        width: float = 1.0,
        random_state: RandomState = None,
    ):
        self.n_bits = n_bits
        self.n_anchors = n_anchors
        self.n_labelled = n_labelled
        self.n_iter = n_iter
        self.width = width
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        need_counts(n_anchors=self.n_anchors, n_labelled=self.n_labelled, n_iter=self.n_iter)
        need_positive(width=self.width)
        rng = as_generator(self.random_state)
        labels = label_rows(y)
        self.kernel_ = AnchorKernel(n_anchors=self.n_anchors, width=self.width).fit(X, rng)
        mean = self._mean_features(X)
        drawn = np.sort(rng.choice(len(X), min(self.n_labelled, len(X)), replace=False))
        features = self.kernel_.transform(X[drawn]).astype(np.float64) - mean
        need_spread(features)
        with threadpool_limits(1 if features.size < 1e7 else None):  # waiting for threads costs more on little data
            directions = self._greedy(features, labels[drawn])
        self.directions_ = directions.astype(np.float32)
        self.offset_ = (mean @ directions).astype(np.float32)

    def _greedy(self, features: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """All bits, one after another: a_k as columns, (m, b)."""
        # Departs from the publication in the coordinates of the gradient steps: those in which K̄ᵀK̄ is the identity,
        # because the objective is the same there and better conditioned.
        change = whitening(features)
        features = features @ change
        residue = _Residue(labels, self.n_bits)
        directions = np.empty((change.shape[1], self.n_bits))
        left = float(self.n_bits * len(labels)) ** 2  # ‖b S‖²
        self.objective_ = [1.0]
        for bit in range(self.n_bits):
            directions[:, bit], signs, fit = learn_bit(features, residue, self.n_iter)
            residue.take_off(signs)
            left += len(labels) ** 2 - 2 * fit  # ‖R - h hᵀ‖²
            self.objective_.append(left / (self.n_bits * len(labels)) ** 2)
        return change @ directions

    def _mean_features(self, X: np.ndarray) -> np.ndarray:
        total = sum(self.kernel_.transform(X[rows]).sum(axis=0, dtype=np.float64) for rows in row_blocks(len(X)))
        return total / len(X)

    def _project(self, X: Any) -> np.ndarray:
        return self.kernel_.transform(X) @ self.directions_ - self.offset_
