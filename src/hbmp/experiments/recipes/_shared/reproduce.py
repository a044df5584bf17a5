"""`reproduce`: run the cells that the available data allow, and print our numbers next to the paper's.

Before a part runs, its plan goes to stderr: which cells are done, which will run, and roughly how long they take. The
features of the paper's network are computed once and kept in the data directory.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from hbmp import datasets
from hbmp._core import catalog
from hbmp._core.device import pick_device
from hbmp.experiments import Cell, load_results, run_all, scores
from hbmp.experiments.encoded import write_encoded
from hbmp.experiments.paper import DataSource, TablePart
from hbmp.experiments.paper_setting import network_encoder
from hbmp.experiments.planning import plan, plan_table
from hbmp.experiments.running import Folder


def reproduce(
    name: str,
    *,
    data_dir: Folder | None = None,
    bits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    jobs: int = 1,
    results: Folder = "results",
    device: str = "auto",
    refresh: bool = False,
    plan_only: bool = False,
) -> str:
    """Run the missing cells of a table, or the missing measurements of a figure, and print the result.

    Parameters
    ----------
    name : str
        Name of a recipe, such as "table1".
    data_dir : str or Path, default=None
        Data directory.
    bits : sequence of int, default=None
        Only these code lengths.
    seeds : sequence of int, default=None
        Only these seeds.
    jobs : int, default=1
        Number of processes.
    results : str or Path, default="results"
        Folder of results; finished cells are not run again.
    device : str, default="auto"
        "auto", "cpu" or "cuda".
    refresh : bool, default=False
        Whether to run stale cells again.
    plan_only : bool, default=False
        Print the plan of a table and run nothing.

    Returns
    -------
    str
        The printed text.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import recipes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = recipes.reproduce("table3", data_dir=folder, results=folder)  # doctest: +ELLIPSIS
    Table 3: mAP@1K on ImageNet100...
    """
    if name not in catalog.names("recipes"):
        raise LookupError(catalog.unknown("recipes", name))
    recipe = catalog.load_module("recipes", name)
    if hasattr(recipe, "PARTS"):
        parts = [
            _part(
                part,
                data_dir=data_dir,
                bits=bits,
                seeds=seeds,
                jobs=jobs,
                results=results,
                device=device,
                refresh=refresh,
                plan_only=plan_only,
            )
            for part in recipe.PARTS
        ]
        text = "\n\n".join([headline(recipe), *parts])
    elif plan_only:
        raise ValueError(f"{name} is a figure, and only tables have a plan.")
    else:
        shown = recipe.reproduce(data_dir=data_dir, bits=bits, seeds=seeds, results=results, device=device)
        text = f"{headline(recipe)}\n\n{shown}"
    print(text)
    return text


def headline(recipe: ModuleType) -> str:
    """Return the first line of a recipe's docstring.

    Parameters
    ----------
    recipe : module
        A module of `hbmp.experiments.recipes`.

    Returns
    -------
    str
        The line.

    Examples
    --------
    >>> from hbmp.experiments import recipes
    >>> from hbmp.experiments.recipes import table3
    >>> recipes.headline(table3)
    'Table 3: mAP@1K on ImageNet100.'
    """
    return str(recipe.__doc__).splitlines()[0]


def _part(
    part: TablePart,
    *,
    data_dir: Folder | None,
    bits: Sequence[int] | None,
    seeds: Sequence[int] | None,
    jobs: int,
    results: Folder,
    device: str,
    refresh: bool,
    plan_only: bool,
) -> str:
    """One part of a table as text, after running its missing cells."""
    source, missing = _available(part, data_dir)
    if source is not None:
        cells = part.cells(source, bits=bits, seeds=seeds)
        planned = _plan(part, source, cells, data_dir=data_dir, results=results, device=pick_device(device))
        if plan_only:
            return "\n\n".join(text for text in (planned, missing) if text)
        print(f"{planned}\n", file=sys.stderr, flush=True)
        _encode(source, cells, data_dir, device)
        run_all(cells, jobs=jobs, results=results, data_dir=data_dir, device=device, refresh=refresh)
    elif plan_only:
        return f"**{part.title}**\n\n{missing}"
    by_key = {record["key"]: record for record in load_results(results)}
    table = scores.part_table(part, source, by_key, bits=bits, seeds=seeds)
    return "\n\n".join(text for text in (table.markdown(), missing) if text)


def _plan(
    part: TablePart, source: DataSource, cells: list[Cell], *, data_dir: Folder | None, results: Folder, device: str
) -> str:
    """The plan of a part as text."""
    own = f"the paper's own setting, {source.setting.words}" if source.setting else source.stand_in or source.data
    planned = plan(cells, results=results, data_dir=data_dir, device=device)
    text = plan_table(planned, f"{part.title}: {own}", device).text()
    if _must_encode(source, cells, data_dir) and source.setting:
        images = len(datasets.load(source.setting.images, data_dir))
        text += f" First, {images:,} images are encoded to {_features(source, data_dir)}."
    return text


def _features(source: DataSource, data_dir: Folder | None) -> Path:
    return Path(datasets.data_dir(data_dir)) / source.data / "features.npy"


def _must_encode(source: DataSource, cells: Sequence[Cell], data_dir: Folder | None) -> bool:
    """Whether a cell learns from features of the paper's network that are not there yet."""
    if source.setting is None or not source.setting.images or _features(source, data_dir).is_file():
        return False
    return any(cell.data == source.data for cell in cells)


def _encode(source: DataSource, cells: Sequence[Cell], data_dir: Folder | None, device: str) -> None:
    if _must_encode(source, cells, data_dir) and source.setting:
        images = datasets.load(source.setting.images, data_dir)
        write_encoded(images, network_encoder(source.setting, data_dir, device), _features(source, data_dir).parent)


def _available(part: TablePart, data_dir: Folder | None) -> tuple[DataSource | None, str]:
    """The best available data, and one line for each better source that is missing."""
    folder = str(datasets.data_dir(data_dir))
    missing: list[str] = []
    for source in part.sources:
        lacking = source.setting.lacking(data_dir) if source.setting else []
        if not (source.setting and source.setting.images):
            try:
                datasets.load(source.data, data_dir)
            except FileNotFoundError:
                lacking.append(f"{Path(folder) / source.data}. {source.how_to_get}")
        if not lacking:
            return source, "\n".join(missing)
        missing += [f"Missing: {line.replace('DATA', folder)}" for line in lacking]
    return None, "\n".join(missing)
