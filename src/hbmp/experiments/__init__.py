"""One cell of a table: method × protocol × data × bits × seed → one JSON line with all that is needed to run it again.

A cell that is in the results already is not run again, so a grid that was interrupted goes on where it stopped; only
where a default of its method has changed since does it run again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

import hbmp
from hbmp import datasets, protocols
from hbmp._core import machine
from hbmp._core.device import pick_device
from hbmp.experiments import store
from hbmp.experiments.codes import Codes, first_bits, learned_codes, make_method, takes_images, target_codes

CODES = ("function", "target", "target-all")
_PREFIX = "prefix of "


@dataclass(frozen=True)
class Cell:
    """What to run.

    params : settings of the method, as JSON has them: {"scheme": "constant", "function": ["mlp", {"hidden": [512]}]}
    protocol_params : settings of the protocol, where they are not its own
    codes : "function" (fit, then encode), or as an oracle "target": target codes from the labels, with a code book
        of the training items, "target-all": of all items; "prefix of 48": the first bits of codes of 48, which are
        nested, weighted for their own length
    """

    method: str
    protocol: str
    data: str
    bits: int
    seed: int = 0
    params: dict = field(default_factory=dict)
    protocol_params: dict = field(default_factory=dict)
    codes: str = "function"

    def __post_init__(self):
        if self.codes not in CODES and not (self.codes.startswith(_PREFIX) and self.codes[len(_PREFIX) :].isdigit()):
            known = ", ".join(map(repr, CODES))
            raise ValueError(f"codes must be one of {known}, or '{_PREFIX}48'; found {self.codes!r}.")

    @property
    def key(self) -> str:
        """Sixteen hex digits that stand for exactly this cell."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """The cell in a few words, for progress and errors."""
        settings = ", ".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.method}({settings}) {self.protocol} on {self.data}, {self.bits} bits, seed {self.seed}"

    @property
    def whole(self) -> Cell:
        """The cell that trains the codes: itself, or that of the long codes whose first bits it takes."""
        if not self.codes.startswith(_PREFIX):
            return self
        return replace(self, bits=int(self.codes[len(_PREFIX) :]), codes="function")


def run(cell: Cell, *, results="results", data_dir=None, device: str = "auto") -> dict:
    """Run a cell and append its record to `results/<protocol>.jsonl`; a cell already there is read, not run."""
    path = Path(results) / f"{cell.protocol}.jsonl"
    found = store.newest(store.read(path)).get(cell.key)
    if found is not None and is_current(found):
        return found
    measured = measure(cell, results=results, data_dir=data_dir, device=device)
    store.append(path, measured)
    return measured


def is_current(record: dict) -> bool:
    """Whether the defaults of the record's method are still those it was made with."""
    cell = Cell(**record["cell"]).whole
    method = make_method(cell.method, cell.bits, cell.params, seed=cell.seed, device="cpu")
    return store.same_settings(record, settings_of(method))


def measure(cell: Cell, *, results="results", data_dir=None, device: str = "auto") -> dict:
    """Run a cell and return its record; the split goes to `results/splits/`, the record nowhere."""
    device = pick_device(device)
    place = Place(cell, data_dir)
    place.save_split(results)
    codes, method = train(cell.whole, place, device)
    codes = cut(codes, method, cell)
    return record(cell, place, codes, settings_of(method), device, machine.describe(device))


class Place:
    """Where a cell is measured: its protocol, its data and the split it draws."""

    def __init__(self, cell: Cell, data_dir=None):
        self.protocol = protocols.get(cell.protocol, **cell.protocol_params)
        self.data = _load(cell.data, str(datasets.data_dir(data_dir)))
        self.split = self.protocol.split(self.data, cell.seed)
        self._name = f"{cell.protocol}-{cell.data}-{cell.seed}"

    def save_split(self, results) -> None:
        """Keep the split under `results/splits/`, for whoever runs the cell elsewhere."""
        _save_split(self.split, Path(results) / "splits", self._name)


def train(cell: Cell, place: Place, device: str, **changes) -> tuple[Codes, object]:
    """The codes of a cell and the fitted method; changes: settings of how it runs, such as function__compile."""
    method = make_method(cell.method, cell.bits, cell.params, seed=cell.seed, device=device).set_params(**changes)
    labels = place.protocol.labels(place.data)
    if cell.codes == "function":
        images = takes_images(method)
        inputs = place.data.images if images else place.protocol.features(place.data, place.split)
        return learned_codes(method, inputs, labels, place.split), method
    items = "train" if cell.codes == "target" else "all"
    return target_codes(method, labels, place.split, items=items, seed=cell.seed), method


