"""Principal axes of features, read a block of rows at a time, so that a memory-mapped source is never copied whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hbmp.methods._shared.checks import need_spread

_LARGEST_POWER = 0.5  # of the variances: beyond half-whitening noise is what grows
_ROWS = 8192  # rows read at a time


def scaled_axes(X: np.ndarray, n_bits: int, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """(mean (d,), axes (d, m)): principal axes that vary, scaled so that the n_bits-th gains on the first."""
    mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    variances, components = np.linalg.eigh(_covariance(X, mean))
    variances, components = variances[::-1], components[:, ::-1][:, : min(4 * n_bits, *X.shape)]
    variances = variances[: components.shape[1]]
    kept = variances > 1e-5 * variances.max()
    variances, components = variances[kept] / variances.max(), components[:, kept]
    last = variances[min(n_bits, len(variances)) - 1]
    power = min(2 * np.log(gain) / -np.log(last), _LARGEST_POWER) if last < 1 else 0.0
    return mean, np.ascontiguousarray(components * variances ** (-power / 2), dtype=np.float32)


def in_parts(X: np.ndarray, function: Callable[..., Any], width: int) -> np.ndarray:
    """A function of the rows, float32 (n, width), a block of rows at a time."""
    found = np.empty((len(X), width), dtype=np.float32)
    for start in range(0, len(X), _ROWS):
        found[start : start + _ROWS] = function(np.asarray(X[start : start + _ROWS], dtype=np.float32))
    return found


def nearest_by_product(points: np.ndarray) -> np.ndarray:
    """The origin a (m,) from which inner products rank centred points y as distances do, as far as they can.

    A query q is near where q·y - ‖y‖²/2 is large. With ‖y‖²/2 ≈ a·y + constant, by least squares, that is (q - a)·y.
    Rows of unit length about a mean μ have a = -μ exactly, so that the product is the cosine.
    """
    lengths = np.square(points).sum(axis=1) / 2
    lengths -= lengths.mean()
    covariance = (points.T @ points).astype(np.float64) / len(points)
    ridge = 1e-3 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    origin = np.linalg.solve(covariance + ridge, points.T @ lengths / len(points))
    return origin.astype(np.float32)


def _covariance(X: Any, mean: np.ndarray) -> np.ndarray:
    """Covariance times the number of rows, float64."""
    total, varies = np.zeros((X.shape[1], X.shape[1])), False
    for start in range(0, len(X), _ROWS):
        centred = X[start : start + _ROWS] - mean
        varies = varies or bool(centred.any())
        total += centred.T @ centred
    if not varies:
        need_spread(np.zeros(1))
    return total
