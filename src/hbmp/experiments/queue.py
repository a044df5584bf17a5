"""Cells one after the other on one device, for as long as there is time; codes are scored in processes beside it.

Training keeps a GPU busy and scoring keeps cores busy, so the next cell trains while the last one is scored. Cells that
share a training (prefixes of one long code) are trained once. Every line is written as soon as it is scored, and cells
that are in the results already are left out, so a queue that ran out of time goes on when it is started again.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic as _now

import numpy as np

from hbmp import experiments, hamming
from hbmp._core import machine
from hbmp._core.device import pick_device
from hbmp.experiments import Cell, Place, store
from hbmp.experiments.codes import Codes, make_method


@dataclass
class Outcome:
    """What a queue did: cells in the results, cells there was no time for, and cells that failed with their errors."""

    finished: list[Cell] = field(default_factory=list)
    left: list[Cell] = field(default_factory=list)
    failed: list[tuple[Cell, Exception]] = field(default_factory=list)


def run_queue(
    cells: Sequence[Cell],
    *,
    minutes: float | None = None,
    results="results",
    data_dir=None,
    device: str = "auto",
    compile: bool = False,
    scorers: int = 2,
    keep_codes: bool = False,
    progress: bool = True,
) -> Outcome:
    """Run the cells in their order, and begin none that the time would not suffice for.

    minutes : how long to go on; None for as long as it takes. The last cells are scored to the end
    compile : compile the networks, which pays off from a few minutes of training on
    scorers : processes that score
    keep_codes : write the codes of each training to `results/codes/<key>.npz` as well, for figures
    """
    began, device = _now(), pick_device(device)
    keys = {record["key"] for record in experiments.load_results(results) if experiments.is_current(record)}
    distinct = {cell.key: cell for cell in cells}
    outcome = Outcome(finished=[cell for key, cell in distinct.items() if key in keys])
    groups = _by_training([cell for key, cell in distinct.items() if key not in keys])
    tell = partial(print, file=sys.stderr, flush=True) if progress else _silent
    context = multiprocessing.get_context("spawn")  # CUDA and thread pools do not survive a fork
    setup = (context.Value("i", 0), scorers, os.getpid())
    pace = 0.0  # seconds an image, of the training before
    scored: list[tuple[Cell, Future]] = []
    with ProcessPoolExecutor(
        scorers, mp_context=context, initializer=experiments._start_worker, initargs=setup
    ) as pool:
        for number, (whole, members) in enumerate(groups, start=1):
            start = _now()
            title = f"[{number}/{len(groups)}] {_short(whole)}"
            try:
                place = Place(whole, data_dir)
                work = _work(whole, place)
                if minutes is not None and start - began + pace * work > 60 * minutes:
                    outcome.left += members
                    continue  # a shorter one may still fit
                place.save_split(results)
                changes = {"function__compile": True} if compile else {}
                codes, method = experiments.train(whole, place, device, **changes)
                about = experiments.settings_of(method), device, machine.describe(device)
                if keep_codes:
                    save_codes(Path(results) / "codes" / f"{whole.key}.npz", codes, place.split)
                for cell in members:
                    future = pool.submit(_score, cell, experiments.cut(codes, method, cell), about, results, data_dir)
                    future.add_done_callback(partial(_tell_score, cell, tell))
                    scored.append((cell, future))
            except Exception as error:
                outcome.failed += [(cell, error) for cell in members]
                tell(f"{title}: failed: {error}")
                continue
            took = _now() - start
            pace = took / work
            tell(f"{title}: {took:.1f} s, {codes.facts.get('images_per_second', {})} images a second")
    for cell, future in scored:
        wrong = future.exception()
        if wrong is None:
            outcome.finished.append(cell)
        else:
            outcome.failed.append((cell, RuntimeError(str(wrong))))
    return outcome


def save_codes(path: Path, codes: Codes, split) -> None:
    """Packed codes of queries and database, their rows in the data, and the bit weights: small enough to keep."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}")
    np.savez_compressed(
        beside,
        query=hamming.pack(codes.query),
        database=hamming.pack(codes.database),
        query_rows=split.query.astype(np.int32),
        database_rows=split.database.astype(np.int32),
        bit_weights=codes.bit_weights,
        n_bits=codes.query.shape[1],
    )
    beside.replace(path)


def _by_training(cells: list[Cell]) -> list[tuple[Cell, list[Cell]]]:
    """Cells that share a training together, in the order of the first of each."""
    groups: dict[str, tuple[Cell, list[Cell]]] = {}
    for cell in cells:
        groups.setdefault(cell.whole.key, (cell.whole, []))[1].append(cell)
    return list(groups.values())


def _work(cell: Cell, place: Place) -> float:
    """How much a cell asks for, in images trained on once; encoding an image costs about a third of that."""
    method = make_method(cell.method, cell.bits, cell.params, seed=cell.seed, device="cpu")
    epochs = getattr(getattr(method, "function", None), "epochs", 1)
    split = place.split
    return len(split.train) * epochs + (len(split.query) + len(split.database)) / 3


def _score(cell: Cell, codes: Codes, about: tuple, results, data_dir) -> dict:
    """Score codes in a process of its own and write the line."""
    record = experiments.record(cell, Place(cell, data_dir), codes, *about)
    store.append(Path(results) / f"{cell.protocol}.jsonl", record)
    return record["scores"]


def _tell_score(cell: Cell, tell, future: Future) -> None:
    if future.cancelled() or future.exception() is not None:
        tell(f"    {_short(cell)}: not scored")
        return
    scores = {name: value for name, value in future.result().items() if name.startswith("map") and "@" not in name}
    tell(f"    {_short(cell)}: " + ", ".join(f"{name} {value:.4f}" for name, value in scores.items()))


def _short(cell: Cell) -> str:
    """A label without the recipe of the network, which is the same for all."""
    settings = {key: value for key, value in cell.params.items() if key != "function"}
    codes = "" if cell.codes == "function" else f", {cell.codes}"
    return f"{cell.method} {settings or ''} {cell.protocol}, {cell.bits} bits, seed {cell.seed}{codes}"


def _silent(*_) -> None:
    """Tell nothing."""
