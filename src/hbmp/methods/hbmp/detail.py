"""Detail bits: label bits identify the class of an item, detail bits the item within its class.

Label bits explain part of the features, and the pursuit goes on with the rest. The mathematics is in
docs/mathematics-detail.md.

    X      features    (n, d)     rows of unit length
    U      label bits  (n, l)     signs, as the hash function gives them
    A      explained   (l+1, d)   ridge regression of X on [1, U]
    E      residual    (n, d)     X - [1, U] A, what label bits leave unexplained
    V      detail bits (n, b)     rebuild E (`Rebuilding`)
    β      weights     (b,)       of the detail bits, in sum `total` times the mean weight of a label bit

The residual follows from the label bits of an item, not from its label. So it is known for new items, for label sets
and for more classes than dimensions, and no direction of the features is lost: two items of equal label bits have
E_i - E_j = X_i - X_j.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from hbmp import hamming
from hbmp.methods.hbmp.unlabelled import Rebuilding
from hbmp.pursuit.features import fit_atoms

TIE_BREAKING = 0.9
"""Sum of the detail weights, in label bits of equal weight: below 1, so that no detail outweighs a label bit."""
_RIDGE = 1e-3  # of the regression on label bits: bits that agree on all rows share what they explain


class DetailBits(BaseEstimator):
    """Bits that rebuild what label bits leave unexplained of the features.

    Parameters
    ----------
    coupling : float, default=0.5
        Influence of the bits on one another, from 0 to 1.
    gain : float, default=2.0
        Gain of the n_bits-th principal axis of the residual over the first, at least 1.
    n_iter : int, default=20
        Rounds of choosing bits and refitting atoms.
    max_rows : int, default=100_000
        Training rows; more are sampled down to it.

    Attributes
    ----------
    explained_ : array of shape (n_label_bits + 1, d)
        The part of a unit feature vector that a constant and each label bit explain.
    rebuilding_ : Rebuilding
        Hash function of the residual.
    weights_ : array of shape (n_bits,)
        Weights of the bits, of mean 1.
    scale_ : float
        Factor from the agreement of a residual with its bits to scores of the given size.
    unexplained_ : array of shape (3,)
        Share of the squared length of the centred training features that is left by nothing (1), by label bits, and
        by all bits. It never rises.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 8))
    >>> label_scores = X[:, :1]
    >>> detail = DetailBits().fit(X, label_scores, 4, random_state=0)
    >>> detail.project(X, label_scores).shape
    (200, 4)
    """

    explained_: NDArray[np.float32]
    rebuilding_: Rebuilding
    weights_: NDArray[np.float64]
    scale_: float
    unexplained_: NDArray[np.float64]

    def __init__(self, *, coupling: float = 0.5, gain: float = 2.0, n_iter: int = 20, max_rows: int = 100_000) -> None:
        self.coupling = coupling
        self.gain = gain
        self.n_iter = n_iter
        self.max_rows = max_rows

    def fit(
        self,
        X: NDArray[Any],
        label_scores: NDArray[Any],
        n_bits: int,
        *,
        size: float = 1.0,
        random_state: int | None = None,
    ) -> DetailBits:
        """Learn n_bits detail bits from features (n, d) and the scores of their label bits (n, l).

        size: mean size of a detail score, in label scores; real-valued queries weigh details by it.
        """
        features, signs = unit_rows(X), hamming.signs(label_scores)
        self.explained_ = explain(features, signs)
        rest = residual(features, signs, self.explained_)
        self.rebuilding_ = Rebuilding(
            coupling=self.coupling, radial=0, gain=self.gain, n_iter=self.n_iter, max_rows=self.max_rows
        )
        book = self.rebuilding_.pursue(rest, n_bits, weighting="ridge", random_state=random_state)
        self.weights_ = book.weights / max(float(book.weights.mean()), 1e-12)
        scores = self.rebuilding_.project(rest)
        mean_size = float(np.abs(scores).mean())
        self.scale_ = size * float(np.abs(label_scores).mean()) / mean_size if mean_size > 0 else 1.0
        details = hamming.signs(scores).astype(np.float32)
        rebuilt = rest - details @ fit_atoms(details, rest)
        lengths = [_squared_length(part) for part in (features - features.mean(axis=0), rest, rebuilt)]
        self.unexplained_ = np.array(lengths) / max(lengths[0], 1e-12)
        return self

    def project(self, X: NDArray[Any], label_scores: NDArray[Any]) -> NDArray[np.float32]:
        """Scores of the detail bits (n, b); their signs are the bits."""
        rest = residual(unit_rows(X), hamming.signs(label_scores), self.explained_)
        return (self.rebuilding_.project(rest) * np.float32(self.scale_)).astype(np.float32)


def unit_rows(X: NDArray[Any]) -> NDArray[np.float32]:
    """Rows of unit length, float32; rows of zeros are unchanged."""
    X = np.asarray(X, dtype=np.float32)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return (X / np.where(lengths > 0, lengths, np.float32(1))).astype(np.float32)


def explain(features: NDArray[Any], signs: NDArray[Any]) -> NDArray[np.float32]:
    """A (l+1, d): ridge regression of the features on a constant and the label bits; the constant is free."""
    mean_signs, mean = signs.mean(axis=0, dtype=np.float64), features.mean(axis=0, dtype=np.float64)
    centred = signs - mean_signs
    gram = centred.T @ centred + _RIDGE * len(signs) * np.eye(signs.shape[1])
    slopes = np.linalg.solve(gram, centred.T @ (features - mean))
    return np.vstack([mean - mean_signs @ slopes, slopes]).astype(np.float32)


def residual(features: NDArray[Any], signs: NDArray[Any], explained: NDArray[Any]) -> NDArray[np.float32]:
    """E (n, d): features minus the part that a constant and the label bits explain."""
    return (features - explained[0] - signs.astype(np.float32) @ explained[1:]).astype(np.float32)


def _squared_length(rows: NDArray[Any]) -> float:
    return float(np.square(rows, dtype=np.float64).sum())


def join_weights(label_weights: NDArray[Any], detail_weights: NDArray[Any], total: float) -> NDArray[np.float64]:
    """Weights of label bits, then of detail bits; the latter sum to `total` times the mean size of a label weight."""
    sizes = np.asarray(detail_weights, dtype=np.float64)
    unit = float(np.abs(label_weights).mean()) or 1.0
    return np.concatenate([label_weights, sizes * (total * unit / max(float(np.abs(sizes).sum()), 1e-12))])
