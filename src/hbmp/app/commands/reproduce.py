"""Run a table or figure of the paper on the data at hand and print ours beside the paper's.

What was run before is read from the results and not run again; what is missing is named, with how to get it.
"""

from __future__ import annotations

from hbmp._core import catalog

EXAMPLE = "hbmp reproduce table1 --data-dir data --bits 12 32 --seeds 0"


def add_arguments(parser) -> None:
    """Which table, and which part of it."""
    known = ", ".join(catalog.names("recipes"))
    parser.add_argument("name", metavar="NAME", help=f"one of {known}")
    parser.add_argument("--data-dir", metavar="DIR", help="where data sets lie (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--bits", type=int, nargs="+", metavar="N", help="only these code lengths")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="N", help="only these seeds")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cells at a time (default: 1)")
    parser.add_argument("--results", default="results", metavar="DIR", help="where results are kept (default: results)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")


def run(options) -> None:
    """Hand the options to the recipe, which prints."""
    if options.name not in catalog.names("recipes"):
        raise LookupError(catalog.unknown("recipes", options.name))
    from hbmp.experiments import recipes

    chosen = ("data_dir", "bits", "seeds", "jobs", "results", "device")
    recipes.reproduce(options.name, **{option: getattr(options, option) for option in chosen})
