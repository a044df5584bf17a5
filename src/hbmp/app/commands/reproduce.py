"""Run a table, a figure or a grid of results on the available data; finished cells are not run again.

A table or figure of the paper is printed with our numbers next to the paper's. With the paper's images and the weights
of its network in the data directory, the command runs the paper's own setting. Otherwise it uses the best available
data and prints how to get what is missing. A grid contains the cells behind the committed results of one protocol.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from hbmp._core import catalog

EXAMPLE = "hbmp reproduce table1 --data-dir data --bits 12 32 --seeds 0"
GRIDS = ("cifar-1", "cifar-2", "nus", "coco", "voc2007", "labelme", "methods", "leaders", "images", "all")
_FOR_GRIDS = ("data", "protocol_params", "methods", "parts", "minutes", "compile", "keep_codes")
_FOR_BOTH = ("jobs", "results", "data_dir", "device", "refresh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which table, figure or grid, and which part of it."""
    recipes = ", ".join(catalog.names("recipes"))
    parser.add_argument("name", metavar="NAME", help=f"a recipe ({recipes}) or a grid ({', '.join(GRIDS)})")
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--bits", type=int, nargs="+", metavar="N", help="only these code lengths")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="N", help="only these seeds")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of processes (default: 1)")
    parser.add_argument("--results", default="results", metavar="DIR", help="folder of results (default: results)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--refresh", action="store_true", help="run cells again if their method has changed")
    parser.add_argument(
        "--list", action="store_true", help="print what would run, with times for tables, and run nothing"
    )
    grid = parser.add_argument_group("options of grids")
    grid.add_argument("--data", metavar="NAME", help="use this data set instead of the grid's own")
    grid.add_argument("--protocol-params", type=json.loads, metavar="JSON", help='such as {"train_per_class": 50}')
    grid.add_argument("--methods", nargs="+", metavar="NAME", help="only these methods")
    grid.add_argument("--parts", nargs="+", metavar="PART", help="parts of the image grid, in the order to run them")
    grid.add_argument("--minutes", type=float, metavar="N", help="start no cell after this time; run again to resume")
    grid.add_argument("--compile", action="store_true", help="compile networks: slower to start, faster to train")
    grid.add_argument("--keep-codes", action="store_true", help="write codes to RESULTS/codes as well, for figures")


def kept(options: argparse.Namespace) -> str:
    """Describe what an interrupted run has left."""
    return "Finished cells are kept; run the same command again to continue."


def run(options: argparse.Namespace) -> None:
    """Run the recipe, which prints its table, or the grid."""
    both = {name: getattr(options, name) for name in _FOR_BOTH}
    if options.name in GRIDS:
        _run_grid(options, both)
        return
    if options.name not in catalog.names("recipes"):
        raise LookupError(f"{catalog.unknown('recipes', options.name)} Grids: {', '.join(GRIDS)}.")
    unused = [name for name in _FOR_GRIDS if getattr(options, name)]
    if unused:
        raise ValueError(f"--{unused[0].replace('_', '-')} is an option of grids, and {options.name!r} is a recipe.")
    from hbmp.experiments import recipes

    if options.list:
        both["plan_only"] = True
    recipes.reproduce(options.name, bits=options.bits, seeds=options.seeds, **both)


def _run_grid(options: argparse.Namespace, both: dict[str, Any]) -> None:
    """Print the cells of a grid, or run them."""
    from hbmp.experiments.grid_runs import cells_named, run_grid

    names = ("bits", "seeds", "methods", "data", "protocol_params", "parts", "results")
    cells = cells_named(options.name, **{name: getattr(options, name) for name in names})
    if options.list:
        for cell in cells:
            print(cell.label + ("" if cell.codes == "function" else f", {cell.codes} codes"))
        return
    try:
        print(
            run_grid(
                options.name,
                cells,
                minutes=options.minutes,
                compile=options.compile,
                keep_codes=options.keep_codes,
                **both,
            )
        )
    except RuntimeError as error:  # cells failed, and each has told its reason
        raise ValueError(str(error)) from error
