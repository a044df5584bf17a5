"""Prefixes: one 128-bit HBMP cut to shorter lengths, against codes trained for each length and against NHL.

    python benchmarks/prefixes.py run SUITE_DATA      writes results/prefixes.jsonl
    python benchmarks/prefixes.py table               prints the tables of docs/codes.md

A prefix of HBMP has the weights that its code book gives for that length (`codebook_.weights_for(k)`), shrunk as the
model shrinks its own. NHL trains all lengths at once.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from suite_cells import Rows

RESULTS = Path(__file__).parents[1] / "results" / "prefixes.jsonl"
SETS = ("cifar", "voc-objects", "news-wide", "complaints", "newsgroups", "reuters", "kinds")
BITS = (8, 16, 32, 64, 128)
NAMES = {
    "prefix": "prefix of 128 bits",
    "separate": "trained for the length",
    "nhl": "NHL",
}


def map_of(codes, rows: Rows, weights=None) -> float:
    """mAP over the database of learned and new rows; codes of all rows."""
    from hbmp.metrics import mean_average_precision

    database = np.concatenate([rows.train, rows.new])
    asked, stored = rows.labels[rows.query], rows.labels[database]
    return round(
        float(
            mean_average_precision(
                codes[rows.query], codes[database], asked, stored, bit_weights=weights, ties="average"
            )
        ),
        5,
    )


def weights_for(model, length: int) -> np.ndarray:
    """Weights of the first bits of a fitted HBMP."""
    from hbmp.methods.hbmp.targets import shrink

    return shrink(model.codebook_.weights_for(length), model.plan_.weight_share)


def measure(rows: Rows, seed: int, kinds):
    """(kind, bits, mAP, CPU seconds of the fit) of one set and seed."""
    import hbmp

    X, train = rows.features, rows.train

    def fitted(name, n_bits, **given):
        began = time.process_time()
        model = hbmp.get_method(name)(n_bits, random_state=seed, device="cpu", **given)
        model.fit(X[train], rows.labels[train])
        return model, model.transform(X), round(time.process_time() - began, 1)

    def prefixes(kind, model, codes, seconds):
        for length in BITS:
            weights = None if kind == "nhl" else weights_for(model, length)
            yield kind, length, map_of(codes[:, :length], rows, weights), seconds

    if {"prefix", "separate"} & set(kinds):
        longest = fitted("hbmp", max(BITS))
    if "prefix" in kinds:
        yield from prefixes("prefix", *longest)
    if "separate" in kinds:
        for length in BITS:
            model, codes, seconds = longest if length == max(BITS) else fitted("hbmp", length)
            yield "separate", length, map_of(codes, rows, model.bit_weights_), seconds
    if "nhl" in kinds:
        yield from prefixes("nhl", *fitted("nhl", max(BITS)))


def run(folder: Path, sets, seeds) -> None:
    import torch

    torch.set_num_threads(1)
    done = {(line["set"], line["seed"], line["kind"]) for line in stored()}
    for name in sets:
        for seed in seeds:
            kinds = [kind for kind in NAMES if (name, seed, kind) not in done]
            if not kinds:
                continue
            began = time.process_time()
            found = list(measure(Rows.load(folder / f"{name}.npz"), seed, kinds))
            with RESULTS.open("a") as file:
                for kind, bits, value, seconds in found:
                    line = {"set": name, "seed": seed, "kind": kind, "bits": bits, "map": value, "fit_cpu_s": seconds}
                    file.write(json.dumps(line) + "\n")
            print(name, seed, f"{time.process_time() - began:.0f} CPU-s", flush=True)


def stored() -> list[dict]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def means_of(lines: list[dict]) -> dict[tuple[str, str], dict[int, float]]:
    """{(set, kind): {bits: mean mAP over seeds}}"""
    found: dict = {}
    for line in lines:
        found.setdefault((line["set"], line["kind"]), {}).setdefault(line["bits"], []).append(line["map"])
    return {key: {bits: float(np.mean(values)) for bits, values in row.items()} for key, row in found.items()}


def sets_of(lines: list[dict]) -> list[str]:
    """The sets that were measured, in the order of SETS."""
    measured = {line["set"] for line in lines}
    return [*(name for name in SETS if name in measured), *sorted(measured - set(SETS))]


def table(lines: list[dict]) -> str:
    """Mean mAP over seeds: one row per set and kind, one column per length."""
    means = means_of(lines)
    out = ["| set | codes | " + " | ".join(f"{bits} bits" for bits in BITS) + " |", "|:---|:---|" + "---:|" * len(BITS)]
    for name in sets_of(lines):
        for kind, shown in NAMES.items():
            if row := means.get((name, kind)):
                out.append(f"| {name} | {shown} | " + " | ".join(f"{row[bits]:.3f}" for bits in BITS) + " |")
    return "\n".join(out)


def lead_table(lines: list[dict]) -> str:
    """Points by which prefixes lead: the mean over sets, and the least of them in brackets."""
    means = means_of(lines)
    head = ["points", "sets", *(f"{bits} bits" for bits in BITS)]
    out = ["| " + " | ".join(head) + " |", "|:---|" + "---:|" * (len(head) - 1)]
    for ours in ("prefix", "short"):
        for other in ("separate", "nhl"):
            rows = [(means[name, ours], means[name, other]) for name, kind in means if kind == ours]
            leads = [[100 * (mine[bits] - theirs[bits]) for mine, theirs in rows] for bits in BITS]
            if rows:
                cells = " | ".join(f"{np.mean(lead):+.1f} ({min(lead):+.1f})" for lead in leads)
                out.append(f"| {NAMES[ours]}, less {NAMES[other]} | {len(rows)} | {cells} |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="measure")
    runs.add_argument("folder", type=Path, help="what suite_data.py wrote")
    runs.add_argument("--sets", nargs="+", default=SETS)
    runs.add_argument("--seeds", nargs="+", type=int, default=[0])
    commands.add_parser("table", help="print the tables")
    given = parser.parse_args()
    if given.command == "run":
        run(given.folder, given.sets, given.seeds)
    else:
        print(table(stored()), lead_table(stored()), sep="\n\n")


if __name__ == "__main__":
    main()
