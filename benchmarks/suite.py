"""The development suite: methods and settings on real sets that differ, and what a choice costs where it had no say.

    python benchmarks/suite_data.py suite-data --shared DATA           the sets, once
    python benchmarks/suite.py run suite-data --jobs 16                hbmp and its rivals, 16, 32 and 64 bits
    python benchmarks/suite.py run suite-data --validation --variants settings.json --output variants.jsonl
    python benchmarks/suite.py report                                  ranks and margins of results/suite.jsonl
    python benchmarks/suite.py regret variants.jsonl                   leave-one-set-out regret of the variants
    python benchmarks/suite.py page                                    writes docs/suite.md

A cell is a set, a method with its settings, a code length, a seed. It is fitted in a process that keeps to one thread
and becomes one JSON line; cells that have a line are not run again. settings.json names variants of a method:
{"no bagging": {"bagging": false}, "linear": {"function": ["linear", {"epochs": 20}]}}. With --validation, queries and
new rows are split from the training rows, so that nothing is chosen by the queries that are reported.

    own         mAP over the database, learned and new rows, by the method's own distance
    real        the same with real-valued queries
    new_own     mAP over the new rows of the database alone; new_real with real-valued queries
    seconds     of the fit; cpu_seconds of all its threads

mAP is over the full ranking, ties averaged, so that weights gain nothing from breaking them; multi-label rows are
relevant to a query when they share a label with it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

import suite_report

METHODS = ("hbmp", "orthohash", "greedyhash", "sdr", "csq", "hashnet", "sdh", "cca_itq")
MOST_QUERIES = 600  # split from the training rows
SINGLE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Cell:
    """One fit. `name` is what a report calls the method with its settings."""

    set: str
    name: str
    method: str
    bits: int
    seed: int
    split: str = "test"  # or "validation"
    settings: dict = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What tells a cell from the others."""
        return f"{self.set}/{self.split}/{self.name}/{self.bits}/{self.seed}"


@dataclass(frozen=True)
class Rows:
    """Features and labels of a set, and its three parts; the database is `train` and `new`."""

    features: np.ndarray  # (n, d) float32
    labels: np.ndarray  # (n,) classes or (n, c) 0/1
    train: np.ndarray
    new: np.ndarray
    query: np.ndarray

    @classmethod
    def load(cls, path: Path) -> Rows:
        """The rows that `suite_data.prepare` wrote."""
        with np.load(path) as found:
            parts = {name: found[name] for name in ("labels", "train", "new", "query")}
            return cls(found["features"].astype(np.float32), **parts)

    def validation(self, seed: int) -> Rows:
        """The training rows alone: 15 % of them as queries, 20 % as new rows, the others to learn from."""
        rows = np.random.default_rng(seed).permutation(self.train)
        n_query = min(MOST_QUERIES, round(0.15 * len(rows)))
        n_new = round(0.2 * len(rows))
        query, new, train = np.split(rows, [n_query, n_query + n_new])
        return Rows(self.features, self.labels, train, new, query)


def measure(cell: Cell, folder: Path) -> dict:
    """Fit a cell's method and score it; the line of the cell."""
    import torch

    from hbmp.experiment._codes import make_method

    torch.set_num_threads(1)
    rows = Rows.load(folder / f"{cell.set}.npz")
    if cell.split == "validation":
        rows = rows.validation(cell.seed)
    model = make_method(cell.method, cell.bits, dict(cell.settings), seed=cell.seed, device="cpu")
    start, cpu_start = time.perf_counter(), time.process_time()
    try:
        model.fit(rows.features[rows.train], rows.labels[rows.train])
    except Exception as error:  # the other cells go on
        return {"key": cell.key, **asdict(cell), "failed": f"{type(error).__name__}: {error}"}
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    scores = {name: round(float(value), 5) for name, value in retrieve(model, rows).items()}
    line = {"key": cell.key, **asdict(cell), **scores, **{name: round(value, 2) for name, value in spent.items()}}
    return {**line, "plan": readable(getattr(model, "plan_", None))} if hasattr(model, "plan_") else line


def retrieve(model, rows: Rows) -> dict[str, float]:
    """The four mAPs of a fitted method."""
    from hbmp import hamming
    from hbmp.metrics import mean_average_precision

    scores = model.project(rows.features[rows.query])
    learned, new = (model.transform(rows.features[part]) for part in (rows.train, rows.new))
    weights = model.bit_weights_ if np.ptp(model.bit_weights_) else None
    queries = {"own": (hamming.signs(scores), weights), "real": (scores, None)}
    database = np.concatenate([rows.train, rows.new])
    items = {"": (np.concatenate([learned, new]), database), "new_": (new, rows.new)}
    return {
        start + name: mean_average_precision(
            query, codes, rows.labels[rows.query], rows.labels[place], bit_weights=alpha, ties="average"
        )
        for start, (codes, place) in items.items()
        for name, (query, alpha) in queries.items()
    }


