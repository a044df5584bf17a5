"""RBF features on anchors, then a hyperplane per bit: a smooth non-linear function at the cost of a linear one.

    a_j    anchors   (m, d)    training samples drawn at random
    φ(x)   features  (m,)      exp(-‖x - a_j‖² / 2σ²), σ² a multiple of the median squared distance to anchors

Anchors are random samples, not cluster centres. On digits and CIFAR-10 features at 16 bits, k-means centres gave mAP
0.983 and 0.814, random samples 0.988 and 0.817 in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp.functions._shared.base import HashFunction
from hbmp.functions.linear import Linear


class Kernel(HashFunction):
    """RBF kernel features on anchors with a linear function on top.

    Parameters
    ----------
    n_anchors : int, default=2000
        Number of anchors. At most the number of samples is used.
    width : float, default=0.5
        σ as a multiple of the median distance between samples and anchors.
    max_rows : int, default=100_000
        The most samples to train on, which bounds memory. Larger data is sampled.
    linear : Linear or None, default=None
        The function on top, with its own settings. None takes the defaults of `Linear`.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the default linear function is trained. `project` runs on the CPU without torch.
    verbose : bool, default=False
        Show the progress of the default linear function on stderr.

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors, d)
        The anchors, centred and scaled like the features.
    spread_ : float
        σ².
    linear_ : Linear
        The fitted function on top.

    Examples
    --------
    Points inside and outside a circle, which no hyperplane separates:

    >>> import numpy as np
    >>> from hbmp.functions import Kernel, Linear
    >>> X = np.random.default_rng(0).standard_normal((300, 2)).astype(np.float32)
    >>> targets = np.where((X**2).sum(axis=1, keepdims=True) > 1.4, 1, -1).astype(np.int8)
    >>> function = Kernel(n_anchors=50, linear=Linear(epochs=30, device="cpu")).fit(X, targets, random_state=0)
    >>> function.bit_error(X, targets) < 0.1
    True
    """

    smoke = {"n_anchors": 8, "linear": Linear(epochs=2)}

    mean_: np.ndarray
    scale_: float
    linear_: Linear

    def __init__(
        self,
        *,
        n_anchors: int = 2000,
        width: float = 0.5,
        max_rows: int = 100_000,
        linear: Linear | None = None,
        device: str = "auto",
        verbose: bool = False,
    ):
        self.n_anchors = n_anchors
        self.width = width
        self.max_rows = max_rows
        self.linear = linear
        self.device = device
        self.verbose = verbose

    def code_loss(self, bit_weights: np.ndarray | None = None) -> Callable[..., Any]:
        """The loss of the linear function."""
        return self._linear().code_loss(bit_weights)

    def learn(
        self, X: Any, loss: Callable[..., Any], *rest: np.ndarray, n_bits: int, random_state: RandomState = None
    ) -> Self:
        """Draw the anchors, measure the width, minimise `loss(scores, *rest)`."""
        rows, drawn, rng = self._anchor(X, random_state)
        drawn_rest = [array[drawn] for array in rest]
        self.linear_.learn(self._kernel(rows), loss, *drawn_rest, n_bits=n_bits, random_state=draw_seed(rng))
        return self

    def rescale(self, factor: np.ndarray, shift: np.ndarray) -> None:
        """Fold a factor and a shift of each score into the linear function."""
        self.linear_.rescale(factor, shift)

    def drop(self, columns: Sequence[int]) -> None:
        """Remove these scores from the linear function."""
        self.linear_.drop(columns)

    def project(self, X: np.ndarray) -> NDArray[np.float32]:
        """Scores of the linear function on the kernel features, in blocks of 8,192 rows."""
        parts = [self._rows(X[start : start + 8192]) for start in range(0, len(X), 8192)]
        return np.concatenate([self.linear_.project(self._kernel(part)) for part in parts])

    def _anchor(self, X: np.ndarray, random_state: RandomState) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
        """Set anchors and width from at most `max_rows` samples; return (samples, their positions, generator)."""
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

    def _linear(self) -> Linear:
        default = Linear(device=self.device, verbose=self.verbose)
        copy: Linear = clone(default if self.linear is None else self.linear)
        return copy

    def _rows(self, X: np.ndarray) -> np.ndarray:
        return (np.asarray(X, dtype=np.float32) - self.mean_) / np.float32(self.scale_)

    def _kernel(self, rows: np.ndarray) -> np.ndarray:
        values: np.ndarray = np.exp(squared_distances(rows, self.anchors_) / np.float32(-2 * self.spread_))
        return values


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """‖a_i - b_j‖² of (n, d) and (m, d) as (n, m). Centre both first, because large means cost digits."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
    return np.maximum(squares - 2 * (a @ b.T), 0)
