"""The contract of every hash function: learn target codes from features, then score new features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from hbmp._core.device import pick_device, require_torch, to_torch
from hbmp._core.seeds import RandomState
from hbmp._training.losses import code_loss


class HashFunction(BaseEstimator):
    """Base class of all hash functions, and the extension point for new ones.

    A subclass defines `project`, and either `fit` or `learn`. Functions trained by gradients define `learn`, which
    takes any loss; their `fit` is inherited and uses `code_loss`. Other functions define `fit`.

    Attributes
    ----------
    takes_images : bool
        Class attribute. True for functions of images, False for functions of feature vectors.
    smoke : dict
        Class attribute. The cheapest settings that run every line, for tests.

    Examples
    --------
    A function whose bits are least-squares fits to the target codes:

    >>> import numpy as np
    >>> from hbmp.functions import HashFunction
    >>> class LeastSquares(HashFunction):
    ...     def fit(self, X, targets, *, bit_weights=None, random_state=None):
    ...         self.weights_ = np.linalg.lstsq(X, targets.astype(np.float32), rcond=None)[0]
    ...         return self
    ...     def project(self, X):
    ...         return (X @ self.weights_).astype(np.float32)
    >>> X = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    >>> targets = np.where(X[:, :2] > 0, 1, -1)
    >>> LeastSquares().fit(X, targets).bit_error(X, targets)
    0.02
    """

    takes_images: bool = False
    smoke: dict[str, Any] = {}

    loss: str
    bit_importance: bool
    device: str

    @property
    def by_gradients(self) -> bool:
        """Whether this function can minimise any loss of its scores."""
        return type(self).learn is not HashFunction.learn

    @property
    def pretrained(self) -> bool:
        """Whether training starts from weights learned on other data."""
        return False

    def fit(
        self,
        X: Any,
        targets: np.ndarray,
        *,
        bit_weights: np.ndarray | None = None,
        random_state: RandomState = None,
    ) -> Self:
        """Learn target codes.

        Parameters
        ----------
        X : ndarray of shape (n, d), float32, or Images
            Training features, or images where `takes_images`.
        targets : ndarray of shape (n, n_bits), int8
            Target codes in {-1, +1}.
        bit_weights : ndarray of shape (n_bits,), optional
            Weights of the bits in the distance, for functions with `bit_importance`.
        random_state : int, Generator, RandomState or None, default=None
            Seed. The same seed gives the same function.

        Returns
        -------
        self : HashFunction
        """
        targets = np.ascontiguousarray(targets)
        loss = self.code_loss(bit_weights)
        return self.learn(X, loss, targets, n_bits=targets.shape[1], random_state=random_state)

    def code_loss(self, bit_weights: np.ndarray | None = None) -> Callable[..., Any]:
        """The loss that `loss` names, a torch function (scores, targets) -> scalar.

        Parameters
        ----------
        bit_weights : ndarray of shape (n_bits,), optional
            With `bit_importance`, each bit's loss is multiplied by the size of its weight.

        Returns
        -------
        loss : callable
        """
        require_torch(type(self).__name__)
        importance = None
        if self.bit_importance and bit_weights is not None:
            relative = np.abs(bit_weights) / max(np.abs(bit_weights).mean(), 1e-12)
            importance = to_torch(relative.astype(np.float32), pick_device(self.device))
        return code_loss(self.loss, importance)

    def learn(
        self, X: Any, loss: Callable[..., Any], *rest: np.ndarray, n_bits: int, random_state: RandomState = None
    ) -> Self:
        """Minimise any torch loss of the scores.

        Parameters
        ----------
        X : ndarray of shape (n, d), float32, or Images
            Training features, or images where `takes_images`.
        loss : callable
            Called per batch as `loss(scores, *rows of rest)`. A `torch.nn.Module` is trained with the function.
        *rest : ndarray of length n
            Arrays whose rows go to the loss with the scores of the same samples.
        n_bits : int
            Number of scores.
        random_state : int, Generator, RandomState or None, default=None
            Seed. The same seed gives the same function.

        Returns
        -------
        self : HashFunction
        """
        raise ValueError(
            f"{type(self).__name__} is not trained by gradients, so it cannot minimise a loss of its scores. "
            "Use function='linear', 'mlp' or 'kernel'."
        )

    def rescale(self, factor: np.ndarray, shift: np.ndarray) -> None:
        """Replace every score by factor · score + shift; both have shape (n_bits,)."""
        raise NotImplementedError

    def drop(self, columns: Sequence[int]) -> None:
        """Remove the scores at these positions."""
        raise NotImplementedError

    def project(self, X: Any) -> NDArray[np.float32]:
        """Scores whose signs are the codes.

        Parameters
        ----------
        X : ndarray of shape (n, d), float32, or Images
            Features, or images where `takes_images`.

        Returns
        -------
        scores : ndarray of shape (n, n_bits), float32
        """
        raise NotImplementedError

    def project_with_features(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Scores, and the feature vectors that detail bits describe.

        Parameters
        ----------
        X : ndarray of shape (n, d), float32, or Images
            Features, or images where `takes_images`.

        Returns
        -------
        scores : ndarray of shape (n, n_bits), float32
        features : ndarray
            X itself; of images the features before the last layer.
        """
        return self.project(X), X

    def bit_error(self, X: Any, targets: np.ndarray) -> float:
        """Fraction of target bits that the function does not reproduce (Fig. 1 f of the paper)."""
        return float(((self.project(X) >= 0) != (targets > 0)).mean())

    def unmatched(self, X: Any, targets: np.ndarray) -> float:
        """Former name of `bit_error`."""
        return self.bit_error(X, targets)