def readable(value):
    """A plan as JSON can hold it."""
    return json.loads(json.dumps(value if isinstance(value, dict) else getattr(value, "__dict__", value), default=str))


def grid(sets: Iterable[str], variants: dict, bits, seeds, split: str) -> list[Cell]:
    """The cells of all sets, variants {name: (method, settings)}, code lengths and seeds; the seeds come last."""
    return [
        Cell(name, variant, method, n_bits, seed, split, settings)
        for seed in seeds
        for n_bits in bits
        for name in sets
        for variant, (method, settings) in variants.items()
    ]


def open_cells(cells: list[Cell], output: Path, folder: Path) -> list[Cell]:
    """The cells that have no line yet, without those of single-label methods on multi-label sets."""
    from hbmp import get_method

    done = {line["key"] for line in read_lines(output)}
    multi_label = {name for name in {cell.set for cell in cells} if Rows.load(folder / f"{name}.npz").labels.ndim == 2}
    return [
        cell
        for cell in cells
        if cell.key not in done and not (cell.set in multi_label and get_method(cell.method).single_label)
    ]


def read_lines(path: Path) -> list[dict]:
    """The lines of a file; a last line that a killed process left unfinished is no line."""
    found = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def run(cells: list[Cell], folder: Path, output: Path, jobs: int) -> Iterator[dict]:
    """Measure cells in `jobs` processes; each line is written when its cell is done, by this process alone."""
    os.environ.update(SINGLE_THREAD, CUDA_VISIBLE_DEVICES="")  # processes of the pool inherit both
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.exists() and not output.read_text().endswith("\n"):
        output.write_text("".join(json.dumps(line) + "\n" for line in read_lines(output)))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool, output.open("a") as file:
        for done in as_completed([pool.submit(measure, cell, folder) for cell in cells]):
            line = done.result()
            file.write(json.dumps(line) + "\n")
            file.flush()
            yield line


def chosen_variants(options) -> dict[str, tuple[str, dict]]:
    """{name: (method, settings)}: the methods, or the variants of the first one; --set applies to variants and hbmp."""
    from hbmp._settings import read_value

    common = {name: read_value(value) for name, _, value in (word.partition("=") for word in options.set)}
    if options.variants:
        named = json.loads(options.variants.read_text())
        return {name: (options.methods[0], {**common, **settings}) for name, settings in named.items()}
    found = {name: (name, common if name == options.methods[0] else {}) for name in options.methods}
    if common and options.name:
        found = {options.name if name == options.methods[0] else name: chosen for name, chosen in found.items()}
    return found


def run_command(options) -> None:
    sets = options.sets or sorted(path.stem for path in options.folder.glob("*.npz"))
    split = "validation" if options.validation else "test"
    cells = grid(sets, chosen_variants(options), options.bits, options.seeds, split)
    cells = open_cells(cells, options.output, options.folder)
    for number, line in enumerate(run(cells, options.folder, options.output, options.jobs), 1):
        score = line.get("failed") or f"{line['own']:.3f} {line['real']:.3f} {line['seconds']:6.1f} s"
        print(f"{number}/{len(cells)} {line['key']} {score}", flush=True)


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = root.add_subparsers(required=True)
    runs = commands.add_parser("run", help="measure cells")
    runs.add_argument("folder", type=Path, help="what suite_data.py wrote")
    runs.add_argument("--sets", nargs="+", help="names; all of the folder without")
    runs.add_argument("--methods", nargs="+", default=list(METHODS))
    runs.add_argument("--bits", nargs="+", type=int, default=[16, 32, 64])
    runs.add_argument("--seeds", nargs="+", type=int, default=[0])
    runs.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the first method")
    runs.add_argument("--name", help="what reports call the first method with --set")
    runs.add_argument("--variants", type=Path, help="JSON of named settings of the first method")
    runs.add_argument("--validation", action="store_true", help="split queries from the training rows")
    runs.add_argument("--jobs", type=int, default=1, help="processes")
    runs.add_argument("--output", type=Path, default=suite_report.RESULTS)
    runs.set_defaults(command=run_command)
    suite_report.add_commands(commands, read_lines)
    return root


def main() -> None:
    options = parser().parse_args()
    options.command(options)


if __name__ == "__main__":
    main()
