"""Running the grids behind the committed results, all at once or within a time limit."""

from __future__ import annotations

from collections.abc import Sequence

from hbmp.experiments.cells import Cell
from hbmp.experiments.grids import GRIDS, cells_of
from hbmp.experiments.queue import run_queue
from hbmp.experiments.running import Folder, run_all


def cells_named(name: str, **changes: object) -> list[Cell]:
    """List the cells of a grid, or of every grid.

    Parameters
    ----------
    name : str
        Name of a grid, or "all".
    **changes
        Restrictions and changes, as `grids.cells_of` takes them.

    Returns
    -------
    list of Cell
        The cells.

    Examples
    --------
    >>> from hbmp.experiments.grid_runs import cells_named
    >>> {cell.protocol for cell in cells_named("cifar-1")}
    {'cifar-1'}
    """
    names = list(GRIDS) if name == "all" else [name]
    return [cell for each in names for cell in cells_of(each, **changes)]  # type: ignore[arg-type]


def run_grid(
    name: str,
    cells: Sequence[Cell],
    *,
    jobs: int = 1,
    minutes: float | None = None,
    results: Folder = "results",
    data_dir: Folder | None = None,
    device: str = "auto",
    compile: bool = False,
    keep_codes: bool = False,
    refresh: bool = False,
) -> str:
    """Run the cells of a grid: `jobs` at a time, or one by one within a time limit.

    Parameters
    ----------
    name : str
        Name of the grid. The cells of "images" always run one by one.
    cells : sequence of Cell
        What to run.
    jobs : int, default=1
        Number of processes; with a time limit, of processes that score.
    minutes : float, default=None
        Time limit.
    results : str or Path, default="results"
        Folder of results.
    data_dir : str or Path, default=None
        Data directory.
    device : str, default="auto"
        "auto", "cpu" or "cuda".
    compile, keep_codes : bool, default=False
        As for `run_queue`.
    refresh : bool, default=False
        Whether to run stale cells again.

    Returns
    -------
    str
        One sentence: how many cells are finished and how many remain.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import Cell
    >>> from hbmp.experiments.grid_runs import run_grid
    >>> cell = Cell("lsh", "cifar-1", "digits", 8, protocol_params={"train_per_class": 10, "query_per_class": 4})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_grid("mine", [cell], minutes=0, results=folder, device="cpu")[-9:]
    '1 remain.'
    """
    if name != "images" and minutes is None:
        records = run_all(cells, jobs=jobs, results=results, data_dir=data_dir, device=device, refresh=refresh)
        return f"{len(records)} cells of {name} are in {results}."
    outcome = run_queue(
        cells,
        minutes=minutes,
        results=results,
        data_dir=data_dir,
        device=device,
        compile=compile,
        scorers=max(2, jobs),
        keep_codes=keep_codes,
        refresh=refresh,
    )
    if outcome.failed:
        cell, error = outcome.failed[0]
        raise RuntimeError(f"{len(outcome.failed)} cells failed. The first: {cell.label}: {error}")
    return f"{len(outcome.finished)} cells of {name} are in {results}, {len(outcome.left)} remain."
