"""Codes alone: target codes of classes from five sources, learned by one identical function under one identical loss.

    python benchmarks/codes_alone.py run SUITE_DATA      writes results/codes-alone.jsonl
    python benchmarks/codes_alone.py table               prints the tables of docs/codes.md

The bits of all sources are the outputs of one kernel function (1,000 anchors) with the hinge loss of each bit. So they
have the same anchors, batches, steps and learning rates, and only the code books differ. All distances are plain
Hamming distances.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from suite_cells import Rows

RESULTS = Path(__file__).parents[1] / "results" / "codes-alone.jsonl"
SETS = ("digits", "cifar", "voc-objects", "kinds", "complaints", "newsgroups", "reuters", "licences")
BITS = (16, 32, 64)
NAMES = {"hbmp": "HBMP", "shc": "SHC", "mdsh": "MDSH", "hadamard": "Hadamard", "random": "random"}


def code_books(X: np.ndarray, y: np.ndarray, n_bits: int, seed: int, similarity: np.ndarray) -> dict[str, np.ndarray]:
    """Codes of the classes (c, n_bits) from each source; every choice is made on these training rows."""
    import hbmp
    from hbmp.functions import Linear
    from hbmp.methods._shared.centres import bernoulli_centres, make_centres
    from hbmp.methods._shared.separated import gilbert_varshamov, separated_centres
    from hbmp.methods.mdsh import sum_of_products
    from hbmp.methods.shc import semantic_centres

    n_classes = len(np.unique(y))

    def rng():
        return np.random.default_rng(seed)

    ours = hbmp.HBMP(n_bits, function=Linear(epochs=1), random_state=seed).fit(X, y)  # only its code book is used
    start, distance = bernoulli_centres(n_classes, n_bits, rng()), gilbert_varshamov(n_classes, n_bits)
    books = {
        "hbmp": ours.codebook_.codes,
        "shc": semantic_centres(similarity, n_bits, rng()),
        "mdsh": separated_centres(start, sum_of_products, distance, rng()),
        "random": rng().choice([-1, 1], (n_classes, n_bits)),
    }
    if n_classes <= 2 * n_bits:
        books["hadamard"] = make_centres("hadamard", n_classes, n_bits, rng())
    return {name: book.astype(np.int8) for name, book in books.items()}


def measure(rows: Rows, name: str, seed: int):
    """The lines of one set and seed."""
    from hbmp.functions import Kernel
    from hbmp.hamming import signs
    from hbmp.methods import SHC
    from hbmp.methods._shared.centres import nearest
    from hbmp.metrics import mean_average_precision

    X, y = rows.features, rows.labels
    classes, item_of = np.unique(y[rows.train], return_inverse=True)
    one_hot = np.eye(len(classes), dtype=np.float32)[item_of]
    comparing = SHC(random_state=seed)
    comparing.prepare(X[rows.train], one_hot, seed)
    books = {
        (bits, source): book
        for bits in BITS
        for source, book in code_books(X[rows.train], y[rows.train], bits, seed, comparing.similarity_).items()
    }
    targets = np.concatenate([book[item_of] for book in books.values()], axis=1)
    function = Kernel(n_anchors=1000, device="cpu").fit(X[rows.train], targets, random_state=seed)
    database = np.concatenate([rows.train, rows.new])
    scores = {part: function.project(X[place]) for part, place in (("query", rows.query), ("database", database))}
    known = np.isin(y[rows.query], classes)
    place = np.searchsorted(classes, y[rows.query][known])
    ends = np.cumsum([0, *(book.shape[1] for book in books.values())])
    for (bits, source), book, begin in zip(books, books.values(), ends[:-1], strict=True):
        asked, stored = (signs(scores[part][:, begin : begin + bits]) for part in ("query", "database"))
        new = stored[len(rows.train) :]
        labels = y[rows.query]
        yield {
            "set": name,
            "bits": bits,
            "seed": seed,
            "codes": source,
            "map": round(mean_average_precision(asked, stored, labels, y[database], ties="average"), 5),
            "new_map": round(mean_average_precision(asked, new, labels, y[rows.new], ties="average"), 5),
            "bit_error": round(float((asked[known] != book[place]).mean()), 5),
            "nearest": nearest(book),
        }


def run(folder: Path, sets, seeds) -> None:
    import torch

    torch.set_num_threads(1)
    done = {(line["set"], line["seed"]) for line in stored()}
    for name in sets:
        for seed in seeds:
            if (name, seed) in done:
                continue
            began = time.process_time()
            lines = list(measure(Rows.load(folder / f"{name}.npz"), name, seed))
            with RESULTS.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
            print(name, seed, f"{time.process_time() - began:.0f} CPU-s", flush=True)


def stored() -> list[dict]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def table(lines: list[dict]) -> str:
    """Mean mAP over seeds: one row per set and length, one column per source; bold is the best."""
    groups = grouped(lines)
    seeds = len({line["seed"] for line in lines})
    out = [
        f"mAP, mean of {seeds} seeds, and in brackets the share of query bits that miss the code of their class.",
        "",
        "| set | bits | " + " | ".join(NAMES.values()) + " |",
        "|:---|---:|" + "---:|" * len(NAMES),
    ]
    order = {name: place for place, name in enumerate(SETS)}
    for (name, bits), column in sorted(groups.items(), key=lambda each: (order.get(each[0][0], 99), each[0])):
        means = {source: np.mean([line["map"] for line in group]) for source, group in column.items()}
        errors = {source: np.mean([line["bit_error"] for line in group]) for source, group in column.items()}

        def shown(source, means=means, errors=errors):
            if source not in means:
                return "—"
            text = f"{means[source]:.3f}"
            return (f"**{text}**" if means[source] == max(means.values()) else text) + f" ({errors[source]:.2f})"

        out.append(f"| {name} | {bits} | " + " | ".join(map(shown, NAMES)) + " |")
    return "\n".join(out)


def grouped(lines: list[dict]) -> dict[tuple[str, int], dict[str, list[dict]]]:
    """{(set, bits): {source: lines of all seeds}}"""
    found: dict = {}
    for line in lines:
        found.setdefault((line["set"], line["bits"]), {}).setdefault(line["codes"], []).append(line)
    return found


def leads(lines: list[dict], measure: str = "map") -> dict[tuple[str, int | None], list[float]]:
    """{(other source, bits): points by which HBMP's codes lead, one number per set}; bits None is the mean of lengths.

    A number is the mean over the seeds of both sources.
    """
    found: dict = {}
    for (name, bits), column in grouped(lines).items():
        for source in column.keys() - {"hbmp"}:
            theirs = {line["seed"]: line[measure] for line in column[source]}
            lead = [100 * (line[measure] - theirs[line["seed"]]) for line in column["hbmp"] if line["seed"] in theirs]
            found.setdefault(source, {}).setdefault(name, {})[bits] = float(np.mean(lead))
    out: dict = {}
    for source, sets in found.items():
        for by_length in sets.values():
            for bits, lead in by_length.items():
                out.setdefault((source, bits), []).append(lead)
            out.setdefault((source, None), []).append(float(np.mean(list(by_length.values()))))
    return out


def interval(values: list[float]) -> float:
    """Half the 95 % interval of a mean over sets, by Student's t."""
    from scipy.stats import t

    return float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def lead_table(lines: list[dict]) -> str:
    """Points by which HBMP's codes lead: one row per source, one column per length, then their mean."""
    found = {measure: leads(lines, measure) for measure in ("map", "new_map")}
    columns = [*((f"{bits} bits", "map", bits) for bits in BITS), ("all lengths", "map", None)]
    columns.append(("all lengths, new rows only", "new_map", None))
    out = ["| HBMP less | " + " | ".join(name for name, *_ in columns) + " |", "|:---|" + "---:|" * len(columns)]
    for source, name in NAMES.items():
        if source != "hbmp":
            cells = [found[measure][source, bits] for _, measure, bits in columns]
            shown = [f"{np.mean(leads):+.1f} ± {interval(leads):.1f} ({len(leads)})" for leads in cells]
            out.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="measure")
    runs.add_argument("folder", type=Path, help="what suite_data.py wrote")
    runs.add_argument("--sets", nargs="+", default=SETS)
    runs.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    commands.add_parser("table", help="print the tables")
    given = parser.parse_args()
    if given.command == "run":
        run(given.folder, given.sets, given.seeds)
    else:
        print(table(stored()), lead_table(stored()), sep="\n\n")


if __name__ == "__main__":
    main()
