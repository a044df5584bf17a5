"""Detail bits beside label bits alone and bits without labels: the right kind, and the right ones.

    python benchmarks/detail_bits.py run FOLDER [--sets digits voc …] [--bits 32 64] [--seeds 0 1 2] [--jobs 16]
    python benchmarks/detail_bits.py again FOLDER --methods unlabelled    measures columns of all lines again
    python benchmarks/detail_bits.py page

FOLDER holds the sets of the development suite, see benchmarks/suite_data.py. Each set, code length and seed adds one
line to results/detail-bits.jsonl; a line that is there is not measured again. Each of `--jobs` processes keeps to one
thread. `page` writes the tables of docs/detail-bits.md.

    label       HBMP(n_bits)
    auto        HBMP(n_bits, detail_bits="auto")
    unlabelled  HBMP(n_bits) without labels

All learn from the training rows. The database is the training rows and the new rows in random order; ties are averaged.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np

import hbmp
from hbmp import metrics
from hbmp._core.table import Table
from parallel_cells import measured as measured_lines
from parallel_cells import read_lines
from suite_cells import Rows

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "detail-bits.jsonl"
PAGE = ROOT / "docs" / "detail-bits.md"
METHODS = ("label", "auto", "unlabelled")


def measure(path: Path, n_bits: int, seed: int, methods: Iterable[str] = METHODS) -> dict:
    """The line of one set, code length and seed."""
    rows = Rows.load(path)
    database = np.random.default_rng(seed).permutation(np.concatenate([rows.train, rows.new]))
    X, y = rows.features[rows.train], rows.labels[rows.train]
    found = {"set": path.stem, "bits": n_bits, "seed": seed}
    for name in methods:
        settings = {"detail_bits": "auto"} if name == "auto" else {}
        model = hbmp.HBMP(n_bits, device="cpu", random_state=seed, **settings)
        start = time.process_time()
        model.fit(X) if name == "unlabelled" else model.fit(X, y)
        found[name] = {"cpu_seconds": round(time.process_time() - start, 2), **scores(model, rows, database)}
    return found


def scores(model: hbmp.HBMP, rows: Rows, database: np.ndarray) -> dict:
    """mAP, recall and how far codes tell items apart; "real" is by real-valued queries."""
    (asked, own), (stored, theirs) = ((rows.features[part], rows.labels[part]) for part in (rows.query, database))
    codes, queries = model.transform(stored), {"": model.transform(asked), "_real": model.project(asked)}
    found: dict = {"detail_bits": model.detail_bits_, "total": model.plan_.detail_total}
    settings = {"bit_weights": model.bit_weights_, "ties": "average"}
    named = {"query_labels": own, "database_labels": theirs}
    for kind, query in queries.items():
        precision = metrics.mean_average_precision(query, codes, own, theirs, **settings)
        recall = metrics.neighbour_recall(query, codes, asked, stored, **named, **settings)
        found |= {f"map{kind}": round(precision, 5), f"recall{kind}": round(recall, 5)}
    tied = metrics.tied_share(queries[""], codes, bit_weights=model.bit_weights_)
    first = metrics.self_first_share(codes, stored)
    return {**found, "first": round(first, 5), "tied": round(tied, 5), "distinct": metrics.distinct_codes(codes)}


def open_cells(options: argparse.Namespace) -> list[tuple[Path, int, int]]:
    """Sets, code lengths and seeds that have no line yet, large sets first."""
    done = {(line["set"], line["bits"], line["seed"]) for line in read_lines(options.output)}
    paths = sorted(options.folder.glob("*.npz"), key=lambda path: (-path.stat().st_size, path.stem))
    chosen = [path for path in paths if not options.sets or path.stem in options.sets]
    cells = product(chosen, sorted(options.bits, reverse=True), options.seeds)
    return [cell for cell in cells if (cell[0].stem, *cell[1:]) not in done]


def run(options: argparse.Namespace) -> None:
    """Measure what is missing, until the minutes are spent."""
    seconds = 60 * options.minutes
    for (line,) in measured_lines(_lines, open_cells(options), options.output, jobs=options.jobs, seconds=seconds):
        print(json.dumps(line), flush=True)


def _lines(*cell) -> list[dict]:
    return [measure(*cell)]


def run_again(options: argparse.Namespace) -> None:
    """Measure some methods of all lines again."""
    lines = read_lines(RESULTS)
    for place, line in enumerate(lines):
        path = options.folder / f"{line['set']}.npz"
        lines[place] = line | measure(path, line["bits"], line["seed"], options.methods)
        print(json.dumps(lines[place]), flush=True)
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines))


def averaged(lines: list[dict], n_bits: int) -> dict[str, dict[str, dict[str, float]]]:
    """Mean over seeds by set, method and score."""
    chosen = [line for line in lines if line["bits"] == n_bits]
    return {
        name: {
            method: {
                score: float(np.mean([line[method][score] for line in chosen if line["set"] == name]))
                for score in chosen[0][method]
            }
            for method in METHODS
        }
        for name in sorted({line["set"] for line in chosen})
    }


def page_table(lines: list[dict], n_bits: int) -> str:
    """One row per set: class mAP, recall within the class, and how often an item finds itself."""
    rows = tuple(
        (
            name,
            f"{found['auto']['detail_bits']:.0f}",
            *(f"{100 * found[method]['map']:.1f}" for method in METHODS),
            f"{100 * (found['auto']['map'] - found['label']['map']):+.1f}",
            *(f"{100 * found[method]['recall']:.1f}" for method in METHODS),
            *(f"{100 * found[method]['first']:.1f}" for method in METHODS),
        )
        for name, found in averaged(lines, n_bits).items()
    )
    head = ["set", "detail bits", *(f"mAP, {method}" for method in METHODS), "cost"]
    head += [f"{what}, {method}" for what in ("recall", "itself first") for method in METHODS]
    return Table(tuple(head), rows).markdown()


def summary(lines: list[dict], n_bits: int) -> str:
    """The targets in one paragraph, for binary and for real-valued queries."""
    sets = averaged(lines, n_bits).values()
    parts = []
    for kind, words in (("", "binary"), ("_real", "real-valued")):
        cost = [100 * (found["auto"][f"map{kind}"] - found["label"][f"map{kind}"]) for found in sets]
        recall = {method: np.array([found[method][f"recall{kind}"] for found in sets]) for method in METHODS}
        ratio = recall["auto"].mean() / recall["label"].mean()
        parts.append(
            f"- **{words.capitalize()} queries.** Class mAP changes by {np.mean(cost):+.2f} points on average and by "
            f"{min(cost):+.2f} at worst. Recall is {100 * recall['auto'].mean():.1f} % on average, {ratio:.1f} times "
            f"that of label bits ({100 * recall['label'].mean():.1f} %); bits without labels reach "
            f"{100 * recall['unlabelled'].mean():.1f} %. Detail bits reach at least as much as those on "
            f"{np.sum(recall['auto'] >= recall['unlabelled'])} of {len(cost)} sets, and at most two points less on "
            f"{np.sum((recall['auto'] < recall['unlabelled']) & (recall['auto'] >= recall['unlabelled'] - 0.02))} more."
        )
    reached = {method: sum(found[method]["first"] >= 0.99 for found in sets) for method in METHODS}
    parts.append(
        "- **An indexed item searched again** comes first in at least 99 % of cases on "
        f"{reached['auto']} of {len(sets)} sets, with label bits on {reached['label']}, with bits without labels on "
        f"{reached['unlabelled']}. The share of queries whose first ten results are all tied falls from "
        f"{_share(sets, 'label', 'tied')} to {_share(sets, 'auto', 'tied')} on average."
    )
    return "\n".join(parts)


def _share(sets, method: str, score: str) -> str:
    return f"{100 * np.mean([found[method][score] for found in sets]):.0f} %"


def measured(lines: list[dict]) -> str:
    """The part of the page between its marks."""
    parts = []
    for n_bits in sorted({line["bits"] for line in lines}, reverse=True):
        seeds = sorted({line["seed"] for line in lines if line["bits"] == n_bits})
        named = ", ".join(map(str, seeds))
        parts += [f"### {n_bits} bits, seed {named}", summary(lines, n_bits), page_table(lines, n_bits)]
    return "\n\n".join(parts)


def write_page(options: argparse.Namespace) -> None:
    """Put tables into the page."""
    del options
    put("measured", measured(read_lines(RESULTS)))


def put(name: str, shown: str) -> None:
    """Put text between the marks of this name in docs/detail-bits.md."""
    start, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = PAGE.read_text().split(start)
    PAGE.write_text(f"{before}{start}\n\n{shown}\n\n{end}{rest.split(end)[1]}")


def parser() -> argparse.ArgumentParser:
    """The commands."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(required=True)
    running = commands.add_parser("run", help="measure what is missing")
    running.add_argument("folder", type=Path)
    running.add_argument("--sets", nargs="*")
    running.add_argument("--bits", nargs="*", type=int, default=[32, 64])
    running.add_argument("--seeds", nargs="*", type=int, default=[0])
    running.add_argument("--minutes", type=float, default=float("inf"))
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--output", type=Path, default=RESULTS)
    running.set_defaults(command=run)
    again = commands.add_parser("again", help="measure columns of all lines again")
    again.add_argument("folder", type=Path)
    again.add_argument("--methods", nargs="+", choices=METHODS, required=True)
    again.set_defaults(command=run_again)
    commands.add_parser("page", help="write the tables of docs/detail-bits.md").set_defaults(command=write_page)
    return found


if __name__ == "__main__":
    arguments = parser().parse_args()
    arguments.command(arguments)
