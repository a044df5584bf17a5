"""Comparison of methods on your own arrays under one split: `hbmp.compare`.

    table = hbmp.compare(X, y, bits=(16, 32))
    print(table.to_markdown())

All methods are fitted on the same training rows and search the same database for the same queries, which none of them
has seen. The result has one row per method and code length. It also has what the same search costs and finds without
hashing: by the vectors as they are, a classifier, their signs, PQ and RaBitQ. It renders as Markdown, CSV, JSON, a data
frame and as a plot.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hbmp import __version__
from hbmp._core import machine
from hbmp._core.device import pick_device
from hbmp._core.progress import counted
from hbmp._core.table import Table
from hbmp.evaluation import cells as cell_runs
from hbmp.evaluation import tables
from hbmp.evaluation.baselines import BaselineResult, measure_baselines
from hbmp.evaluation.cells import MethodResult
from hbmp.evaluation.choice import MethodRun
from hbmp.evaluation.trial import Trial, as_features, as_labels, check_alike, draw_split, trial_of
from hbmp.hasher import Hasher, get_method, list_methods
from hbmp.protocols import Split

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`.

    Parameters
    ----------
    rows : tuple of MethodResult
        One result per method and code length.
    split : Split
        The split that all methods share.
    facts : dict
        Data, conventions and machine.
    models : dict of (str, int) to Hasher, default={}
        The fitted models of the methods in `keep`, by method and code length.
    baselines : tuple of BaselineResult, default=()
        The same search without hashing.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> X = np.random.default_rng(0).normal(size=(80, 6))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> table = hbmp.compare(X, y, methods=["lsh", "pca_sign"], bits=(4,), device="cpu", progress=False)
    >>> sorted(table.ranking), len(table.rows)
    (['lsh', 'pca_sign'], 2)
    """

    rows: tuple[MethodResult, ...]
    split: Split
    facts: dict[str, Any]
    models: dict[tuple[str, int], Hasher] = field(default_factory=dict)
    baselines: tuple[BaselineResult, ...] = ()

    @property
    def measure(self) -> str:
        """The name of the score that ranks the methods: "map", or with a cutoff "map@1000"."""
        return str(self.facts["measures"][0]["name"])

    @property
    def ranking(self) -> list[str]:
        """The methods, best first, by their mean score over code lengths; failed methods last."""
        return tables.ranking(self.rows, self.measure)

    @property
    def caption(self) -> str:
        """The conventions behind the numbers of the tables, in words."""
        firsts = any(row.first for row in self.rows)
        return tables.caption(self.facts, alternatives=bool(self.baselines), firsts=firsts)

    @property
    def summary(self) -> Table:
        """Scores by code length, one line per method, best first."""
        return tables.summary(self.rows, self.ranking, self.measure)

    @property
    def details(self) -> Table:
        """All readings and costs, one line per method and code length."""
        return tables.details(self.rows, self.ranking, self.measure)

    @property
    def first_results(self) -> Table:
        """The first ten results: precision, recall, distinct codes and ties, one line per method and code length."""
        return tables.first_results(self.rows, self.ranking)

    @property
    def alternatives(self) -> Table:
        """The same search without hashing, one line per alternative."""
        return tables.alternatives(self.baselines, self.measure)

    @property
    def recommendation(self) -> str:
        """Which method and code length to use, in a sentence, compared with the original vectors."""
        if self.facts["data"]["labels"] == "distances":
            return tables.recommended_neighbours(self.rows, self.baselines)
        return tables.recommendation(self.rows, self.measure, self.baselines)

    def to_markdown(self) -> str:
        """Render a summary by code length, a recommendation, what other search costs, all readings, and the caption.

        Returns
        -------
        str
            Markdown.
        """
        return tables.markdown(self)

    def to_pandas(self) -> DataFrame:
        """One row per method and code length, with every reading, as `to_csv`.

        Returns
        -------
        pandas.DataFrame
            The table.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install pandas.") from None
        return pandas.read_csv(io.StringIO(self.to_csv()))

    def to_csv(self) -> str:
        """Render one line per method and code length, with every reading.

        Returns
        -------
        str
            CSV with a header.
        """
        return tables.csv_text(self.rows, self.measure)

    def to_json(self) -> str:
        """Render results and facts as one JSON object; a score without any query is null.

        Returns
        -------
        str
            JSON.
        """
        rows = [
            {**asdict(row), "scores": {name: _number(value) for name, value in row.scores.items()}} for row in self.rows
        ]
        baselines = [{name: _finite(value) for name, value in asdict(each).items()} for each in self.baselines]
        found = {"rows": rows, "baselines": baselines, **self.facts}
        return json.dumps(found, ensure_ascii=False, default=str)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw score against code length, one labelled line per method.

        Parameters
        ----------
        path : str or Path, default=None
            File to write; its suffix chooses the format.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from hbmp.evaluation.plot import draw

        return draw(self, path)

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def compare(
    X: Any,
    y: Any = None,
    *,
    methods: Sequence[str] | Mapping[str, str | Hasher] | None = None,
    bits: Sequence[int] = (16, 32, 64),
    queries: float | None = None,
    train: float | None = None,
    unseen: bool = False,
    query_X: Any = None,
    query_y: Any = None,
    cutoff: int | None = None,
    validation: int = 0,
    baselines: bool = True,
    seed: int = 0,
    keep: Sequence[str] = (),
    jobs: int = 1,
    device: str = "auto",
    name: str = "X",
    progress: bool = True,
) -> Comparison:
    """Fit and score methods under one split.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features.
    y : array-like of shape (n,) or (n, c), default=None
        Classes or 0/1 labels; without labels, neighbours are defined by distance.
    methods : sequence of str, or mapping of str to (str or Hasher), default=None
        Names, or labels with names or estimators; all methods that can learn from these data if None.
    bits : sequence of int, default=(16, 32, 64)
        Code lengths.
    queries : int or float, default=None
        Number of rows held out as queries, or a fraction below 1; a tenth, at most 1,000, if None.
    train : int or float, default=None
        Number or fraction of the other rows to fit on; all of them if None, half with `unseen`.
    unseen : bool, default=False
        Whether to search only rows that did not train. By default training rows are part of the database.
    query_X : array-like of shape (m, d), default=None
        Given queries; all of X is then the database.
    query_y : array-like of shape (m,) or (m, c), default=None
        Labels of the given queries.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    validation : int, default=0
        Settings per method and code length, validated on held-out training rows from the method's own grid (`search`),
        and two learning rates for deep methods; 0 for each method's defaults. The result has both scores.
    baselines : bool, default=True
        Whether to measure the same search without hashing: vectors as they are, a classifier, signs, PQ and RaBitQ.
    seed : int, default=0
        Seed of the split and of every method.
    keep : sequence of str, default=()
        Methods whose fitted models the result holds in `models`.
    jobs : int, default=1
        Methods at a time, in separate processes; their times are then measured side by side.
    device : str, default="auto"
        "auto", "cpu" or "cuda".
    name : str, default="X"
        Name of the data in the caption.
    progress : bool, default=True
        Whether to show a bar on stderr.

    Returns
    -------
    Comparison
        Results, tables and plot.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> X = np.random.default_rng(0).normal(size=(80, 6))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> table = hbmp.compare(X, y, methods=["lsh", "pca_sign"], bits=(4,), device="cpu", progress=False)
    >>> print(table.to_csv().splitlines()[0][:29])
    method,bits,map,map.tie-aware
    """
    X, given_y = as_features(X), y
    y = as_labels(y, len(X), others=query_y)
    if query_X is not None:
        if queries is not None:
            raise ValueError("Either queries= draws rows of X as queries or query_X= brings them; pass one of the two.")
        query_X = as_features(query_X, "query_X")
        query_y = as_labels(query_y, len(query_X), "query_y", others=given_y)
        check_alike(X, y, query_X, query_y)
    elif query_y is not None:
        raise ValueError("query_y= holds the labels of query_X=, which is missing.")
    n_given = None if query_X is None else len(query_X)
    split = draw_split(len(X), y, queries=queries, train=train, seed=seed, unseen=unseen, n_given_queries=n_given)
    trial = trial_of(X, y, split, query_X=query_X, query_y=query_y, cutoff=cutoff)
    trial.relevance()  # once, before it is copied to processes
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
        "versions": {"hbmp": __version__, **machine.versions()},
    }
    found = measure_baselines(trial, lengths, seed) if baselines else []
    return Comparison(tuple(rows), split, facts, models, tuple(found))


def _run(
    trial: Trial, cells: list[MethodRun], jobs: int, progress: bool
) -> tuple[list[MethodResult], dict[tuple[str, int], Hasher]]:
    rows: dict[int, MethodResult] = {}
    models: dict[tuple[str, int], Hasher] = {}
    with counted("comparing", len(cells), "fit", show=progress) as done:
        for number, row, model in cell_runs.run(trial, cells, jobs):
            rows[number] = row
            if model is not None:
                models[row.method, row.bits] = model
            done(last=f"{row.method}, {row.bits} bits")
    return [rows[number] for number in range(len(cells))], models


def _chosen(methods: Any, labelled: bool) -> tuple[dict[str, str | Hasher], list[str]]:
    """Methods by label, and those left out because they need labels that are missing."""
    if methods is None:
        every = list_methods()
        unable = [] if labelled else [name for name in every if get_method(name).supervised]
        return {name: name for name in every if name not in unable}, unable
    given = dict(methods) if isinstance(methods, Mapping) else {method: method for method in methods}
    for label, method in given.items():
        if isinstance(method, str):
            get_method(method)  # an unknown name fails before anything runs
        elif not isinstance(method, Hasher):
            raise ValueError(f"Method {label!r} must be a name or an hbmp estimator, found {type(method).__name__}.")
    if not given:
        raise ValueError("There are no methods to compare. List some, or omit methods= for all.")
    return given, []


def _check_kept(keep: Sequence[str], chosen: Mapping[str, Any]) -> None:
    unknown = [label for label in keep if label not in chosen]
    if unknown:
        raise ValueError(f"keep= names {unknown[0]!r}, which is not compared. Choose from {', '.join(chosen)}.")


def _check_whole(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, found {value!r}.")
    return int(value)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _finite(value: Any) -> Any:
    return _number(value) if isinstance(value, float) else value
