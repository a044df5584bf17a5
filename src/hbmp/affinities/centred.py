"""Affinities with a fraction of each item's mean affinity removed, for labels that nearly all items have.

A common label makes its items neighbours of half the collection. Most of what the first bits could explain is then
how common an item is, which orders no ranking. Removing the whole mean (the double centring of classical scaling)
would discard that common items have many neighbours. Removing a fraction helps short codes where one label is very
common.

    R      base      (items, items)
    c      fractions (items,)          of the instances in each item, Σ c_i = 1
    m      means     (items,)          R c
    μ      mean                        cᵀ m
    s      share

                R_ij - s (m_i + m_j - μ), clipped to [-1, 1]

Past the paper, like `MeanFeatures`: docs/lab-log.md has the measurements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp.affinities._shared.around import Around
from hbmp.affinities._shared.base import Affinity, need_labels


class Centred(Around):
    """Label affinity with a fraction of each item's mean affinity removed.

    Parameters
    ----------
    base : "auto", str or Affinity, default="auto"
        The affinity to centre, by name or as an object that reads labels. "auto" is `SameClass` for classes and
        `SharedLabels` for multi-label data.
    share : float, default=0.5
        Fraction of the mean affinity to remove, from 0 to 1.

    Attributes
    ----------
    base_ : Affinity
        The fitted base.
    mean_ : float
        Mean of the base over all pairs of instances.

    Examples
    --------
    The first label is everywhere; after centring it contributes less.

    >>> from hbmp.affinities import Centred
    >>> labels = [[1, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]]
    >>> Centred(share=0.5).fit(y=labels).matrix().round(2)
    array([[ 1.  , -1.  ,  0.75, -1.  ],
           [-1.  ,  0.75,  0.5 ,  0.75],
           [ 0.75,  0.5 ,  0.25,  0.5 ],
           [-1.  ,  0.75,  0.5 ,  0.75]], dtype=float32)
    """

    def __init__(self, base: str | Affinity = "auto", *, share: float = 0.5):
        self.base = base
        self.share = share

    def _reduce(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._fit_base(X, need_labels(self, y))
        counts = self.base_.counts_
        self.instance_shares_ = (counts / counts.sum()).astype(np.float32)
        means = self.base_.matmul(self.instance_shares_[:, None])
        self.mean_ = float(self.instance_shares_ @ means[:, 0])
        return self._joined(self.base_.features_, means), self.base_.item_of_, counts

    def _features(self, new: Any) -> np.ndarray:
        means = self.base_.cross(new) @ self.instance_shares_
        return self._joined(self.base_._features(new), means[:, None])

    def _values(self, a: Any, b: Any) -> Any:
        means = a[:, self.n_base_ :] + b[:, self.n_base_ :].T
        return (self._base_values(a, b) - self.share * (means - self.mean_)).clip(-1, 1)
