"""`reproduce`: run what the data at hand allow, and print ours beside the paper's."""

from __future__ import annotations

from pathlib import Path

from hbmp import datasets
from hbmp._core import catalog
from hbmp.experiments import load_results, run_all
from hbmp.experiments.recipes._shared import tables
from hbmp.experiments.recipes._shared.base import Part, Source


def reproduce(name: str, *, data_dir=None, bits=None, seeds=None, jobs=1, results="results", device="auto") -> str:
    """Run the cells of a table or the measurements of a figure that are missing, print the result, return the text.

    bits, seeds : only these; jobs : cells at a time; results : the folder of finished cells, which are not run again
    """
    if name not in catalog.names("recipes"):
        raise LookupError(catalog.unknown("recipes", name))
    recipe = catalog.load_module("recipes", name)
    options = {"data_dir": data_dir, "bits": bits, "seeds": seeds, "results": results, "device": device}
    if hasattr(recipe, "PARTS"):
        text = "\n\n".join([headline(recipe), *(_part(part, jobs=jobs, **options) for part in recipe.PARTS)])
    else:
        text = f"{headline(recipe)}\n\n{recipe.reproduce(**options)}"
    print(text)
    return text


def headline(recipe) -> str:
    """The first line of the recipe's docstring."""
    return recipe.__doc__.splitlines()[0]


def _part(part: Part, *, data_dir, bits, seeds, jobs, results, device) -> str:
    source, missing = _at_hand(part, data_dir)
    if source is not None:
        cells = part.cells(source, bits=bits, seeds=seeds)
        run_all(cells, jobs=jobs, results=results, data_dir=data_dir, device=device)
    by_key = {record["key"]: record for record in load_results(results)}
    table = tables.part_table(part, source, by_key, bits=bits, seeds=seeds)
    return "\n\n".join(text for text in (table.markdown(), missing) if text)


def _at_hand(part: Part, data_dir) -> tuple[Source | None, str]:
    """The best data that are here, and one line for each better one that is not."""
    folder = datasets.data_dir(data_dir)
    missing = []
    for source in part.sources:
        try:
            datasets.load(source.data, data_dir)
        except FileNotFoundError:
            missing.append(f"Not here: {Path(folder) / source.data}. {source.how_to_get}")
        else:
            return source, "\n".join(missing)
    return None, "\n".join(missing)
