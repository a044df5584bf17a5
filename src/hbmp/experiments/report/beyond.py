"""The table of the effect of each step beyond the paper, from `results/beyond-the-paper.jsonl`."""

from __future__ import annotations

from pathlib import Path

from hbmp._core.table import Table
from hbmp.experiments import store
from hbmp.experiments.running import Folder
from hbmp.experiments.store import Record

FILE = "beyond-the-paper.jsonl"
_CAPTION = (
    "mAP over the full ranking (coco: over the first 5,000), ties averaged, by each method's own distance; in brackets "
    "with real-valued queries. Mean over seeds {seeds}; the best of a column in bold. Made by "
    "`benchmarks/beyond_the_paper.py`, which describes the sets."
)


def beyond_table(results_dir: Folder = "results") -> Table | None:
    """One row per method in the order of the lines, one column per set and code length; None without lines."""
    lines = store.read(Path(results_dir) / FILE)
    if not lines:
        return None
    methods = list(dict.fromkeys(line["method"] for line in lines))
    columns = sorted({(line["set"], line["bits"]) for line in lines}, key=lambda column: _places(lines, column))
    means = {(method, *column): _means(lines, method, *column) for method in methods for column in columns}
    best = {column: max(means[method, *column][0] for method in methods) for column in columns}
    rows = []
    for method in methods:
        cells = [_cell(*means[method, *column], means[method, *column][0] == best[column]) for column in columns]
        rows.append((method, *cells))
    header = ("method", *(f"{name}, {bits} bits" for name, bits in columns))
    seeds = ", ".join(map(str, sorted({line["seed"] for line in lines})))
    return Table(header, tuple(rows), caption=_CAPTION.format(seeds=seeds))


def _places(lines: list[Record], column: tuple[str, int]) -> tuple[int, int]:
    """The order of columns: sets as they appear, then code lengths."""
    names = list(dict.fromkeys(line["set"] for line in lines))
    return names.index(column[0]), column[1]


def _means(lines: list[Record], method: str, name: str, bits: int) -> tuple[float, float]:
    """(own distance, real-valued queries), -1 without lines."""
    found = [line for line in lines if (line["method"], line["set"], line["bits"]) == (method, name, bits)]
    if not found:
        return -1.0, -1.0
    own, real = (sum(line[key] for line in found) / len(found) for key in ("own", "real"))
    return round(own, 4), round(real, 4)


def _cell(own: float, real: float, is_best: bool) -> str:
    if own < 0:
        return "—"
    shown = f"{own:.3f}"
    return f"{f'**{shown}**' if is_best else shown} ({real:.3f})"
