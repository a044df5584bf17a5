"""Before cells run: which are done, which will run, and roughly how long they take on this machine.

The time of a cell is that of earlier results of its method under its protocol; for a network, the pace of earlier
trainings of the same backbone on the same machine, or of two small steps that are tried out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import mean
from typing import Any

from hbmp._core import catalog, machine
from hbmp._core.table import Table
from hbmp.experiments.cells import Cell, Place
from hbmp.experiments.running import Folder, is_current, load_results
from hbmp.experiments.store import Record

_PROBE = 8  # images per step that is tried out
_ENCODING = 1 / 3  # cost of encoding an image, in trained images


@dataclass(frozen=True)
class Planned:
    """One cell before it runs.

    Parameters
    ----------
    cell : Cell
        The cell.
    done : bool
        Whether it has a current result.
    seconds : float, default=None
        Estimated time; None if nothing is known.

    Examples
    --------
    >>> from hbmp.experiments import Cell
    >>> from hbmp.experiments.planning import Planned
    >>> Planned(Cell("itq", "cifar-1", "digits", 8), done=True).seconds
    """

    cell: Cell
    done: bool
    seconds: float | None = None


def plan(
    cells: Sequence[Cell], *, results: Folder = "results", data_dir: Folder | None = None, device: str = "cpu"
) -> list[Planned]:
    """Find out which cells are done, and estimate the others.

    Parameters
    ----------
    cells : sequence of Cell
        The cells.
    results : str or Path, default="results"
        Folder of results.
    data_dir : str or Path, default=None
        Data directory.
    device : str, default="cpu"
        "cpu" or "cuda".

    Returns
    -------
    list of Planned
        One per cell.

    Examples
    --------
    >>> from hbmp.experiments import Cell
    >>> from hbmp.experiments.planning import plan
    >>> [planned.done for planned in plan([Cell("itq", "cifar-1", "digits", 8)], results="none")]
    [False]
    """
    records = load_results(results)
    by_key = {record["key"]: record for record in records}
    found = []
    for cell in cells:
        done = cell.key in by_key and is_current(by_key[cell.key])
        found.append(Planned(cell, done, None if done else _seconds(cell, records, data_dir, device)))
    return found


def plan_table(planned: Sequence[Planned], title: str, device: str) -> Table:
    """Show a plan: one row per method and data set.

    Parameters
    ----------
    planned : sequence of Planned
        The cells.
    title : str
        Title of the table.
    device : str
        "cpu" or "cuda".

    Returns
    -------
    Table
        The table, with the whole time in its caption.

    Examples
    --------
    >>> from hbmp.experiments import Cell
    >>> from hbmp.experiments.planning import Planned, plan_table
    >>> cells = [Cell("itq", "cifar-1", "digits", bits) for bits in (8, 16)]
    >>> plan_table([Planned(cells[0], True), Planned(cells[1], False, 90.0)], "", "cpu").rows
    (('itq', 'digits', '1', '16', '2 min'),)
    """
    groups: dict[tuple[str, str, str], list[Planned]] = {}
    for each in planned:
        groups.setdefault((each.cell.method, each.cell.data, str(each.cell.params.get("scheme", ""))), []).append(each)
    rows = []
    for (method, data, scheme), members in groups.items():
        waiting = [each for each in members if not each.done]
        bits = ", ".join(str(n_bits) for n_bits in sorted({each.cell.bits for each in waiting})) or "—"
        name = f"{method} ({scheme})" if scheme else method
        rows.append((name, data, str(len(members) - len(waiting)), bits, _total(waiting)))
    waiting = [each for each in planned if not each.done]
    caption = (
        f"{len(planned) - len(waiting)} of {len(planned)} cells are done, {len(waiting)} will run: about "
        f"{_total(waiting)} one after the other on {machine.describe(device).get('gpu', device)}. A stopped run "
        "continues where it was."
    )
    return Table(("method", "learns from", "done", "bits to run", "about"), tuple(rows), title, caption, n_names=2)


def in_words(seconds: float) -> str:
    """A time in words.

    Parameters
    ----------
    seconds : float
        The time.

    Returns
    -------
    str
        Such as "3 h 20 min".

    Examples
    --------
    >>> from hbmp.experiments.planning import in_words
    >>> in_words(20), in_words(1300), in_words(12000), in_words(400000)
    ('1 min', '22 min', '3 h 20 min', '4.6 days')
    """
    minutes = max(1, round(seconds / 60))
    if minutes >= 2880:
        return f"{seconds / 86400:.1f} days"
    hours, rest = divmod(minutes, 60)
    return (f"{hours} h {rest} min" if rest else f"{hours} h") if hours else f"{minutes} min"


def _total(planned: Sequence[Planned]) -> str:
    """The sum of the estimates, and how many cells have none."""
    known = [each.seconds for each in planned if each.seconds is not None]
    if not planned:
        return "—"
    unknown = len(planned) - len(known)
    more = f"{unknown} of unknown time" if unknown else ""
    return " and ".join(part for part in (in_words(sum(known)) if known else "", more) if part)


def _seconds(cell: Cell, records: Sequence[Record], data_dir: Folder | None, device: str) -> float | None:
    backbone = _backbone_of(cell)
    if backbone is not None:
        return _work(cell, data_dir) / _pace(backbone, records, device)
    same: Callable[[Record], bool]
    for same in (
        lambda record: record["cell"]["data"] == cell.data and record["cell"]["protocol"] == cell.protocol,
        lambda record: record["cell"]["protocol"] == cell.protocol,
    ):
        times = [
            sum(record["seconds"].values())
            for record in records
            if record["cell"]["method"] == cell.method and "images_per_second" not in record and same(record)
        ]
        if times:
            return float(mean(times))
    return None


def _backbone_of(cell: Cell) -> str | None:
    function = cell.params.get("function")
    backbone = function[1].get("backbone") if isinstance(function, list) else None
    return str(backbone[0]) if isinstance(backbone, list) else None


def _work(cell: Cell, data_dir: Folder | None) -> float:
    """The cost of a cell in trained images."""
    epochs: int = cell.params["function"][1]["epochs"]
    split = Place(cell, data_dir).split
    return len(split.train) * epochs + (len(split.query) + len(split.database)) * _ENCODING


def _pace(backbone: str, records: Sequence[Record], device: str) -> float:
    """Trained images per second."""
    name, here = catalog.load("backbones", backbone).__name__, machine.describe(device)
    paces = [
        record["images_per_second"]["fit"]
        for record in records
        if record.get("settings", {}).get("function__backbone") == name and record.get("machine") == here
    ]
    return mean(paces[-5:]) if paces else tried_pace(backbone, device)


@lru_cache(maxsize=4)
def tried_pace(backbone: str, device: str) -> float:
    """Try out two small steps of a backbone with random weights.

    Parameters
    ----------
    backbone : str
        Name of the backbone.
    device : str
        "cpu" or "cuda".

    Returns
    -------
    float
        Trained images per second. Large batches on a GPU are faster.

    Examples
    --------
    >>> from hbmp.experiments.planning import tried_pace
    >>> tried_pace("tiny", "cpu") > 1
    True
    """
    import torch

    described: Any = catalog.load("backbones", backbone)(pretrained=False)
    network = described.architecture().to(device)
    inputs = torch.zeros(_PROBE, 3, described.size, described.size, device=device)
    for _ in range(2):
        start = time.perf_counter()
        network(inputs).sum().backward()
        if str(device).startswith("cuda"):
            torch.cuda.synchronize()
    return _PROBE / (time.perf_counter() - start)
