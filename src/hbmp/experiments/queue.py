"""Cells one by one on one device within a time limit, while other processes score the codes.

Training keeps the GPU busy and scoring keeps the cores busy, so the next cell trains while the last one is scored.
Cells that share a training (prefixes of one long code) are trained once. Every line is written as soon as it is
scored, and finished cells are left out. A queue that ran out of time therefore resumes when it is started again.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic as _now
from typing import Any

import numpy as np

from hbmp import hamming
from hbmp._core.device import pick_device
from hbmp._core.files import beside
from hbmp.experiments import provenance, records, running, store
from hbmp.experiments.cells import Cell, Place
from hbmp.experiments.codes import Codes
from hbmp.experiments.running import Folder
from hbmp.experiments.store import Record
from hbmp.experiments.workers import start_worker
from hbmp.methods import make_method
from hbmp.protocols import Split


@dataclass
class Outcome:
    """Result of a queue.

    Parameters
    ----------
    finished : list of Cell, default=[]
        Cells with a current result.
    left : list of Cell, default=[]
        Cells that the time did not suffice for.
    failed : list of (Cell, Exception), default=[]
        Cells that failed, with their errors.

    Examples
    --------
    >>> from hbmp.experiments.queue import Outcome
    >>> Outcome().left
    []
    """

    finished: list[Cell] = field(default_factory=list)
    left: list[Cell] = field(default_factory=list)
    failed: list[tuple[Cell, Exception]] = field(default_factory=list)


def run_queue(
    cells: Sequence[Cell],
    *,
    minutes: float | None = None,
    results: Folder = "results",
    data_dir: Folder | None = None,
    device: str = "auto",
    compile: bool = False,
    scorers: int = 2,
    keep_codes: bool = False,
    refresh: bool = False,
    progress: bool = True,
) -> Outcome:
    """Run cells in order, and begin none that the remaining time does not suffice for.

    Parameters
    ----------
    cells : sequence of Cell
        What to run.
    minutes : float, default=None
        Time limit, or None for no limit. Cells that were trained in time are scored to the end.
    results : str or Path, default="results"
        Folder of results.
    data_dir : str or Path, default=None
        Data directory.
    device : str, default="auto"
        "auto", "cpu" or "cuda".
    compile : bool, default=False
        Whether to compile networks, which pays off from a few minutes of training on.
    scorers : int, default=2
        Number of processes that score.
    keep_codes : bool, default=False
        Whether to write the codes of each training to `results/codes/<key>.npz`, for figures.
    refresh : bool, default=False
        Whether to run stale cells again.
    progress : bool, default=True
        Whether to print one line per training and scoring on stderr.

    Returns
    -------
    Outcome
        Finished, remaining and failed cells.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import Cell
    >>> from hbmp.experiments.queue import run_queue
    >>> cell = Cell("lsh", "cifar-1", "digits", 8, protocol_params={"train_per_class": 10, "query_per_class": 4})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_queue([cell], minutes=0, results=folder, device="cpu", progress=False).left == [cell]
    True
    """
    began, device = _now(), pick_device(device)
    keys = {record["key"] for record in running.load_results(results) if not _must_run(record, refresh)}
    distinct = {cell.key: cell for cell in cells}
    outcome = Outcome(finished=[cell for key, cell in distinct.items() if key in keys])
    groups = _by_training([cell for key, cell in distinct.items() if key not in keys])
    show = partial(print, file=sys.stderr, flush=True) if progress else _show_nothing
    context = multiprocessing.get_context("spawn")  # CUDA and thread pools do not survive a fork
    setup = (context.Value("i", 0), scorers, os.getpid())
    pace = 0.0  # seconds per image of the previous training
    scored: list[tuple[Cell, Future[Any]]] = []
    with ProcessPoolExecutor(scorers, mp_context=context, initializer=start_worker, initargs=setup) as pool:
        for number, (whole, members) in enumerate(groups, start=1):
            start = _now()
            title = f"[{number}/{len(groups)}] {_short(whole)}"
            try:
                place = Place(whole, data_dir)
                work = _work(whole, place)
                if minutes is not None and start - began + pace * work > 60 * minutes:
                    outcome.left += members
                    continue  # a shorter training may still fit
                place.save_split(results)
                changes = {"function__compile": True} if compile else {}
                codes, method = running.train(whole, place, device, **changes)
                if keep_codes:
                    save_codes(Path(results) / "codes" / f"{whole.key}.npz", codes, place.split)
                for cell in members:
                    mine, origin = running.cut(codes, method, cell), records.made_by(method, cell, device)
                    future = pool.submit(_score, cell, mine, origin, results, data_dir)
                    future.add_done_callback(partial(_show_score, cell, show))
                    scored.append((cell, future))
            except Exception as error:
                outcome.failed += [(cell, error) for cell in members]
                show(f"{title}: failed: {error}")
                continue
            took = _now() - start
            pace = took / work
            show(f"{title}: {took:.1f} s, {codes.facts.get('images_per_second', {})} images per second")
    for cell, future in scored:
        wrong = future.exception()
        if wrong is None:
            outcome.finished.append(cell)
        else:
            outcome.failed.append((cell, RuntimeError(str(wrong))))
    return outcome


def save_codes(path: Path, codes: Codes, split: Split) -> None:
    """Write packed codes of queries and database, their rows in the data, and the bit weights.

    Parameters
    ----------
    path : Path
        An `.npz` file.
    codes : Codes
        The codes.
    split : Split
        Query and database rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hbmp.experiments import Codes
    >>> from hbmp.experiments.queue import save_codes
    >>> from hbmp.protocols import Split
    >>> signs, rows = np.ones((3, 8), dtype=np.int8), np.arange(3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_codes(Path(folder) / "codes.npz", Codes(signs, signs, np.ones(8)), Split(rows, rows, rows))
    ...     np.load(Path(folder) / "codes.npz")["database"].shape
    (3, 1)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with beside(path) as part, open(part, "wb") as file:
        np.savez_compressed(
            file,
            query=hamming.pack(codes.query),
            database=hamming.pack(codes.database),
            query_rows=split.query.astype(np.int32),
            database_rows=split.database.astype(np.int32),
            bit_weights=codes.bit_weights,
            n_bits=codes.query.shape[1],
        )


def _must_run(record: Record, refresh: bool) -> bool:
    return not running.is_current(record) or (refresh and provenance.is_stale(record))


def _by_training(cells: list[Cell]) -> list[tuple[Cell, list[Cell]]]:
    """Cells grouped by training, in the order of the first cell of each group."""
    groups: dict[str, tuple[Cell, list[Cell]]] = {}
    for cell in cells:
        groups.setdefault(cell.whole.key, (cell.whole, []))[1].append(cell)
    return list(groups.values())


def _work(cell: Cell, place: Place) -> float:
    """Cost of a cell, in images trained on once; encoding an image costs about a third of that."""
    method = make_method(cell.method, cell.bits, cell.params, seed=cell.seed, device="cpu")
    epochs = getattr(getattr(method, "function", None), "epochs", 1)
    split = place.split
    return len(split.train) * epochs + (len(split.query) + len(split.database)) / 3


def _score(cell: Cell, codes: Codes, origin: Record, results: Folder, data_dir: Folder | None) -> dict[str, float]:
    """Score codes in a separate process and write the line."""
    record = records.record(cell, Place(cell, data_dir), codes, origin)
    store.append(Path(results) / f"{cell.protocol}.jsonl", record)
    scores: dict[str, float] = record["scores"]
    return scores


def _show_score(cell: Cell, show: Callable[[str], None], future: Future[dict[str, float]]) -> None:
    """Print the scores of a finished cell."""
    if future.cancelled() or future.exception() is not None:
        show(f"    {_short(cell)}: not scored")
        return
    scores = {name: value for name, value in future.result().items() if name.startswith("map") and "@" not in name}
    show(f"    {_short(cell)}: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.items()))


def _short(cell: Cell) -> str:
    """A label without the settings of the network, which are the same for all."""
    settings = {key: value for key, value in cell.params.items() if key != "function"}
    codes = "" if cell.codes == "function" else f", {cell.codes}"
    return f"{cell.method} {settings or ''} {cell.protocol}, {cell.bits} bits, seed {cell.seed}{codes}"


def _show_nothing(_: str) -> None:
    """Print nothing."""
