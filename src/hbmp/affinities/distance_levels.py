"""Neighbours by distance, in levels: the nearest 2 % of all pairs are closest, then 5, 10 and 20 %.

Percentiles of the distances between training instances are the thresholds; the level of a pair is inversely
proportional to the percentile it falls under (10, 4, 2, 1 for 2, 5, 10, 20 %; 0 beyond), scaled to [-1, 1]. This
is the paper's LabelMe neighbourhood. The released code rounds the levels to 10, 5, 2, 1: pass those as `levels`.
"""

from __future__ import annotations

import numpy as np

from hbmp._core.device import to_torch
from hbmp.affinities._shared.base import Affinity, each_instance


class DistanceLevels(Affinity):
    """Multi-level affinity from distances between feature vectors. Items: the instances.

    Parameters
    ----------
    percentiles : increasing percentages of pairs, the thresholds
    levels : value of each percentile, or None for inversely proportional ones
    metric : "euclidean" (default) or "cosine"
    sample : how many instances the thresholds are measured on, at most
    random_state : seed of that sample
    """

    def __init__(self, *, percentiles=(2, 5, 10, 20), levels=None, metric="euclidean", sample=5000, random_state=0):
        self.percentiles = percentiles
        self.levels = levels
        self.metric = metric
        self.sample = sample
        self.random_state = random_state

    def _reduce(self, X, y):
        if X is None:
            raise ValueError("DistanceLevels reads feature vectors: pass X.")
        if self.metric not in ("euclidean", "cosine"):
            raise ValueError(f"metric must be 'euclidean' or 'cosine', found {self.metric!r}.")
        features = np.asarray(X, dtype=np.float32)
        if features.ndim != 2 or not np.isfinite(features).all():
            raise ValueError(f"X must be an (n, d) matrix of finite numbers; found shape {features.shape}.")
        self.center_ = features.mean(axis=0) if self.metric == "euclidean" else np.zeros(features.shape[1], np.float32)
        features = self._features(features)
        self.thresholds_, self.values_ = self._thresholds(features), self._level_values()
        return (features, *each_instance(len(features)))

    def _features(self, new) -> np.ndarray:
        rows = np.asarray(new, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != len(self.center_):
            raise ValueError(f"The affinity knows vectors of {len(self.center_)} numbers; found shape {rows.shape}.")
        if self.metric == "euclidean":
            return rows - self.center_  # distances do not change, their rounding errors shrink
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    def _values(self, a, b):
        import torch

        thresholds, values = to_torch(self.thresholds_, a.device), to_torch(self.values_, a.device)
        return values[torch.bucketize(_squared_distances(a, b), thresholds)]

    def diagonal(self) -> np.ndarray:
        """An item lies at distance 0 from itself: the highest level."""
        return np.full(self.n_items_, float(self.values_[0]))

    def _thresholds(self, features: np.ndarray) -> np.ndarray:
        """Squared distances under which the given percentages of pairs lie."""
        shares = np.asarray(self.percentiles, dtype=float)
        if shares.ndim != 1 or (np.diff(shares) <= 0).any() or shares.min() <= 0 or shares.max() > 100:
            raise ValueError(f"percentiles must increase within (0, 100], found {self.percentiles!r}.")
        if len(features) > self.sample:
            rng = np.random.default_rng(self.random_state)
            features = features[rng.choice(len(features), self.sample, replace=False)]
        rows = to_torch(features, "cpu")
        pairs = _squared_distances(rows, rows).numpy()[np.triu_indices(len(features), k=1)]
        if pairs.size == 0 or pairs.max() == 0:
            raise ValueError("All instances are the same: no distance tells them apart.")
        return np.percentile(pairs, shares).astype(np.float32)

    def _level_values(self) -> np.ndarray:
        """Affinity below each threshold and, last, beyond all of them."""
        shares = np.asarray(self.percentiles, dtype=float)
        levels = shares[-1] / shares if self.levels is None else np.asarray(self.levels, dtype=float)
        if levels.shape != shares.shape or (np.diff(levels) >= 0).any() or levels[-1] <= 0:
            raise ValueError(f"levels must fall, stay above 0 and match the percentiles; found {self.levels!r}.")
        return np.append(2 * levels / levels[0] - 1, -1.0).astype(np.float32)


def _squared_distances(a, b):
    """‖a_i - b_j‖², all pairs, never below 0."""
    return (a.square().sum(1)[:, None] + b.square().sum(1)[None, :] - 2 * (a @ b.T)).clamp(min=0)
