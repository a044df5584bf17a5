"""Any set of methods on your own arrays under one split: `hbmp.compare`.

    table = hbmp.compare(X, y, bits=(16, 32))
    print(table.to_markdown())

All methods are fitted on the same training rows and answer the same queries over the same database; queries are never
seen in fitting. The result holds a row a method and code length, and renders as Markdown, CSV, JSON and as a plot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

import hbmp
from hbmp._core import machine
from hbmp._core.device import pick_device
from hbmp._core.table import Table
from hbmp.evaluation import cells as cell_runs
from hbmp.evaluation import tables
from hbmp.evaluation.cells import MethodResult, MethodRun
from hbmp.evaluation.trial import as_features, as_labels, check_alike, draw_split, trial_of
from hbmp.hasher import Hasher, get_method, list_methods
from hbmp.protocols import Split


@dataclass(frozen=True)
class Comparison:
    """What `compare` found: `rows`, the `split` they share, and `facts` about data, conventions and machine.

    models : the fitted models that were asked for with `keep`, by (method, bits)
    """

    rows: tuple[MethodResult, ...]
    split: Split
    facts: dict
    models: dict[tuple[str, int], Hasher] = field(default_factory=dict)

    @property
    def measure(self) -> str:
        """The name of the score that methods are ranked by, "map" or with a cutoff "map@1000"."""
        return self.facts["measures"][0]["name"]

    @property
    def ranking(self) -> list[str]:
        """The methods, best first, by their mean score over code lengths; those that never ran last."""
        return tables.ranking(self.rows, self.measure)

    @property
    def caption(self) -> str:
        """Everything a number of the table depends on, in words."""
        return tables.caption(self.facts)

    @property
    def summary(self) -> Table:
        """The score by code length, a line a method, best first."""
        return tables.summary(self.rows, self.ranking, self.measure)

    @property
    def details(self) -> Table:
        """Every reading and cost, a line a method and code length."""
        return tables.details(self.rows, self.ranking)

    def to_markdown(self) -> str:
        """A summary by code length, every reading with its costs, reasons of failures, and the caption."""
        return tables.markdown(self.rows, self.measure, self.caption)

    def to_csv(self) -> str:
        """A line a method and code length, with every reading."""
        return tables.csv_text(self.rows)

    def to_json(self) -> str:
        """Rows and facts as one JSON object; a score that no query decides is null."""
        rows = [
            {**asdict(row), "scores": {name: _number(value) for name, value in row.scores.items()}} for row in self.rows
        ]
        return json.dumps({"rows": rows, **self.facts}, ensure_ascii=False, default=str)

    def plot(self, path=None):
        """Score against code length, a labelled line a method, as a matplotlib figure; written to `path` if given."""
        from hbmp.evaluation.plot import draw

        return draw(self, path)

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def compare(
    X,
    y=None,
    *,
    methods: Sequence[str] | Mapping[str, str | Hasher] | None = None,
    bits: Sequence[int] = (16, 32, 64),
    queries: float | None = None,
    train: float | None = None,
    unseen: bool = False,
    query_X=None,
    query_y=None,
    cutoff: int | None = None,
    validation: int = 0,
    seed: int = 0,
    keep: Sequence[str] = (),
    jobs: int = 1,
    device: str = "auto",
    name: str = "X",
    progress: bool = True,
) -> Comparison:
    """Fit and score methods on features X (n, d) with classes, 0/1 labels or nothing in y.

    Parameters
    ----------
    methods : names, or {label: name or estimator with settings of your own}; all that can learn from these data if None
    bits : code lengths
    queries : rows held out as queries, a number or a share below 1; a tenth, at most 1,000, if None
    train : rows to fit on, a number or a share of all that are not queries; all of them if None, half with `unseen`
    unseen : search only rows that were not trained on; otherwise training rows are part of the database, as is usual
    query_X, query_y : queries of your own; then all of X is the database
    cutoff : how many ranks count; the full ranking if None
    validation : settings tried a method and code length, chosen on held-out training rows from the grid that the method
        offers as `search`; 0 for each method's defaults
    seed : of the split and of every method
    keep : methods whose fitted models the result holds, in `models`; those that failed have none
    jobs : methods at a time, in processes of their own; their seconds are then measured side by side
    device : "auto", "cpu" or "cuda" · name : what the caption calls the data · progress : a bar on stderr
    """
    X, y = as_features(X), as_labels(y, len(X))
    if query_X is not None:
        if queries is not None:
            raise ValueError("Either queries= draws rows of X as queries or query_X= brings them; pass one of the two.")
        query_X = as_features(query_X, "query_X")
        query_y = as_labels(query_y, len(query_X), "query_y")
        check_alike(X, y, query_X, query_y)
    elif query_y is not None:
        raise ValueError("query_y= holds the labels of query_X=, which is missing.")
    n_given = None if query_X is None else len(query_X)
    split = draw_split(len(X), y, queries=queries, train=train, seed=seed, unseen=unseen, n_given_queries=n_given)
    trial = trial_of(X, y, split, query_X=query_X, query_y=query_y, cutoff=cutoff)
    trial.relevance()  # once, before processes get copies
    chosen, left_out = _chosen(methods, y is not None)
    _check_kept(keep, chosen)
    device = pick_device(device)
    lengths = [_check_whole(n_bits, "A code length", 1) for n_bits in bits]
    budget, jobs = _check_whole(validation, "validation", 0), _check_whole(jobs, "jobs", 1)
    cells = [
        MethodRun(label, method, n_bits, seed, device, budget, label in keep)
        for label, method in chosen.items()
        for n_bits in lengths
    ]
    rows, models = _run(trial, cells, jobs, progress)
    facts = {
        "data": {"name": name, "rows": len(X), "features": X.shape[1], "labels": trial.kind},
        "split": {
            "seed": seed,
            "queries": len(split.query),
            "given_queries": query_X is not None,
            "database": len(split.database),
            "train": len(split.train),
            "unseen": unseen,
            "checksum": split.checksum,
        },
        "neighbours": trial.neighbours,
        "measures": [{"name": measure.name, "about": measure.caption} for measure in trial.measures],
        "validation": budget,
        "left_out": left_out,
        "jobs": jobs,
        "device": device,
        "machine": machine.describe(device),
        "versions": {"hbmp": hbmp.__version__, **machine.versions()},
    }
    return Comparison(tuple(rows), split, facts, models)


def _run(
    trial, cells: list[MethodRun], jobs: int, progress: bool
) -> tuple[list[MethodResult], dict[tuple[str, int], Hasher]]:
    from tqdm import tqdm

    rows: dict[int, MethodResult] = {}
    models: dict[tuple[str, int], Hasher] = {}
    with tqdm(total=len(cells), desc="comparing", unit="fit", disable=None if progress else True) as bar:
        for number, row, model in cell_runs.run(trial, cells, jobs):
            rows[number] = row
            if model is not None:
                models[row.method, row.bits] = model
            bar.set_postfix_str(f"{row.method}, {row.bits} bits")
            bar.update()
    return [rows[number] for number in range(len(cells))], models


def _chosen(methods, labelled: bool) -> tuple[dict[str, str | Hasher], list[str]]:
    """Methods by label, and those left out of all because they need labels that are not there."""
    if methods is None:
        every = list_methods()
        unable = [] if labelled else [name for name in every if get_method(name).supervised]
        return {name: name for name in every if name not in unable}, unable
    given = dict(methods) if isinstance(methods, Mapping) else {method: method for method in methods}
    for label, method in given.items():
        if isinstance(method, str):
            get_method(method)  # an unknown name is told before anything runs
        elif not isinstance(method, Hasher):
            raise ValueError(f"Method {label!r} must be a name or an hbmp estimator, found {type(method).__name__}.")
    if not given:
        raise ValueError("No methods to compare. Name some, or leave methods out for all of them.")
    return given, []


def _check_kept(keep: Sequence[str], chosen: Mapping) -> None:
    unknown = [label for label in keep if label not in chosen]
    if unknown:
        raise ValueError(f"keep= names {unknown[0]!r}, which is not compared; name one of {', '.join(chosen)}.")


def _check_whole(value, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, found {value!r}.")
    return int(value)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
