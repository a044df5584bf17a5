"""`reproduce`: run what the available data allow, and print our numbers beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from hbmp import datasets
from hbmp._core import catalog
from hbmp.experiments import load_results, run_all, scores
from hbmp.experiments.paper import DataSource, TablePart
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
            )
            for part in recipe.PARTS
        ]
        text = "\n\n".join([headline(recipe), *parts])
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
) -> str:
    """One part of a table as text, after running its missing cells."""
    source, missing = _available(part, data_dir)
    if source is not None:
        cells = part.cells(source, bits=bits, seeds=seeds)
        run_all(cells, jobs=jobs, results=results, data_dir=data_dir, device=device, refresh=refresh)
    by_key = {record["key"]: record for record in load_results(results)}
    table = scores.part_table(part, source, by_key, bits=bits, seeds=seeds)
    return "\n\n".join(text for text in (table.markdown(), missing) if text)


def _available(part: TablePart, data_dir: Folder | None) -> tuple[DataSource | None, str]:
    """The best available data, and one line for each better source that is missing."""
    folder = datasets.data_dir(data_dir)
    missing = []
    for source in part.sources:
        try:
            datasets.load(source.data, data_dir)
        except FileNotFoundError:
            missing.append(f"Missing: {Path(folder) / source.data}. {source.how_to_get}")
        else:
            return source, "\n".join(missing)
    return None, "\n".join(missing)
