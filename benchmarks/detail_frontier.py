"""What detail bits could reach: mAP, recall and distinct codes for each number of them, set by set.

    python benchmarks/detail_frontier.py run FOLDER [--sets digits voc …] [--bits 64] [--seeds 0] [--jobs 16]
    python benchmarks/detail_frontier.py page

FOLDER holds the sets of the development suite, see benchmarks/suite_data.py. Each set, seed and number of detail bits
adds lines to results/detail-frontier.jsonl, one for each weight of a detail bit; what is there is not measured again.
A weight of 0 stands for details that break ties, others are in label bits. Label bits and bits without labels are
those of results/detail-bits.jsonl, which `page` reads too: it writes for each set what it costs to find as much as bits
without labels, and to tell 99 % of the items apart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

import hbmp
from detail_bits import RESULTS as CHOSEN
from detail_bits import averaged, put, scores
from hbmp._core.table import Table
from hbmp.methods.hbmp.detail import join_weights
from parallel_cells import measured, read_lines
from suite_cells import Rows

RESULTS = Path(__file__).parents[1] / "results" / "detail-frontier.jsonl"
SHARES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 15)  # sixteenths of the bits
WEIGHTS = (0, 0.2, 0.5)
APART = 0.99
CHEAP = 0.005  # loss in mAP


def measure(path: Path, n_bits: int, seed: int, details: int) -> list[dict]:
    """The lines of one set, code length, seed and number of detail bits."""
    rows = Rows.load(path)
    database = np.random.default_rng(seed).permutation(np.concatenate([rows.train, rows.new]))
    model = hbmp.HBMP(n_bits, detail_bits=details, device="cpu", random_state=seed)
    model.fit(rows.features[rows.train], rows.labels[rows.train])
    cell = {"set": path.stem, "bits": n_bits, "seed": seed, "details": details}
    lines, breaking = [], model.plan_.detail_total
    for weight in WEIGHTS:
        total = max(weight * details, breaking)
        model.bit_weights_ = join_weights(model.bit_weights_[:-details], model.encoder_.detail.weights_, total)
        lines.append({**cell, "weight": weight, **scores(model, rows, database)})
    return lines


def run(options: argparse.Namespace) -> None:
    """Measure what is missing."""
    done = {(line["set"], line["bits"], line["seed"], line["details"]) for line in read_lines(options.output)}
    paths = sorted(options.folder.glob("*.npz"), key=lambda path: (-path.stat().st_size, path.stem))
    chosen = [path for path in paths if not options.sets or path.stem in options.sets]
    shares = [share * options.bits // 16 for share in SHARES]
    cells = [
        (path, options.bits, seed, details)
        for path, seed, details in product(chosen, options.seeds, shares)
        if (path.stem, options.bits, seed, details) not in done
    ]
    for found in measured(measure, cells, options.output, jobs=options.jobs):
        print(*map(json.dumps, found), sep="\n", flush=True)


def cheapest(lines: list[dict], enough: Callable[[dict], bool]) -> dict | None:
    """The line with the highest mAP that is enough."""
    return max((line for line in lines if enough(line)), key=lambda line: line["map"], default=None)


def price(found: dict | None, label: dict) -> str:
    """Price, number and weight of the detail bits of a line."""
    if found is None:
        return "never"
    weight = f" of {found['weight']}" if found["weight"] else ""
    return f"{100 * (label['map'] - found['map']):.1f} ({found['details']}{weight})"


def mean_lines(lines: list[dict]) -> list[dict]:
    """The mean over seeds for each number and weight of detail bits."""
    kinds = sorted({(line["details"], line["weight"]) for line in lines})
    groups = {kind: [line for line in lines if (line["details"], line["weight"]) == kind] for kind in kinds}
    return [
        {"details": details, "weight": weight}
        | {name: float(np.mean([line[name] for line in group])) for name in ("map", "recall", "first")}
        for (details, weight), group in groups.items()
    ]


def content(lines: list[dict], chosen: list[dict], n_bits: int) -> str:
    """How many sets reach each target at what price, and a row per set."""
    seeds = {line["seed"] for line in lines}
    reference = averaged([line for line in chosen if line["seed"] in seeds], n_bits)
    rows, reached, apart = [], [], []
    for name, found in reference.items():
        own = mean_lines([line for line in lines if line["set"] == name and line["bits"] == n_bits])
        if not own:
            continue
        wanted, label = found["unlabelled"]["recall"], found["label"]
        reached.append((cheapest(own, lambda line, wanted=wanted: line["recall"] >= wanted), label))
        apart.append((cheapest(own, lambda line: line["first"] >= APART), label))
        best = max(line["recall"] for line in own)
        rows.append((name, f"{100 * wanted:.1f}", f"{100 * best:.1f}", price(*reached[-1]), price(*apart[-1])))
    head = ("set", "recall, unlabelled", "highest recall", "price of the recall", "price of 99 % first")
    return f"{counts(reached, apart)}\n\n{Table(head, tuple(rows)).markdown()}"


def counts(reached: list[tuple], apart: list[tuple]) -> str:
    """On how many sets each target is cheap, and on how many it is out of reach."""

    def cheap(pairs: list[tuple]) -> int:
        return sum(line is not None and label["map"] - line["map"] <= CHEAP for line, label in pairs)

    def never(pairs: list[tuple]) -> int:
        return sum(line is None for line, _ in pairs)

    return (
        f"For at most {100 * CHEAP:.1f} points of mAP, detail bits can reach the recall of bits without labels on "
        f"{cheap(reached)} of {len(reached)} sets, and 99 % of the items can come first on {cheap(apart)}. "
        f"At any price, the recall is out of reach on {never(reached)} sets and 99 % on {never(apart)}."
    )


def write_page(options: argparse.Namespace) -> None:
    """Put the table into the page."""
    put("frontier", content(read_lines(RESULTS), read_lines(CHOSEN), options.bits))


def parser() -> argparse.ArgumentParser:
    """The commands."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = found.add_subparsers(required=True)
    running = commands.add_parser("run", help="measure what is missing")
    running.add_argument("folder", type=Path)
    running.add_argument("--sets", nargs="*")
    running.add_argument("--seeds", nargs="*", type=int, default=[0])
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--output", type=Path, default=RESULTS)
    running.set_defaults(command=run)
    paging = commands.add_parser("page", help="write the table of docs/detail-bits.md")
    paging.set_defaults(command=write_page)
    for command in (running, paging):
        command.add_argument("--bits", type=int, default=64)
    return found


if __name__ == "__main__":
    arguments = parser().parse_args()
    arguments.command(arguments)
