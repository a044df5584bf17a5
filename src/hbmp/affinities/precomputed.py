"""A neighbourhood given as a matrix: affinities in [-1, 1], or distances mapped by 1 - 2 d / d_max."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hbmp._core.device import send
from hbmp.affinities._shared.base import Affinity, Items, each_instance


class Precomputed(Affinity):
    """A given symmetric matrix over the instances. Every instance is an item.

    Parameters
    ----------
    kind : {"affinity", "distance"}, default="affinity"
        Content of the matrix. Distances are mapped to affinities by 1 - 2 d / d_max (HBMP Eq. 2).

    Attributes
    ----------
    values_ : ndarray of shape (n_items, n_items)
        The affinities.
    d_max_ : float
        The largest distance, if `kind="distance"`.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.affinities import Precomputed
    >>> distances = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 3.0], [4.0, 3.0, 0.0]])
    >>> Precomputed(kind="distance").fit(distances).matrix()
    array([[ 1. ,  0.5, -1. ],
           [ 0.5,  1. , -0.5],
           [-1. , -0.5,  1. ]])
    """

    def __init__(self, *, kind: str = "affinity"):
        self.kind = kind

    def _reduce(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.kind not in ("affinity", "distance"):
            raise ValueError(f"kind must be 'affinity' or 'distance', found {self.kind!r}.")
        matrix = np.asarray(X)
        if self.kind == "affinity":
            self.values_ = check_affinity(matrix)
        else:
            self.values_, self.d_max_ = from_distances(matrix)
        return (np.arange(len(matrix))[:, None], *each_instance(len(matrix)))

    def find(self, new: ArrayLike) -> np.ndarray:
        """-1 for every item: a row of affinities does not identify a known item."""
        return np.full(len(np.asarray(new)), -1, dtype=np.int64)

    def cross(self, new: ArrayLike, *, device: str = "auto") -> np.ndarray:
        """Affinities of new items, which are given by their values to every known item, shape (m, n_items)."""
        rows = np.asarray(new, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_items_ or not np.isfinite(rows).all():
            raise ValueError(
                f"A new item is a row of {self.n_items_} finite values, one per known item; found shape {rows.shape}."
            )
        return (1 - 2 * rows / self.d_max_ if self.kind == "distance" else rows).astype(np.float32)

    def block(self, rows: Items = slice(None), columns: Items = slice(None), *, device: str = "auto") -> np.ndarray:
        """The given values at these rows and columns, in their own precision."""
        return self.values_[rows][:, columns]

    def block_on(self, device: str, rows: Items = slice(None), columns: Items = slice(None)) -> Any:
        """The given values at these rows and columns, as a single-precision tensor on the device."""
        return send(np.ascontiguousarray(self.values_[rows][:, columns], dtype=np.float32), device)

    def matrix(self, *, device: str = "cpu") -> np.ndarray:
        """The matrix itself, which is in memory already."""
        return self.values_

    def _values(self, a: Any, b: Any) -> Any:
        return send(np.asarray(self.values_, np.float32), a.device)[a[:, 0]][:, b[:, 0]]


def check_affinity(matrix: np.ndarray) -> np.ndarray:
    """Return a symmetric finite matrix in [-1, 1] as floats; raise ValueError for any other."""
    values = _check_square(matrix, "An affinity")
    low, high = float(values.min()), float(values.max())
    if low < -1 - 1e-6 or high > 1 + 1e-6:
        raise ValueError(
            f"An affinity holds values from -1 (apart) to 1 (close); found {low:.4g} to {high:.4g}. "
            "Scale it, or pass distances with Precomputed(kind='distance')."
        )
    return values


def from_distances(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """Distances as affinities by 1 - 2 d / d_max, and d_max."""
    distances = _check_square(matrix, "A distance matrix")
    if distances.min() < 0:
        raise ValueError(f"Distances are never negative; found {float(distances.min()):.4g}.")
    largest = float(distances.max())
    if largest == 0:
        raise ValueError("All distances are 0: all items are equal.")
    return 1 - 2 * distances / largest, largest  # HBMP Eq. 1, 2: γ = 1/d_max, R = 1 - 2γd; HBMP Alg. 1, line 1


def _check_square(matrix: np.ndarray, what: str) -> np.ndarray:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{what} is a square matrix, items by items; found shape {matrix.shape}.")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{what} holds numbers; found values of type {matrix.dtype}.")
    values: np.ndarray = matrix.astype(np.float32 if matrix.dtype == np.float32 else np.float64)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"{what} must be finite; found {values[row, column]} at row {row}, column {column}.")
    gap = np.abs(values - values.T)
    if gap.max(initial=0) > 1e-6 * max(1.0, np.abs(values).max(initial=0)):
        row, column = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ValueError(
            f"{what} must be symmetric; found {values[row, column]:.6g} at ({row}, {column}) but "
            f"{values[column, row]:.6g} at ({column}, {row})."
        )
    return values
