"""Which settings a method is compared with: its defaults, or the best of a budget on held-out training rows.

The defaults come first, then settings from the method's own grid, its class attribute `search`, in seeded order. The
last two of a budget of `LEAST` or more go to the learning rate: a third and three times the usual one, each with the
best settings so far. So a deep method is not judged by a learning rate that suits another loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from hbmp.evaluation.trial import Trial
from hbmp.hasher import Hasher, get_method
from hbmp.methods import make_method, make_piece

RATES = (1 / 3, 3.0)
LEAST = 4  # settings from which on learning rates are among them


@dataclass(frozen=True)
class MethodRun:
    """What to measure: one method at one code length.

    Parameters
    ----------
    label : str
        Name in tables.
    method : str or Hasher
        Name of a method, or an estimator whose settings are kept.
    bits : int
        Code length.
    seed : int
        Seed of the method.
    device : str
        "cpu" or "cuda".
    budget : int
        Number of settings to validate; 0 for the defaults.
    keep : bool, default=False
        Whether to return the fitted model.

    Examples
    --------
    >>> from hbmp.evaluation import MethodRun
    >>> MethodRun("ITQ", "itq", 16, seed=0, device="cpu", budget=0).bits
    16
    """

    label: str
    method: str | Hasher
    bits: int
    seed: int
    device: str
    budget: int
    keep: bool = False


def own_score(scores: Mapping[str, float], measure: str) -> float | None:
    """The tie-aware reading by the method's own distance, weighted if it has weights; None without one."""
    readings = (f"{measure}.weighted.tie-aware", f"{measure}.tie-aware")
    return next((scores[name] for name in readings if name in scores), None)


def choose(trial: Trial, cell: MethodRun) -> tuple[dict[str, Any], int]:
    """The settings that score best on held-out training rows, and how many were validated; none without a budget."""
    rates = len(learning_rates(cell, len(trial.train))) if cell.budget >= LEAST else 0
    to_try = settings_to_try(cell, cell.budget - rates)
    if len(to_try) + rates == 1:
        return {}, 0
    inner = trial.within_training(cell.seed)
    best = max(_validated(inner, cell, to_try), key=lambda found: found[0], default=(-np.inf, {}))
    faster = [{**best[1], **rate} for rate in learning_rates(cell, len(inner.train))[:rates]]
    best = max([best, *_validated(inner, cell, faster)], key=lambda found: found[0])
    return best[1], len(to_try) + rates


def _validated(inner: Trial, cell: MethodRun, to_try: list[dict[str, Any]]) -> Iterator[tuple[float, dict[str, Any]]]:
    """(score, settings) of each; settings that do not apply to these data are skipped."""
    for settings in to_try:
        try:
            model = build(cell, settings).fit(inner.train, inner.train_labels)
            codes = model.transform(inner.queries), model.transform(inner.database)
            score = own_score(inner.scores(*codes, model.bit_weights_), inner.measures[0].name)
        except ValueError:
            continue
        if score is not None and np.isfinite(score):
            yield score, settings


def settings_to_try(cell: MethodRun, budget: int) -> list[dict[str, Any]]:
    """The defaults, then others from the method's own grid in seeded order, `budget` in all."""
    method = _given(cell)
    own = method.get_params(deep=False)
    others = [settings for settings in ParameterGrid(method.search) if not _holds(own, settings)]
    order = np.random.default_rng(cell.seed).permutation(len(others))
    return [{}, *(others[place] for place in order)][: max(1, budget)]


def learning_rates(cell: MethodRun, n_rows: int) -> list[dict[str, Any]]:
    """Settings with other learning rates, for a method of one loss whose hash function is "auto"; else none."""
    make: Callable[[int, float], dict[str, Any] | None] = getattr(_given(cell), "with_learning_rate", _none)
    found = [make(n_rows, factor) for factor in RATES]
    return [settings for settings in found if settings is not None]


def build(cell: MethodRun, settings: dict[str, Any]) -> Hasher:
    """The method with these settings, not fitted."""
    if isinstance(cell.method, str):
        return make_method(cell.method, cell.bits, settings, seed=cell.seed, device=cell.device)
    pieces = {name: make_piece("functions", value) if name == "function" else value for name, value in settings.items()}
    method: Hasher = clone(cell.method).set_params(n_bits=cell.bits, **pieces)
    if method.get_params().get("random_state", 0) is None:
        method.set_params(random_state=cell.seed)
    return method


def _given(cell: MethodRun) -> Hasher:
    return get_method(cell.method)() if isinstance(cell.method, str) else cell.method


def _none(n_rows: int, factor: float) -> None:
    """Most methods are not trained by gradients."""


def _holds(own: dict[str, Any], settings: dict[str, Any]) -> bool:
    """Whether a method already has these settings, so that the defaults are not validated twice."""
    return all(name in own and np.array_equal(own[name], value) for name, value in settings.items())
