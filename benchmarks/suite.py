"""The development suite: methods and settings on real sets that differ, and what a choice costs where it had no say.

    python benchmarks/suite_data.py suite-data --shared DATA           the sets, once
    python benchmarks/suite.py run suite-data --jobs 16                hbmp and its rivals, 16, 32 and 64 bits
    python benchmarks/suite.py run suite-data --validation --variants settings.json --output variants.jsonl
    python benchmarks/suite.py report                                  ranks and margins of results/suite.jsonl
    python benchmarks/suite.py regret variants.jsonl                   leave-one-set-out regret of the variants
    python benchmarks/suite.py page                                    writes docs/suite.md

A cell is a set, a method with its settings, a code length, a seed. It is fitted in a process that keeps to one thread
and becomes one JSON line; cells that have a line are not run again. settings.json names variants of a method:
{"no contrast": {"contrast_share": 0}, "linear": {"function": ["linear", {"epochs": 20}]}}. With --validation, queries
and new rows are split from the training rows, so that nothing is chosen by the queries that are reported.

    own         mAP over the database, learned and new rows, by the method's own distance
    real        the same with real-valued queries
    new_own     mAP over the new rows of the database alone; new_real with real-valued queries
    seconds     of the fit; cpu_seconds of all its threads

mAP is over the full ranking, ties averaged, so that weights gain nothing from breaking them; multi-label rows are
relevant to a query when they share a label with it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import suite_report
from parallel_cells import measured, read_lines
from suite_cells import Cell, Rows, measure

METHODS = ("hbmp", "orthohash", "greedyhash", "sdr", "csq", "hashnet", "sdh", "cca_itq")


def grid(sets: Iterable[str], variants: dict, bits, seeds, split: str) -> list[Cell]:
    """The cells of all sets, variants {name: (method, settings)}, code lengths and seeds; the seeds come last."""
    return [
        Cell(name, variant, method, n_bits, seed, split, settings)
        for seed in seeds
        for n_bits in bits
        for name in sets
        for variant, (method, settings) in variants.items()
    ]


def open_cells(cells: list[Cell], output: Path, folder: Path) -> list[Cell]:
    """The cells that have no line yet, without those of single-label methods on multi-label sets."""
    from hbmp import get_method

    done = {line["key"] for line in read_lines(output)}
    multi_label = {name for name in {cell.set for cell in cells} if Rows.load(folder / f"{name}.npz").labels.ndim == 2}
    return [
        cell
        for cell in cells
        if cell.key not in done and not (cell.set in multi_label and get_method(cell.method).single_label)
    ]


def chosen_variants(options) -> dict[str, tuple[str, dict]]:
    """{name: (method, settings)}: the methods, or named variants of the first one, which --set applies to."""
    from hbmp.app.settings import read_value

    first = options.methods[0]
    common = {name: read_value(value) for name, _, value in (word.partition("=") for word in options.set)}
    if options.variants:
        named = json.loads(options.variants.read_text())
        return {name: (first, {**common, **settings}) for name, settings in named.items()}
    name = options.name or " ".join([first, *options.set])
    return {name: (first, common), **{other: (other, {}) for other in options.methods[1:]}}


def run_command(options) -> None:
    sets = options.sets or sorted(path.stem for path in options.folder.glob("*.npz"))
    split = "validation" if options.validation else "test"
    cells = grid(sets, chosen_variants(options), options.bits, options.seeds, split)
    cells = open_cells(cells, options.output, options.folder)
    work = partial(measure, folder=options.folder, read=options.readings)
    found = measured(work, [(cell,) for cell in cells], options.output, jobs=options.jobs, seconds=options.seconds)
    for number, (line, *_) in enumerate(found, 1):
        score = line.get("failed") or f"{line['own']:.3f} {line['real']:.3f} {line['seconds']:6.1f} s"
        print(f"{number}/{len(cells)} {line['key']} {score}", flush=True)


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = root.add_subparsers(required=True)
    runs = commands.add_parser("run", help="measure cells")
    runs.add_argument("folder", type=Path, help="what suite_data.py wrote")
    runs.add_argument("--sets", nargs="+", help="names; all of the folder without")
    runs.add_argument("--methods", nargs="+", default=list(METHODS))
    runs.add_argument("--bits", nargs="+", type=int, default=[16, 32, 64])
    runs.add_argument("--seeds", nargs="+", type=int, default=[0])
    runs.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the first method")
    runs.add_argument("--name", help="what reports call the first method, with what --set gives it")
    runs.add_argument("--variants", type=Path, help="JSON of named settings of the first method")
    runs.add_argument("--readings", action="store_true", help="measure the readings of each HBMP as well")
    runs.add_argument("--validation", action="store_true", help="split queries from the training rows")
    runs.add_argument("--jobs", type=int, default=1, help="processes")
    runs.add_argument("--seconds", type=float, default=math.inf, help="begin no cell after so long")
    runs.add_argument("--output", type=Path, default=suite_report.RESULTS)
    runs.set_defaults(command=run_command)
    suite_report.add_commands(commands)
    return root


def main() -> None:
    options = parser().parse_args()
    options.command(options)


if __name__ == "__main__":
    main()
