"""Stages one and two: who should be close, and the target codes that say so (HBMP Eq. 1 to 10).

Each candidate is an affinity of the labels, mixed with how alike the mean features of classes or label sets are, and
the code book that the pursuit infers from it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hbmp._core.progress import parts
from hbmp._training.resuming import kept
from hbmp.affinities import Affinity
from hbmp.affinities.mean_features import MeanFeatures
from hbmp.images import is_images
from hbmp.methods._shared.weights import weighted_fit
from hbmp.methods.hbmp.plan import Plan, TargetSettings
from hbmp.pursuit import infer_codes
from hbmp.pursuit.codebook import CodeBook


@dataclass(frozen=True)
class Target:
    """Codes that a hash function may learn, and what they were inferred from."""

    settings: TargetSettings
    affinity: Affinity
    book: CodeBook  # with the plan's extra bits
    rows: np.ndarray | None = None  # the instances that count; all of the affinity's where None

    @property
    def item_of(self) -> np.ndarray:
        """The row of each instance in the code book, (n,)."""
        return self.affinity.item_of_ if self.rows is None else self.affinity.item_of_[self.rows]

    def of_rows(self, rows: np.ndarray) -> Target:
        """The same target for some of the instances."""
        return replace(self, rows=rows)

    def first_bits(self, n_bits: int) -> Target:
        """The same target with the first bits of its codes."""
        return self if n_bits == self.book.n_bits else replace(self, book=self.book.prefix(n_bits))


def pursue(plan: Plan, X: Any, y: Any, seed: int, weights: np.ndarray | None = None) -> list[Target]:
    """The candidates for the target codes, one for each of `plan.target_settings()`; weights: of the instances."""
    settings = plan.target_settings()
    if plan.function is not None and is_images(X) and any(each.feature_share for each in settings):
        X = plan.function.pretrained_features(X)
    mixed = None
    if plan.affinity is not None and any(each.feature_share for each in settings):  # candidates differ in a number
        mixed = weighted_fit(MeanFeatures(plan.affinity), X, y, sample_weight=weights)
    return [_target(plan, each, _affinity(plan, each, X, y, weights, mixed), seed) for each in parts(settings)]


def infer(plan: Plan, affinity: Affinity, seed: int, *, intercept: bool = False) -> CodeBook:
    """The code book of one fitted affinity."""
    how = {
        "n_bits": plan.n_label_bits + plan.extra_bits,
        "intercept": intercept,
        "random_state": seed,
        **plan.inference,
    }

    def compute() -> CodeBook:
        return replace(infer_codes(affinity, tol=0, **how), affinity=None)

    return replace(kept(compute, affinity, how), affinity=affinity)


def shrink(weights: np.ndarray, share: float) -> np.ndarray:
    """Weights between equal ones and these; the equal ones are their mean, or the mean of their sizes where it is not
    positive, because a distance must grow with every bit that differs."""
    level = weights.mean()
    if level <= 0:
        level = np.abs(weights).mean() or 1.0
    return share * weights + (1 - share) * level


def _target(plan: Plan, settings: TargetSettings, affinity: Affinity, seed: int) -> Target:
    return Target(settings, affinity, infer(plan, affinity, seed, intercept=settings.intercept))


def _affinity(
    plan: Plan, settings: TargetSettings, X: Any, y: Any, weights: np.ndarray | None, mixed: MeanFeatures | None
) -> Affinity:
    """The affinity of one candidate, fitted."""
    assert plan.affinity is not None
    if mixed is None or not settings.feature_share:
        return weighted_fit(copy(plan.affinity), X, y, sample_weight=weights)
    return copy(mixed).set_params(share=settings.feature_share)
