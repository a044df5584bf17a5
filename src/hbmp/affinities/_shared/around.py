"""What affinities around another affinity share: its items, its features first, then columns of their own."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from hbmp._core import catalog
from hbmp._core.labels import is_label_matrix
from hbmp.affinities._shared.base import Affinity


class Around(Affinity):
    """An affinity on the items of `base`, which says what an item is; `share` is how much it is changed."""

    base: object
    share: float
    base_: Affinity

    def find(self, new) -> np.ndarray:
        """The known item that equals each new one by its labels, or -1."""
        return self.base_.find(new)

    def _fit_base(self, X, y) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must lie between 0 and 1, found {self.share!r}.")
        if self.base == "auto":
            base = catalog.resolve("affinities", "shared_labels" if is_label_matrix(y) else "same_class")
        else:
            base = clone(catalog.resolve("affinities", self.base))
        self.base_ = base.fit(X, y)
        self.n_base_ = self.base_.features_.shape[1]

    def _joined(self, base_features, own) -> np.ndarray:
        """What the base knows of the items, then the columns of this affinity."""
        return np.concatenate([base_features, own], axis=1, dtype=np.float32, casting="unsafe")

    def _base_values(self, a, b):
        return self.base_._values(self._base_part(a), self._base_part(b))

    def _base_part(self, features):
        """What the base knows, in the type it knows it in."""
        part = features[:, : self.n_base_]
        return part.long() if self.base_.features_.dtype.kind in "iu" else part
