"""Neighbours by distance, in levels: the nearest 2 % of all pairs are closest, then 5, 10 and 20 %.

Percentiles of the distances between training instances are the thresholds. The level of a pair is inversely
proportional to the percentile it falls under (10, 4, 2, 1 for 2, 5, 10, 20 %; 0 beyond), scaled to [-1, 1]. This is
the LabelMe neighbourhood of the paper. The released code rounds the levels to 10, 5, 2, 1: pass those as `levels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hbmp._core.device import level_of, send, to_numpy
from hbmp.affinities._shared.base import Affinity, each_instance


class DistanceLevels(Affinity):
    """Multi-level affinity from distances between feature vectors. Every instance is an item.

    Parameters
    ----------
    percentiles : sequence of float, default=(2, 5, 10, 20)
        Increasing percentages of pairs, which set the distance thresholds.
    levels : sequence of float, optional
        Decreasing value of each percentile. By default inversely proportional to it.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between vectors.
    sample : int, default=5000
        The most instances on which thresholds are measured.
    random_state : int, default=0
        Seed of that sample.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_levels,)
        Squared distance below which each level holds.
    values_ : ndarray of shape (n_levels + 1,)
        Affinity of each level and, last, beyond all thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.affinities import DistanceLevels
    >>> affinity = DistanceLevels(percentiles=(30, 70)).fit(np.array([[0.0], [1.0], [3.5], [7.0]]))
    >>> affinity.matrix().round(2)
    array([[ 1.  ,  1.  , -0.14, -1.  ],
           [ 1.  ,  1.  ,  1.  , -1.  ],
           [-0.14,  1.  ,  1.  , -0.14],
           [-1.  , -1.  , -0.14,  1.  ]], dtype=float32)
    """

    def __init__(
        self,
        *,
        percentiles: Sequence[float] = (2, 5, 10, 20),
        levels: Sequence[float] | None = None,
        metric: str = "euclidean",
        sample: int = 5000,
        random_state: int = 0,
    ):
        self.percentiles = percentiles
        self.levels = levels
        self.metric = metric
        self.sample = sample
        self.random_state = random_state

    def _reduce(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if X is None:
            raise ValueError("DistanceLevels needs feature vectors: pass X.")
        if self.metric not in ("euclidean", "cosine"):
            raise ValueError(f"metric must be 'euclidean' or 'cosine', found {self.metric!r}.")
        features = np.asarray(X, dtype=np.float32)
        if features.ndim != 2 or not np.isfinite(features).all():
            raise ValueError(f"X must be an (n, d) matrix of finite numbers; found shape {features.shape}.")
        self.center_ = features.mean(axis=0) if self.metric == "euclidean" else np.zeros(features.shape[1], np.float32)
        features = self._features(features)
        self.thresholds_, self.values_ = self._thresholds(features), self._level_values()
        return (features, *each_instance(len(features)))

    def _features(self, new: Any) -> np.ndarray:
        rows = np.asarray(new, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != len(self.center_):
            raise ValueError(
                f"The affinity was fitted on vectors of {len(self.center_)} numbers; found shape {rows.shape}."
            )
        if self.metric == "euclidean":
            return rows - self.center_  # distances do not change, their rounding errors shrink
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    def _values(self, a: Any, b: Any) -> Any:
        thresholds, values = send(self.thresholds_, a.device), send(self.values_, a.device)
        return values[level_of(_squared_distances(a, b), thresholds)]

    def diagonal(self) -> np.ndarray:
        """R_ii, which is the highest level: the distance is 0."""
        return np.full(self.n_items_, float(self.values_[0]))

    def _thresholds(self, features: np.ndarray) -> np.ndarray:
        """Squared distances that the given percentages of pairs fall below."""
        percentages = np.asarray(self.percentiles, dtype=float)
        increasing = percentages.ndim == 1 and (np.diff(percentages) > 0).all()
        if not increasing or percentages.min() <= 0 or percentages.max() > 100:
            raise ValueError(f"percentiles must increase within (0, 100], found {self.percentiles!r}.")
        if len(features) > self.sample:
            rng = np.random.default_rng(self.random_state)
            features = features[rng.choice(len(features), self.sample, replace=False)]
        rows = send(features, "cpu")
        pairs = to_numpy(_squared_distances(rows, rows))[np.triu_indices(len(features), k=1)]
        if pairs.size == 0 or pairs.max() == 0:
            raise ValueError("All instances are equal, so all distances are 0.")
        return np.percentile(pairs, percentages).astype(np.float32)

    def _level_values(self) -> np.ndarray:
        """Affinity below each threshold and, last, beyond all of them."""
        percentages = np.asarray(self.percentiles, dtype=float)
        levels = percentages[-1] / percentages if self.levels is None else np.asarray(self.levels, dtype=float)
        if levels.shape != percentages.shape or (np.diff(levels) >= 0).any() or levels[-1] <= 0:
            raise ValueError(f"levels must fall, stay above 0 and match the percentiles; found {self.levels!r}.")
        return np.append(2 * levels / levels[0] - 1, -1.0).astype(np.float32)


def _squared_distances(a: Any, b: Any) -> Any:
    """‖a_i - b_j‖² of all pairs, never below 0."""
    return ((a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * (a @ b.T)).clip(min=0)
