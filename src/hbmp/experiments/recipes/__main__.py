"""`python -m hbmp.experiments.recipes`: run the grids behind the committed results, or reproduce one table or figure.

python -m hbmp.experiments.recipes run-grid cifar-1 --data-dir data --results results --device cuda --jobs 4
python -m hbmp.experiments.recipes run-grid images --parts nested-cifar-1 rivals-cifar-1 --minutes 9 --device cuda
python -m hbmp.experiments.recipes pack-images data/voc2007 --size 112
python -m hbmp.experiments.recipes reproduce table1 --data-dir data
"""

from __future__ import annotations

import argparse
import json
import sys

from hbmp.experiments import recipes, run_all
from hbmp.experiments.queue import run_queue
from hbmp.experiments.recipes._shared import grids as result_grids


def main(arguments=None) -> int:
    """Run the command; 2 where something was asked for that is not there."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except (ValueError, LookupError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _run_grid(options) -> None:
    names = list(result_grids.GRIDS) if options.name == "all" else [options.name]
    cells = [
        cell
        for name in names
        for cell in result_grids.cells_of(
            name,
            bits=options.bits,
            seeds=options.seeds,
            methods=options.methods,
            data=options.data,
            protocol_params=options.protocol_params,
            parts=options.parts,
            results=options.results,
        )
    ]
    if options.list:
        for cell in cells:
            print(cell.label + ("" if cell.codes == "function" else f", {cell.codes} codes"))
        return
    if options.name == "images" or options.minutes is not None:
        _run_in_time(cells, options)
        return
    records = run_all(
        cells, jobs=options.jobs, results=options.results, data_dir=options.data_dir, device=options.device
    )
    print(f"{len(records)} cells of {', '.join(names)} are in {options.results}.")


def _run_in_time(cells, options) -> None:
    """One cell after the other until the time is up; what is left runs when the command is given again."""
    outcome = run_queue(
        cells,
        minutes=options.minutes,
        results=options.results,
        data_dir=options.data_dir,
        device=options.device,
        compile=options.compile,
        scorers=max(2, options.jobs),
        keep_codes=options.keep_codes,
    )
    print(f"{len(outcome.finished)} cells of {options.name} are in {options.results}, {len(outcome.left)} are left.")
    if outcome.failed:
        cell, error = outcome.failed[0]
        raise RuntimeError(f"{len(outcome.failed)} cells failed. The first: {cell.label}: {error}")


def _pack_images(options) -> None:
    from hbmp.datasets._shared import pack as packing

    path = packing.pack_images(options.folder, size=options.size)
    print(f"Wrote {path} ({path.stat().st_size / 1e6:,.0f} MB).")


def _reproduce(options) -> None:
    recipes.reproduce(
        options.name,
        data_dir=options.data_dir,
        bits=options.bits,
        seeds=options.seeds,
        jobs=options.jobs,
        results=options.results,
        device=options.device,
    )


def _fill(options) -> None:
    from hbmp.experiments import report

    changed = report.fill_files(options.files, options.results)
    print(f"Filled {', '.join(map(str, changed))}." if changed else "Every table is up to date.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hbmp.experiments.recipes", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    grid = verbs.add_parser("run-grid", help="run the cells behind the committed results")
    grid.add_argument("name", choices=[*result_grids.GRIDS, "all"])
    grid.add_argument("--data", help="another data set than the grid's own")
    grid.add_argument("--protocol-params", type=json.loads, default={}, help='JSON, such as {"train_per_class": 50}')
    grid.add_argument("--methods", nargs="+", help="only these methods")
    grid.add_argument("--parts", nargs="+", help="of the grid of images, in the order to run them")
    grid.add_argument("--minutes", type=float, help="begin no cell after this time; run again to go on")
    grid.add_argument("--compile", action="store_true", help="compile networks: a minute once, then quicker")
    grid.add_argument("--keep-codes", action="store_true", help="write codes to RESULTS/codes as well, for figures")
    grid.add_argument("--list", action="store_true", help="print the cells and run nothing")
    grid.set_defaults(command=_run_grid)
    pack = verbs.add_parser("pack-images", help="decode the image files of a data set into one images.npy")
    pack.add_argument("folder", help="with labels.npz, and images/ or a .tar of it")
    pack.add_argument("--size", type=int, default=112, help="side of the square images in pixels (default: 112)")
    pack.set_defaults(command=_pack_images)
    table = verbs.add_parser("reproduce", help="run one table or figure of the paper and print ours beside it")
    table.add_argument("name", choices=recipes.names())
    table.set_defaults(command=_reproduce)
    fill = verbs.add_parser("fill", help="write the marked tables of Markdown files from the results")
    fill.add_argument("files", nargs="+")
    fill.add_argument("--results", default="results", help="where results are kept (default: results)")
    fill.set_defaults(command=_fill)
    for verb in (grid, table):
        verb.add_argument("--data-dir", help="where the data sets lie (default: $HBMP_DATA, or data)")
        verb.add_argument("--results", default="results", help="where results are kept (default: results)")
        verb.add_argument("--device", default="auto", help="auto, cpu or cuda")
        verb.add_argument(
            "--jobs", type=int, default=1, help="cells (with --minutes: scorings) at a time, in processes"
        )
        verb.add_argument("--bits", type=int, nargs="+", help="only these code lengths")
        verb.add_argument("--seeds", type=int, nargs="+", help="only these seeds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
