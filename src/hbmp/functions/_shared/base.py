"""The contract of every hash function: learn target codes from features, then score new features."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from hbmp._core.device import pick_device, to_torch
from hbmp._training.losses import code_loss


class HashFunction(BaseEstimator):
    """Base of all hash functions.

    `fit(X, targets, bit_weights=None)` learns (n, b) target codes from (n, d) features; `project(X)` gives float32
    scores whose signs are the codes. Functions trained by gradients take any loss, `learn(X, loss, *rest)`, and fit by
    their own, `code_loss`; others define `fit`.
    """

    takes_images = False  # features otherwise
    smoke: dict = {}

    loss: str
    bit_importance: bool
    device: str

    @property
    def by_gradients(self) -> bool:
        """Whether this function can minimise any loss of its scores."""
        return type(self).learn is not HashFunction.learn

    @property
    def pretrained(self) -> bool:
        """Whether training starts from what other data have taught."""
        return False

    def fit(self, X: np.ndarray, targets: np.ndarray, *, bit_weights=None, random_state=None):
        """Learn the targets; the same seed gives the same function."""
        targets = np.ascontiguousarray(targets)
        loss = self.code_loss(bit_weights)
        return self.learn(X, loss, targets, n_bits=targets.shape[1], random_state=random_state)

    def code_loss(self, bit_weights=None):
        """The loss named by `loss`, `(scores, targets) -> scalar`; with `bit_importance` a bit counts as its weight."""
        importance = None
        if self.bit_importance and bit_weights is not None:
            shares = np.abs(bit_weights) / max(np.abs(bit_weights).mean(), 1e-12)
            importance = to_torch(shares.astype(np.float32), pick_device(self.device))
        return code_loss(self.loss, importance)

    def learn(self, X: np.ndarray, loss, *rest: np.ndarray, n_bits: int, random_state=None):
        """Minimise any torch loss of the scores, called batch by batch as `loss(scores, *rows of rest)`."""
        raise ValueError(
            f"{type(self).__name__} is not trained by gradients, so it cannot minimise a loss of its scores. "
            "Use function='linear', 'mlp' or 'kernel'."
        )

    def rescale(self, factor: np.ndarray, shift: np.ndarray) -> None:
        """From now on give factor · score + shift, both (b,): what a learned normalisation does to each bit."""
        raise NotImplementedError

    def drop(self, columns) -> None:
        """From now on leave out these scores, given by their positions."""
        raise NotImplementedError

    def project(self, X: np.ndarray) -> np.ndarray:
        """Scores, float32, shape (n, b)."""
        raise NotImplementedError

    def unmatched(self, X: np.ndarray, targets: np.ndarray) -> float:
        """Share of target bits that the function does not reproduce (the paper's Fig. 1 f)."""
        return float(((self.project(X) >= 0) != (targets > 0)).mean())
