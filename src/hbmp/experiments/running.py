"""Running cells: each finished cell is one JSON line with everything needed to run it again.

A cell that has a current line is not run again, so an interrupted grid resumes where it stopped. A cell runs again
when a default of its method has changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hbmp import protocols
from hbmp._core.device import pick_device
from hbmp.experiments import provenance, store
from hbmp.experiments.cells import Cell, Place
from hbmp.experiments.codes import Codes, first_bits, learned_codes, takes_images, target_codes
from hbmp.experiments.paper_setting import checkpoint_of, of_this_machine
from hbmp.experiments.records import made_by, record, settings_of
from hbmp.experiments.store import Record
from hbmp.experiments.workers import start_worker
from hbmp.hasher import Hasher
from hbmp.methods import make_method

Folder = str | os.PathLike[str]


def run(
    cell: Cell,
    *,
    results: Folder = "results",
    data_dir: Folder | None = None,
    device: str = "auto",
    refresh: bool = False,
) -> Record:
    """Run a cell and append its record to `results/<protocol>.jsonl`.

    Parameters
    ----------
    cell : Cell
        What to run.
    results : str or Path, default="results"
        Folder of results. A cell with a current line there is read, not run.
    data_dir : str or Path, default=None
        Data directory.
    device : str, default="auto"
        "auto", "cpu" or "cuda".
    refresh : bool, default=False
        Whether to run a stale cell again: one whose method has changed since.

    Returns
    -------
    dict
        The record.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import Cell, run
    >>> sizes = {"train_per_class": 10, "query_per_class": 4}
    >>> cell = Cell("lsh", "cifar-1", "digits", 16, protocol_params=sizes)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = run(cell, results=folder, device="cpu")
    >>> 0 < record["scores"]["map"] < 1
    True
    """
    path = Path(results) / f"{cell.protocol}.jsonl"
    found = store.newest(store.read(path)).get(cell.key)
    if found is not None and is_current(found) and not (refresh and provenance.is_stale(found)):
        return found
    measured = measure(cell, results=results, data_dir=data_dir, device=device)
    store.append(path, measured)
    shutil.rmtree(checkpoint_of(cell, results), ignore_errors=True)
    return measured


def is_current(record: Record) -> bool:
    """Whether a record was made with today's defaults of its method.

    Parameters
    ----------
    record : dict
        A result line.

    Returns
    -------
    bool
        False where a default has changed since. Changed source is a matter of `provenance.is_stale`.

    Examples
    --------
    >>> from dataclasses import asdict
    >>> from hbmp.experiments import Cell, is_current
    >>> is_current({"cell": asdict(Cell("itq", "cifar-1", "digits", 16)), "settings": {"n_iter": -1}})
    False
    """
    cell = Cell(**record["cell"]).whole
    method = make_method(cell.method, cell.bits, cell.params, seed=cell.seed, device="cpu")
    return store.same_settings(record, settings_of(method))


def measure(cell: Cell, *, results: Folder = "results", data_dir: Folder | None = None, device: str = "auto") -> Record:
    """Run a cell without writing its record; the split is saved under `results/splits/`.

    Parameters
    ----------
    cell : Cell
        What to run.
    results : str or Path, default="results"
        Folder of results.
    data_dir : str or Path, default=None
        Data directory.
    device : str, default="auto"
        "auto", "cpu" or "cuda".

    Returns
    -------
    dict
        The record.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import Cell, measure
    >>> sizes = {"train_per_class": 10, "query_per_class": 4}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = measure(Cell("lsh", "cifar-1", "digits", 16, protocol_params=sizes), results=folder, device="cpu")
    >>> record["split"]["train"]
    100
    """
    device = pick_device(device)
    place = Place(cell, data_dir)
    place.save_split(results)
    here = of_this_machine(cell, len(place.split.train), device, results=results, data_dir=data_dir)
    codes, method = train(cell.whole, place, device, **here)
    asked = make_method(cell.method, cell.whole.bits, cell.params, seed=cell.seed, device=device).get_params()
    origin = made_by(method.set_params(**{name: asked[name] for name in here}), cell, device)
    weights = here.get("function__backbone__pretrained")
    return record(cell, place, cut(codes, method, cell), origin | (_digest(weights) if weights else {}))


def train(cell: Cell, place: Place, device: str, **changes: Any) -> tuple[Codes, Hasher]:
    """Compute the codes of a cell.

    Parameters
    ----------
    cell : Cell
        The cell; of a prefix, its `whole`.
    place : Place
        Protocol, data and split.
    device : str
        "cpu" or "cuda".
    **changes
        Settings without an effect on scores, such as ``function__compile=True``.

    Returns
    -------
    codes : Codes
        Codes of queries and database.
    method : Hasher
        The method, fitted unless the codes are target codes.

    Examples
    --------
    >>> from hbmp.experiments import Cell, Place, train
    >>> sizes = {"train_per_class": 10, "query_per_class": 4}
    >>> cell = Cell("lsh", "cifar-1", "digits", 16, protocol_params=sizes)
    >>> train(cell, Place(cell), "cpu")[0].query.shape
    (40, 16)
    """
    method = make_method(cell.method, cell.bits, cell.params, seed=cell.seed, device=device).set_params(**changes)
    labels = place.protocol.labels(place.data)
    if cell.codes == "function":
        images = takes_images(method)
        inputs = place.data.images if images else place.protocol.features(place.data, place.split)
        return learned_codes(method, inputs, labels, place.split), method
    items = "train" if cell.codes == "target" else "all"
    return target_codes(method, labels, place.split, items=items, seed=cell.seed), method


def cut(codes: Codes, method: Hasher, cell: Cell) -> Codes:
    """Take the bits of a cell from the codes of its training.

    Parameters
    ----------
    codes : Codes
        Codes of `cell.whole`.
    method : Hasher
        The fitted method.
    cell : Cell
        The cell.

    Returns
    -------
    Codes
        All bits, or the first bits where the cell is a prefix.

    Examples
    --------
    >>> from hbmp.experiments import Cell, Place, cut, train
    >>> sizes = {"train_per_class": 10, "query_per_class": 4}
    >>> cell = Cell("lsh", "cifar-1", "digits", 16, protocol_params=sizes)
    >>> codes, method = train(cell, Place(cell), "cpu")
    >>> cut(codes, method, cell) is codes
    True
    """
    if cell.whole is cell:
        return codes
    if not hasattr(method, "codebook_"):
        raise ValueError(f"Only codes of a code book are nested, so {cell.method} has no prefix. Use codes='function'.")
    return first_bits(codes, method, cell.bits)


def run_all(
    cells: Sequence[Cell],
    *,
    jobs: int = 1,
    results: Folder = "results",
    data_dir: Folder | None = None,
    device: str = "auto",
    refresh: bool = False,
    progress: bool = True,
) -> list[Record]:
    """Run all cells that have no current result.

    Every process writes its own finished cells, so a kill loses no finished cell. A failing cell does not stop the
    others; the error at the end names the first.

    Parameters
    ----------
    cells : sequence of Cell
        What to run.
    jobs : int, default=1
        Number of processes.
    results : str or Path, default="results"
        Folder of results.
    data_dir : str or Path, default=None
        Data directory.
    device : str, default="auto"
        "auto", "cpu" or "cuda".
    refresh : bool, default=False
        Whether to run stale cells again.
    progress : bool, default=True
        Whether to print one line per finished cell on stderr.

    Returns
    -------
    list of dict
        The records in the order of the cells.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import Cell, run_all
    >>> sizes = {"train_per_class": 10, "query_per_class": 4}
    >>> cells = [Cell("lsh", "cifar-1", "digits", bits, protocol_params=sizes) for bits in (8, 16)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(run_all(cells, results=folder, device="cpu", progress=False))
    2
    """
    options = {"results": results, "data_dir": data_dir, "device": device, "refresh": refresh}
    finished = store.newest(load_results(results))
    distinct = {cell.key: cell for cell in cells}
    waiting = [cell for key, cell in distinct.items() if _must_run(finished.get(key), refresh)]
    failures: list[tuple[Cell, BaseException]] = []
    for number, (cell, error) in enumerate(_outcomes(waiting, jobs, options), start=1):
        if error is not None:
            failures.append((cell, error))
        if progress:
            outcome = "done" if error is None else f"failed: {error}"
            print(f"[{number}/{len(waiting)}] {cell.label}: {outcome}", file=sys.stderr, flush=True)
    if failures:
        cell, error = failures[0]
        raise RuntimeError(
            f"{len(failures)} of {len(waiting)} cells failed; all others are in {results}. "
            f"The first: {cell.label}: {error}"
        ) from error
    records = store.newest(load_results(results))
    return [records[cell.key] for cell in cells]


def load_results(results: Folder = "results") -> list[Record]:
    """Read the newest record of every cell.

    Parameters
    ----------
    results : str or Path, default="results"
        Folder of results.

    Returns
    -------
    list of dict
        The records.

    Examples
    --------
    >>> from hbmp.experiments import load_results
    >>> load_results("no/such/folder")
    []
    """
    files = [Path(results) / f"{name}.jsonl" for name in sorted(protocols.names())]  # others hold other measurements
    return list(store.newest([record for path in files for record in store.read(path)]).values())


def _digest(weights: str) -> Record:
    """The file of weights that a network started from."""
    with open(weights, "rb") as file:
        return {"weights": {"file": Path(weights).name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}}


def _must_run(found: Record | None, refresh: bool) -> bool:
    return found is None or not is_current(found) or (refresh and provenance.is_stale(found))


def _outcomes(cells: Sequence[Cell], jobs: int, options: dict[str, Any]) -> Iterator[tuple[Cell, BaseException | None]]:
    """(cell, its error or None) of each cell, in the order in which they finish."""
    if jobs <= 1:
        for cell in cells:
            yield cell, _try(cell, options)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    context = multiprocessing.get_context("spawn")  # CUDA and thread pools do not survive a fork
    setup = (context.Value("i", 0), jobs, os.getpid())
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=start_worker, initargs=setup) as pool:
        futures = {pool.submit(_try, cell, options): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], future.exception() or future.result()  # exception() is set if the process died


def _try(cell: Cell, options: dict[str, Any]) -> Exception | None:
    """The error of a cell, or None."""
    try:
        run(cell, **options)
    except Exception as error:
        return error
    return None
