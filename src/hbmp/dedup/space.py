"""The space in which near-duplicates are compared: unit vectors with a shrunk covariance divided out.

    x    vectors   (n, d)   of length one, less their mean
    C    covariance         of x, with eigenvectors V and eigenvalues λ of mean λ̄
    z    rows      (n, d)   x V (λ + s λ̄)^(-1/2), scaled to length one

Vectors of an encoder spread over few directions, in which even unrelated items are close. Divided by the covariance,
unrelated items are nearly orthogonal and their similarity z_i · z_j scatters evenly around 0, so that what is left of
it is specific to a pair. The shrinkage s keeps directions without variance from being blown up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SHRINKAGE = 0.3
_MOST_ROWS = 20_000  # that the covariance is taken from
_BLOCK = 8192


class Space:
    """Mean and axes, learned from rows of features.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features; a memory map is read in parts.
    random_state : int, default=0
        Seed of the rows that are used, of large sets.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.dedup.space import Space
    >>> X = np.random.default_rng(0).standard_normal((50, 4)) + 10
    >>> rows = Space(X).rows(X)
    >>> rows.shape, bool(np.allclose(np.linalg.norm(rows.astype(np.float32), axis=1), 1, atol=1e-3))
    ((50, 4), True)
    """

    def __init__(self, X: Any, *, random_state: int = 0):
        n = len(X)
        chosen = np.arange(n)
        if n > _MOST_ROWS:
            chosen = np.sort(np.random.default_rng(random_state).choice(n, _MOST_ROWS, replace=False))
        units = _units(X[chosen])
        self._mean = units.mean(axis=0)
        units -= self._mean
        values, axes = np.linalg.eigh((units.T @ units / max(1, n)).astype(np.float64))
        values = np.maximum(values, 0)
        scales = (values + max(SHRINKAGE * values.mean(), 1e-12)) ** -0.5
        self._axes = (axes * scales).astype(np.float32)

    def rows(self, X: Any) -> NDArray[np.float16]:
        """Rows of length one; a row without direction, such as that of an empty text, is 0."""
        found = np.empty((len(X), self._axes.shape[1]), np.float16)
        for start in range(0, len(X), _BLOCK):
            block = (_units(X[start : start + _BLOCK]) - self._mean) @ self._axes
            found[start : start + _BLOCK] = _units(block)
        return found


def _units(X: Any) -> NDArray[np.float32]:
    rows = np.array(X, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    return rows
