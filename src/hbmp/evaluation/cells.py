"""One method at one code length: fit, encode, score, and measure the model's size; and all of them, some in parallel.

A method that raises leaves its reason in its result, and the others continue. With a budget of settings, the same for
every method, the grid in its class attribute `search` is validated on a held-out part of the training rows.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.evaluation.choice import MethodRun, build, choose, own_score
from hbmp.evaluation.first_results import FirstResults, first_results
from hbmp.evaluation.trial import Trial
from hbmp.hasher import Hasher


@dataclass(frozen=True)
class MethodResult:
    """Measurements of one method at one code length.

    Parameters
    ----------
    method : str
        Name in tables.
    bits : int
        Code length.
    scores : dict of str to float, default={}
        Scores by name, as in `hbmp.protocols`: "map", "map.tie-aware", "map.weighted", "ndcg-shared", …
    fit_seconds : float, default=None
        Wall-clock time of fitting.
    encode_rows_per_second : float, default=None
        Rows of the database encoded per second.
    model_bytes : int, default=None
        Size of the saved model.
    settings : dict, default={}
        Settings that validation chose instead of the defaults.
    tried : int, default=0
        Number of settings validated.
    default_scores : dict of str to float, default={}
        Readings with the defaults, if validation chose other settings.
    error : str, default=""
        Reason of a failure.
    curve : dict of str to list, default={}
        Mean "precision" and "recall" among the first "rank" items, by the method's own distance.
    first : FirstResults, default=None
        Measures of the first ten results.

    Examples
    --------
    >>> from hbmp.evaluation import MethodResult
    >>> MethodResult("ITQ", 16, scores={"map": 0.5, "map.tie-aware": 0.49}).score()
    0.49
    """

    method: str
    bits: int
    scores: dict[str, float] = field(default_factory=dict)
    fit_seconds: float | None = None
    encode_rows_per_second: float | None = None
    model_bytes: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    tried: int = 0
    default_scores: dict[str, float] = field(default_factory=dict)
    error: str = ""
    curve: dict[str, list[float]] = field(default_factory=dict)
    first: FirstResults | None = None

    def score(self, measure: str = "map") -> float | None:
        """The tie-aware score by the method's own distance, weighted if it has weights.

        Parameters
        ----------
        measure : str, default="map"
            Name of the measure.

        Returns
        -------
        float or None
            The score, or None without one.
        """
        return own_score(self.scores, measure)

    def default_score(self, measure: str = "map") -> float | None:
        """The same score with the method's defaults: `score` itself if validation kept them.

        Parameters
        ----------
        measure : str, default="map"
            Name of the measure.

        Returns
        -------
        float or None
            The score, or None without one.
        """
        return own_score(self.default_scores if self.settings else self.scores, measure)


def run(trial: Trial, cells: Sequence[MethodRun], jobs: int) -> Iterator[tuple[int, MethodResult, Hasher | None]]:
    """(number of the run, result, model if kept) in order of completion; with `jobs` > 1 in separate processes."""
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
        reason = "A process died before this finished, perhaps out of memory. Run it with one job."
        for number in sorted(waiting):
            yield number, MethodResult(cells[number].label, cells[number].bits, error=reason), None


def _numbered(number: int, trial: Trial, cell: MethodRun) -> tuple[int, MethodResult, Hasher | None]:
    """The measurement with the number of its run."""
    return number, *measure(trial, cell)


def measure(trial: Trial, cell: MethodRun) -> tuple[MethodResult, Hasher | None]:
    """The result of one run, and its model if kept."""
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401  imported before timing starts, or the first method that needs it would pay

    try:
        return _measure(trial, cell)
    except Exception as error:  # the result of a method holds whatever went wrong in it
        reason = " ".join(str(error).split()) or type(error).__name__
        known = isinstance(error, (ValueError, LookupError, ImportError)) and not isinstance(error, KeyError)
        return MethodResult(cell.label, cell.bits, error=reason if known else f"{type(error).__name__}: {reason}"), None


def _measure(trial: Trial, cell: MethodRun) -> tuple[MethodResult, Hasher | None]:
    settings, tried = choose(trial, cell)
    default_scores = _scores(build(cell, {}).fit(trial.train, trial.train_labels), trial) if settings else {}
    model = build(cell, settings)
    start = time.perf_counter()
    model.fit(trial.train, trial.train_labels)
    fit_seconds = time.perf_counter() - start
    database_codes, encode_seconds = _encode(model, trial.database)
    query_codes = model.transform(trial.queries)
    scores, curve = trial.scores_with_curve(query_codes, database_codes, model.bit_weights_)
    row = MethodResult(
        cell.label,
        cell.bits,
        scores=scores,
        fit_seconds=fit_seconds,
        encode_rows_per_second=len(database_codes) / max(encode_seconds, 1e-9),
        model_bytes=_saved_bytes(model),
        settings=settings,
        tried=tried,
        default_scores=default_scores,
        curve=curve,
        first=first_results(trial, query_codes, database_codes, model.bit_weights_, model),
    )
    return row, model if cell.keep else None


def _scores(model: Hasher, trial: Trial) -> dict[str, float]:
    """Scores of a fitted model."""
    return trial.scores(model.transform(trial.queries), model.transform(trial.database), model.bit_weights_)


def _encode(model: Hasher, features: Any) -> tuple[NDArray[np.int8], float]:
    """The codes, and the seconds of the fastest of a few calls, because a first call also loads and warms up."""
    seconds: list[float] = []
    while len(seconds) < 5 and sum(seconds) < 0.5:
        start = time.perf_counter()
        codes = model.transform(features)
        seconds.append(time.perf_counter() - start)
    return codes, min(seconds)


def _saved_bytes(model: Hasher) -> int | None:
    """Size of the saved model; None for a user's own class, which is not saved."""
    if not type(model).__module__.startswith("hbmp."):
        return None
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return sum(path.stat().st_size for path in (Path(folder) / "model").iterdir())
