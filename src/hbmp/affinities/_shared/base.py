"""The contract of every affinity: how close two items should be.

An affinity reduces instances to *items*: classes, distinct label rows, or the instances themselves. It is then a
symmetric operator R on items with values in [-1, 1]. It gives blocks of R, all of R, and products with R. Only
`matrix` needs more memory than O(items x features).

    R      values       (items, items)
    F      features     (items, f)      one row per item: a label row, a vector or an index
    counts_             (items,)        number of instances per item
    item_of_            (instances,)    the item of each instance
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from hbmp._core.device import pick_device, send, threads_for, to_numpy
from hbmp._core.memory import available_memory

_BLOCK_BYTES = 64 * 2**20  # one block of pair values; small enough for caches and for a shared GPU

Items = np.ndarray | slice


class Affinity(BaseEstimator):
    """Base class of all affinities, and the extension point for new ones.

    A subclass defines three methods:

    - `_reduce(X, y)` returns (features, item_of, counts).
    - `_features(new)` returns the feature rows of items that were not in the training data.
    - `_values(a, b)` returns the affinity of every pair of two sets of feature rows. The rows are torch tensors, or
      NumPy arrays where torch is not installed, so use operators that both have.

    Attributes
    ----------
    features_ : ndarray of shape (n_items, f)
        Features of the items.
    counts_ : ndarray of shape (n_items,)
        Number of instances per item, or the sum of their weights.
    item_of_ : ndarray of shape (n_instances,)
        The item of each training instance. It is not saved with a model.
    n_items_ : int
        Number of items.
    low_rank : bool
        Class attribute. True if `matmul` needs no pairs, so that a million items are cheap.
    not_saved : tuple of str
        Class attribute. Learned attributes that a saved model leaves out.

    Examples
    --------
    An affinity between numbers that falls linearly with their difference:

    >>> import numpy as np
    >>> from hbmp.affinities import Affinity
    >>> class Near(Affinity):
    ...     def _reduce(self, X, y):
    ...         values, item_of, counts = np.unique(y, return_inverse=True, return_counts=True)
    ...         return self._features(values), item_of, counts
    ...     def _features(self, new):
    ...         return np.asarray(new, dtype=np.float32)[:, None]
    ...     def _values(self, a, b):
    ...         return (1 - abs(a - b.T)).clip(-1, 1)
    >>> Near().fit(y=[0.0, 0.5, 0.5, 2.0]).matrix()
    array([[ 1. ,  0.5, -1. ],
           [ 0.5,  1. , -0.5],
           [-1. , -0.5,  1. ]], dtype=float32)
    """

    low_rank: bool = False
    not_saved: tuple[str, ...] = ("item_of_",)

    _sample_weight: np.ndarray | None = None  # of the instances, while `fit` runs
    features_: np.ndarray
    counts_: np.ndarray
    item_of_: np.ndarray
    n_items_: int

    def fit(self, X: Any = None, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Reduce instances to items.

        Parameters
        ----------
        X : array-like of shape (n, d), optional
            Features, for affinities that read them.
        y : array-like of shape (n,) or (n, n_labels), optional
            Classes or 0/1 labels, for affinities that read them.
        sample_weight : array-like of shape (n,), optional
            Weights of the instances, which `counts_` then sums and means of features use.

        Returns
        -------
        self : Affinity
        """
        if sample_weight is not None:
            self._sample_weight = np.asarray(sample_weight, dtype=np.float64)
        try:
            features, self.item_of_, self.counts_ = self._reduce(X, y)
            if self._sample_weight is not None:
                self.counts_ = np.bincount(self.item_of_, self._sample_weight, minlength=len(self.counts_))
        finally:
            self.__dict__.pop("_sample_weight", None)
        self.features_ = features
        self.n_items_ = len(self.counts_)
        self._on_device: dict[str, Any] = {}
        if self.n_items_ < 2:
            raise ValueError(
                f"{type(self).__name__} found {self.n_items_} item; a neighbourhood needs at least two different "
                "ones (two classes, two label rows, two instances)."
            )
        return self

    def _reduce(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _features(self, new: Any) -> np.ndarray:
        raise NotImplementedError

    def _values(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def find(self, new: ArrayLike) -> np.ndarray:
        """Look up new items among the known ones.

        Parameters
        ----------
        new : array-like of length m
            Classes, label rows or feature vectors, as `fit` reads them.

        Returns
        -------
        items : ndarray of shape (m,)
            Index of the equal known item, or -1.
        """
        features = self._features(new)
        known = {row.tobytes(): index for index, row in enumerate(self.features_)}
        return np.array([known.get(row.tobytes(), -1) for row in features], dtype=np.int64)

    def cross(self, new: ArrayLike, *, device: str = "auto") -> np.ndarray:
        """Affinities of m new items to all known ones.

        Parameters
        ----------
        new : array-like of length m
            Classes, label rows or feature vectors, as `fit` reads them.
        device : {"auto", "cpu", "cuda"}, default="auto"
            Device that computes the pairs.

        Returns
        -------
        affinities : ndarray of shape (m, n_items), float32
        """
        features = send(self._features(new), pick_device(device))
        return to_numpy(self._values(features, self._tensor(device)))

    def block(self, rows: Items = slice(None), columns: Items = slice(None), *, device: str = "auto") -> np.ndarray:
        """Values of R at the given rows and columns (index arrays or slices), as a float32 array."""
        return to_numpy(self.block_on(pick_device(device), rows, columns))

    def block_on(self, device: str, rows: Items = slice(None), columns: Items = slice(None)) -> Any:
        """Values of R at the given rows and columns, as a tensor that stays on the device."""
        features = self._tensor(device)
        a, b = features[rows], features[columns]
        with threads_for(2 * a.shape[0] * a.shape[1] * b.shape[0]):
            return self._values(a, b)

    def diagonal(self) -> np.ndarray:
        """R_ii of every item, float64."""
        step = 256
        blocks = (slice(start, start + step) for start in range(0, self.n_items_, step))
        return np.concatenate([np.diagonal(self.block(rows, rows)) for rows in blocks]).astype(np.float64)

    def matrix(self, *, device: str = "cpu") -> np.ndarray:
        """All of R as a dense float32 array.

        Parameters
        ----------
        device : {"auto", "cpu", "cuda"}, default="cpu"
            Device that computes the pairs.

        Returns
        -------
        affinity : ndarray of shape (n_items, n_items), float32

        Raises
        ------
        ValueError
            If the matrix needs more than 80 % of the available memory.
        """
        needed = 4 * self.n_items_**2
        if needed > 0.8 * available_memory():
            raise ValueError(
                f"The dense affinity of {self.n_items_:,} items takes {needed / 2**30:,.1f} GiB, more than this "
                "machine has free. Pass the affinity object itself to `infer_codes`, which works in blocks, or set "
                "`max_items` of HBMP."
            )
        out = np.empty((self.n_items_, self.n_items_), dtype=np.float32)
        for rows in self.row_blocks():
            out[rows] = self.block(rows, device=device)
        return out

    def matmul(self, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R @ vectors in blocks of pairs, without all of R. Both have shape (n_items, k)."""
        features = self._tensor(device)
        right = send(np.ascontiguousarray(vectors, dtype=np.float32), features.device)
        parts = [self._values(features[rows], features) @ right for rows in self.row_blocks()]
        return np.concatenate([to_numpy(part) for part in parts])

    def times_columns(self, columns: np.ndarray, vectors: np.ndarray, *, device: str = "auto") -> np.ndarray:
        """R[:, columns] @ vectors for a few columns; vectors have shape (len(columns), k)."""
        features = self._tensor(device)
        right = send(np.ascontiguousarray(vectors, dtype=np.float32), features.device)
        return to_numpy(self._values(features, features[columns]) @ right)

    def squared_norm(self, item_weights: np.ndarray, *, device: str = "auto") -> float:
        """Σ_ij c_i c_j R_ij², the squared norm of R under item weights c."""
        features = self._tensor(device)
        total = 0.0
        for rows in self.row_blocks():
            squares = to_numpy(self._values(features[rows], features) ** 2)
            total += float(item_weights[rows] @ (squares @ item_weights.astype(np.float32)).astype(np.float64))
        return total

    def _tensor(self, device: str) -> Any:
        """The item features as a tensor, moved to the device once."""
        device = pick_device(device)
        if device not in self._on_device:
            self._on_device[device] = send(self.features_, device)
        return self._on_device[device]

    def row_blocks(self) -> list[slice]:
        """Slices of rows such that one block of R with all columns takes at most 64 MiB."""
        step = max(1, _BLOCK_BYTES // (4 * self.n_items_))
        return [slice(start, min(start + step, self.n_items_)) for start in range(0, self.n_items_, step)]

    def after_load(self) -> None:
        """Set attributes that a saved model does not contain."""
        self._on_device = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_on_device": {}}


def need_labels(affinity: Affinity, y: Any) -> Any:
    """Return y, or raise ValueError if it is None."""
    if y is None:
        raise ValueError(f"{type(affinity).__name__} needs labels: pass y, or use affinity='distance_levels'.")
    return y


def each_instance(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(item_of, counts) if every instance is a separate item."""
    return np.arange(n), np.ones(n, dtype=np.int64)
