"""One cell of the development suite: a set, a method with its settings, a code length, a seed; how it is measured."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from suite_readings import readings

MOST_QUERIES = 600  # split from the training rows


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


def measure(cell: Cell, folder: Path, read: bool = False) -> list[dict]:
    """Fit a cell's method and score it: the line of the cell; with `read` also one per reading of the default HBMP."""
    from hbmp.experiments.codes import make_method

    rows = Rows.load(folder / f"{cell.set}.npz")
    if cell.split == "validation":
        rows = rows.validation(cell.seed)
    model = make_method(cell.method, cell.bits, dict(cell.settings), seed=cell.seed, device="cpu")
    start, cpu_start = time.perf_counter(), time.process_time()
    try:
        model.fit(rows.features[rows.train], rows.labels[rows.train])
    except Exception as error:  # the other cells go on
        return [{"key": cell.key, **asdict(cell), "failed": f"{type(error).__name__}: {error}"}]
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    line = line_of(cell, model, rows) | {name: round(value, 2) for name, value in spent.items()}
    if hasattr(model, "plan_"):
        line["plan"] = readable(model.plan_)
    more = readings(model, rows) if read and not cell.settings else ()
    return [line, *(line_of(replace(cell, name=name), other, rows) for name, other in more)]


def line_of(cell: Cell, model, rows: Rows) -> dict:
    """The cell and its scores."""
    scores = {name: round(float(value), 5) for name, value in retrieve(model, rows).items()}
    return {"key": cell.key, **asdict(cell), **scores}


def retrieve(model, rows: Rows) -> dict[str, float]:
    """The four mAPs of a fitted method."""
    from hbmp import hamming
    from hbmp.metrics import mean_average_precision

    scores = model.project(rows.features[rows.query])
    learned, new = (model.transform(rows.features[part]) for part in (rows.train, rows.new))
    weights = model.bit_weights_ if np.ptp(model.bit_weights_) else None
    queries = {"own": (hamming.signs(scores), weights), "real": (scores, weights)}
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
