"""One method at one code length: fit, encode, score, weigh; and all of them, some at a time.

A method that raises leaves its reason in its row, and the others go on. With a budget of settings, the same for every
method, those a method offers in its class attribute `search` are tried on a held-out part of the training rows.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from hbmp.evaluation.trial import Trial
from hbmp.hasher import Hasher, get_method
from hbmp.methods import make_method


@dataclass(frozen=True)
class MethodRun:
    """What to measure: `method` is a name, or an estimator whose settings are kept; `label` is what tables call it.

    keep : hand back the fitted model too
    """

    label: str
    method: str | Hasher
    bits: int
    seed: int
    device: str
    budget: int
    keep: bool = False


@dataclass(frozen=True)
class MethodResult:
    """What was measured of one method at one code length; `error` says why there is nothing, where it failed.

    scores : by name, as in `hbmp.protocols`: "map", "map.tie-aware", "map.weighted", "ndcg-shared", …
    curve : mean "precision" and "recall" among the first "rank" items, by the method's own distance
    settings : those that the search chose in place of defaults · tried : how many settings it tried
    """

    method: str
    bits: int
    scores: dict[str, float] = field(default_factory=dict)
    fit_seconds: float | None = None
    encode_rows_per_second: float | None = None
    model_bytes: int | None = None
    settings: dict = field(default_factory=dict)
    tried: int = 0
    error: str = ""
    curve: dict[str, list] = field(default_factory=dict)

    def score(self, measure: str = "map") -> float | None:
        """By the method's own distance, weighted where it has weights, as the mean over all orders of tied items."""
        readings = (f"{measure}.weighted.tie-aware", f"{measure}.tie-aware")
        return next((self.scores[name] for name in readings if name in self.scores), None)


def run(trial: Trial, cells: Sequence[MethodRun], jobs: int) -> Iterator[tuple[int, MethodResult, Hasher | None]]:
    """(number of the cell, its row, its model if kept) as each ends; with `jobs` > 1 in processes of their own."""
    if jobs <= 1:
        yield from (_numbered(number, trial, cell) for number, cell in enumerate(cells))
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    waiting = set(range(len(cells)))
    calls = (delayed(_numbered)(number, trial, cell) for number, cell in enumerate(cells))
    try:
        for number, row, model in Parallel(jobs, return_as="generator_unordered")(calls):
            waiting.discard(number)
            yield number, row, model
    except TerminatedWorkerError:
        reason = "A process died, perhaps for want of memory, before this was done. Run it with one job."
        for number in sorted(waiting):
            yield number, MethodResult(cells[number].label, cells[number].bits, error=reason), None


def _numbered(number: int, trial: Trial, cell: MethodRun) -> tuple[int, MethodResult, Hasher | None]:
    return number, *measure(trial, cell)


def measure(trial: Trial, cell: MethodRun) -> tuple[MethodResult, Hasher | None]:
    """The row of one cell, and its model where that is kept."""
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401  loaded before the clock starts, so that its import counts for no method

    try:
        return _measure(trial, cell)
    except Exception as error:  # whatever went wrong in one method is told in its row
        reason = " ".join(str(error).split()) or type(error).__name__
        known = isinstance(error, (ValueError, LookupError, ImportError)) and not isinstance(error, KeyError)
        return MethodResult(cell.label, cell.bits, error=reason if known else f"{type(error).__name__}: {reason}"), None


def _measure(trial: Trial, cell: MethodRun) -> tuple[MethodResult, Hasher | None]:
    settings, tried = _choose(trial, cell)
    model = _build(cell, settings)
    start = time.perf_counter()
    model.fit(trial.train, trial.train_labels)
    fit_seconds = time.perf_counter() - start
    database_codes, encode_seconds = _encode(model, trial.database)
    scores, curve = trial.scores_with_curve(model.transform(trial.queries), database_codes, model.bit_weights_)
    row = MethodResult(
        cell.label,
        cell.bits,
        scores=scores,
        fit_seconds=fit_seconds,
        encode_rows_per_second=len(database_codes) / max(encode_seconds, 1e-9),
        model_bytes=_saved_bytes(model),
        settings=settings,
        tried=tried,
        curve=curve,
    )
    return row, model if cell.keep else None


def _encode(model: Hasher, features: np.ndarray) -> tuple[np.ndarray, float]:
    """The codes, and the seconds of the quickest of a few calls, since a first call also loads and warms up."""
    seconds: list[float] = []
    while len(seconds) < 5 and sum(seconds) < 0.5:
        start = time.perf_counter()
        codes = model.transform(features)
        seconds.append(time.perf_counter() - start)
    return codes, min(seconds)


def _choose(trial: Trial, cell: MethodRun) -> tuple[dict, int]:
    """The settings that score best on held-out training rows, and how many were tried; none without a budget."""
    candidates = _candidates(cell)
    if len(candidates) == 1:
        return {}, 0
    inner = trial.within_training(cell.seed)
    best: tuple[float, dict] = (-np.inf, {})
    for settings in candidates:
        try:
            model = _build(cell, settings).fit(inner.train, inner.train_labels)
            codes = model.transform(inner.queries), model.transform(inner.database)
            row = MethodResult(cell.label, cell.bits, scores=inner.scores(*codes, model.bit_weights_))
        except ValueError:  # settings that do not go with these data are passed over
            continue
        score = row.score(inner.measures[0].name)
        if score is not None and score > best[0]:
            best = score, settings
    return best[1], len(candidates)


def _candidates(cell: MethodRun) -> list[dict]:
    """The defaults, then others from the method's own grid in seeded order, `budget` in all."""
    method = get_method(cell.method)() if isinstance(cell.method, str) else cell.method
    own = method.get_params(deep=False)
    others = [settings for settings in ParameterGrid(method.search) if not _holds(own, settings)]
    order = np.random.default_rng(cell.seed).permutation(len(others))
    return [{}, *(others[place] for place in order)][: max(1, cell.budget)]


def _holds(own: dict, settings: dict) -> bool:
    """Whether a method has these settings already, so that the first candidate is not tried twice."""
    return all(name in own and np.array_equal(own[name], value) for name, value in settings.items())


def _build(cell: MethodRun, settings: dict) -> Hasher:
    if isinstance(cell.method, str):
        return make_method(cell.method, cell.bits, settings, seed=cell.seed, device=cell.device)
    method = clone(cell.method).set_params(n_bits=cell.bits, **settings)
    if method.get_params().get("random_state", 0) is None:
        method.set_params(random_state=cell.seed)
    return method


def _saved_bytes(model: Hasher) -> int | None:
    """What the saved model weighs; None for a class of somebody else's, which is not saved."""
    if not type(model).__module__.startswith("hbmp."):
        return None
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return sum(path.stat().st_size for path in (Path(folder) / "model").iterdir())
