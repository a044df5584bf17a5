"""Affinities that modify another affinity: its items and feature columns, then its own feature columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from hbmp._core import catalog
from hbmp._core.device import as_int64
from hbmp._core.labels import is_label_matrix
from hbmp.affinities._shared.base import Affinity


class Around(Affinity):
    """Affinity on the items of `base`; `share` is the weight of the modification."""

    base: Any
    share: float
    base_: Affinity
    n_base_: int

    def find(self, new: ArrayLike) -> np.ndarray:
        """Index of the known item with the labels of each new one, or -1."""
        return self.base_.find(new)

    def _fit_base(self, X: Any, y: Any) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must lie between 0 and 1, found {self.share!r}.")
        if isinstance(self.base, str) and self.base == "auto":
            base = catalog.resolve("affinities", "shared_labels" if is_label_matrix(y) else "same_class")
        else:
            base = clone(catalog.resolve("affinities", self.base))
        self.base_ = base.fit(X, y, sample_weight=self._sample_weight)
        self.n_base_ = self.base_.features_.shape[1]

    def _joined(self, base_features: np.ndarray, own: np.ndarray) -> np.ndarray:
        """The feature columns of the base, then the columns of this affinity."""
        return np.concatenate([base_features, own], axis=1, dtype=np.float32, casting="unsafe")

    def _base_values(self, a: Any, b: Any) -> Any:
        return self.base_._values(self._base_part(a), self._base_part(b))

    def _base_part(self, features: Any) -> Any:
        """The feature columns of the base, in their own type."""
        part = features[:, : self.n_base_]
        return as_int64(part) if self.base_.features_.dtype.kind in "iu" else part