def cut(codes: Codes, method, cell: Cell) -> Codes:
    """What the cell takes of the codes that its training gave: all, or their first bits."""
    if cell.whole is cell:
        return codes
    if not hasattr(method, "codebook_"):
        raise ValueError(f"Only codes of a code book are nested, so {cell.method} has no prefix. Use codes='function'.")
    return first_bits(codes, method, cell.bits)


def settings_of(method) -> dict:
    """All settings of a method as JSON has them."""
    return _as_json(method.get_params(deep=True))


def run_all(
    cells: Sequence[Cell], *, jobs: int = 1, results="results", data_dir=None, device: str = "auto", progress=True
) -> list[dict]:
    """Run all cells that are not in the results yet, `jobs` at a time in processes of their own; records in order.

    Each process writes its own finished cells, so nothing finished is lost when any of them is killed. A cell that
    fails does not stop the others; the error at the end names the first.
    """
    options = {"results": results, "data_dir": data_dir, "device": device}
    finished = store.newest(load_results(results))
    distinct = {cell.key: cell for cell in cells}
    waiting = [cell for key, cell in distinct.items() if key not in finished or not is_current(finished[key])]
    failures: list[tuple[Cell, Exception]] = []
    for number, (cell, error) in enumerate(_outcomes(waiting, jobs, options), start=1):
        if error is not None:
            failures.append((cell, error))
        if progress:
            outcome = "done" if error is None else f"failed: {error}"
            print(f"[{number}/{len(waiting)}] {cell.label}: {outcome}", file=sys.stderr, flush=True)
    if failures:
        cell, error = failures[0]
        raise RuntimeError(
            f"{len(failures)} of {len(waiting)} cells failed, all others are in {results}. "
            f"The first: {cell.label}: {error}"
        ) from error
    records = store.newest(load_results(results))
    return [records[cell.key] for cell in cells]


def load_results(results="results") -> list[dict]:
    """The newest record of every cell under a results folder."""
    cells = [record for record in store.read_all(results) if "cell" in record]
    return list(store.newest(cells).values())


def _outcomes(cells, jobs: int, options: dict):
    """(cell, its error or None) of each cell as it ends."""
    if jobs <= 1:
        for cell in cells:
            yield cell, _try(cell, options)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    context = multiprocessing.get_context("spawn")  # CUDA and thread pools do not survive a fork
    numbers = context.Value("i", 0)
    setup = (numbers, jobs, os.getpid())
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=setup) as pool:
        futures = {pool.submit(_try, cell, options): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], future.exception() or future.result()  # the first where its process died


def _try(cell: Cell, options: dict) -> Exception | None:
    try:
        run(cell, **options)
    except Exception as error:
        return error
    return None


def _start_worker(numbers, jobs: int, parent: int) -> None:
    """Give each process its own share of the cores, and end it when its parent is gone."""
    with numbers.get_lock():
        number, numbers.value = numbers.value, numbers.value + 1
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        mine = cores[number % jobs :: jobs] or [cores[number % len(cores)]]
        os.sched_setaffinity(0, mine)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)  # a killed parent cannot end its pool, and the pool would wait for ever

    threading.Thread(target=watch, daemon=True).start()


@lru_cache(maxsize=2)
def _load(name: str, folder: str):
    return datasets.load(name, folder)


def _save_split(split, folder: Path, name: str) -> None:
    path = folder / f"{name}-{split.checksum}.npz"
    if path.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{name}-{os.getpid()}.npz"
    split.save(beside)
    beside.replace(path)


def record(cell: Cell, place: Place, codes: Codes, settings: dict, device: str, made_on: dict) -> dict:
    """Score the codes of a cell; the line that the results keep of it."""
    protocol, data, split = place.protocol, place.data, place.split
    start = time.perf_counter()
    scores, curve = protocol.evaluate_with_curve(
        codes.query, codes.database, data, split, bit_weights=codes.bit_weights, query_scores=codes.query_scores
    )
    seconds = {**codes.seconds, "evaluate": time.perf_counter() - start}
    return {
        "key": cell.key,
        "cell": asdict(cell),
        "settings": settings,
        "scores": _as_json({name: round(float(value), 6) for name, value in scores.items()}),
        "curve": curve,
        **_as_json(codes.facts),
        "split": {
            "checksum": split.checksum,
            "train": len(split.train),
            "query": len(split.query),
            "database": len(split.database),
        },
        "data": {"checksum": data.checksum(), "rows": len(data), "stand_in_for": data.stand_in_for},
        "caption": protocol.caption,
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "device": device,
        "machine": made_on,
        "versions": {"hbmp": hbmp.__version__, **machine.versions()},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _as_json(value):
    """Values as JSON has them; an object becomes its class name, its own settings stand beside it."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_as_json(item) for item in value]
    if isinstance(value, np.generic):
        return _as_json(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else type(value).__name__
