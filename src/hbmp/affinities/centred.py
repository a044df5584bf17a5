"""Label sets that are close to nearly all others say little by it: a part of every item's mean affinity is taken off.

A common label makes its carriers neighbours of half the collection. Most of what the first bits could explain is then
how common an item is, which orders no ranking. Taking off all of it (the double centring of classical scaling) would
forget that common items have many neighbours; a part of it helps short codes where one label is very common.

    R      base      (items, items)
    c      shares    (items,)          of the instances that carry an item, Σ c_i = 1
    m      means     (items,)          R c
    μ      mean                        cᵀ m
    s      share

                R_ij - s (m_i + m_j - μ), within [-1, 1]

Past the paper, beside mean features (docs/beyond-the-paper.md).
"""

from __future__ import annotations

import numpy as np

from hbmp.affinities._shared.around import Around
from hbmp.affinities._shared.base import need_labels


class Centred(Around):
    """What labels say, less a share of how close each item is to all. Items: those of `base`.

    Parameters
    ----------
    base : "auto" (classes: same_class, label sets: shared_labels), a name from `hbmp.affinities` or an object from
        there that reads labels
    share : how much of the means is taken off, 0 to 1
    """

    def __init__(self, base="auto", *, share: float = 0.5):
        self.base = base
        self.share = share

    def _reduce(self, X, y):
        self._fit_base(X, need_labels(self, y))
        counts = self.base_.counts_
        self.instance_shares_ = (counts / counts.sum()).astype(np.float32)
        means = self.base_.matmul(self.instance_shares_[:, None])
        self.mean_ = float(self.instance_shares_ @ means[:, 0])
        return self._joined(self.base_.features_, means), self.base_.item_of_, counts

    def _features(self, new) -> np.ndarray:
        means = self.base_.cross(new) @ self.instance_shares_
        return self._joined(self.base_._features(new), means[:, None])

    def _values(self, a, b):
        means = a[:, self.n_base_ :] + b[:, self.n_base_ :].T
        return (self._base_values(a, b) - self.share * (means - self.mean_)).clamp(-1, 1)
