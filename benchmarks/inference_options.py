"""What each option of the pursuit brings: fit, separation and retrieval, on real data.

    python benchmarks/inference_options.py                      digits only
    python benchmarks/inference_options.py --data-dir DIR       also DIR/cifar10-efficientnet-lite0 and DIR/coco

Every row fits HBMP with a linear hash function; mAP is tie-aware (mAP@5000 on COCO), mean over the seeds. Writes
results/inference-options.json, from which `--table` prints Markdown and `--fill docs/inference.md` writes it there.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import hbmp
from hbmp.functions import Linear
from hbmp.metrics import mean_average_precision

RESULTS = Path(__file__).parent.parent / "results" / "inference-options.json"
OPTIONS = {
    "constant": {"scheme": "constant"},
    "greedy": {"scheme": "greedy"},
    "regress, none": {"improve": "none"},
    "regress, resample": {"improve": "resample"},
    "regress, one-flip": {},
    "regress, tabu": {"improve": "tabu", "restarts": 4},
    "one-flip, 1 start": {"restarts": 1},
    "one-flip, intercept": {"intercept": True},
    "one-flip, ridge 0.01": {"weighting": "ridge", "ridge": 0.01},
    "one-flip, ridge 0.1": {"weighting": "ridge", "ridge": 0.1},
    "one-flip, ridge 1": {"weighting": "ridge", "ridge": 1.0},
    "one-flip, non-negative": {"weighting": "non-negative"},
    "one-flip, refine 3": {"refine": 3},
    "one-flip, count": {"item_weights": "count"},
    "one-flip, sqrt-count": {"item_weights": "sqrt-count"},
}
UNEVEN = ("one-flip, count", "one-flip, sqrt-count")  # only where some items stand for more instances than others


def digits(seed, folder):
    X, y = load_digits(return_X_y=True)
    train, queries, train_y, query_y = train_test_split(X, y, test_size=400, random_state=seed, stratify=y)
    return train, train_y, queries, query_y, train, train_y, None


def cifar10(seed, folder):
    X = np.load(folder / "cifar10-efficientnet-lite0/features.npy").astype(np.float32)
    y = np.load(folder / "cifar10-efficientnet-lite0/labels.npy")
    rng = np.random.default_rng(seed)
    order = [rng.permutation(np.flatnonzero(y == label)) for label in range(10)]
    query, train = (np.concatenate([rows[part] for rows in order]) for part in (slice(100), slice(100, 600)))
    rest = np.setdiff1d(np.arange(len(y)), query)[::3]
    return X[train], y[train], X[query], y[query], X[rest], y[rest], None


def coco(seed, folder):
    X, stored = np.load(folder / "coco/features.npy").astype(np.float32), np.load(folder / "coco/labels.npz")
    y, split = stored["labels"], stored["split"]
    query, train, rest = np.flatnonzero(split == 0)[seed::4], np.flatnonzero(split == 1), np.flatnonzero(split > 0)[::2]
    return X[train], y[train], X[query], y[query], X[rest], y[rest], 5000


def measure(data, n_bits, seed, options):
    train, train_y, queries, query_y, database, database_y, cutoff = data
    model = hbmp.HBMP(n_bits, function=Linear(), random_state=seed, **options).fit(train, train_y)
    book = model.codebook_
    apart = (n_bits - book.codes.astype(np.int32) @ book.codes.T) // 2
    codes = model.transform(queries), model.transform(database), query_y, database_y
    settings = {"cutoff": cutoff, "ties": "average"}
    return {
        "residual": float(book.relative_residuals[-1]),
        "nearest": int(apart[np.triu_indices(len(apart), 1)].min()),
        "unmatched": model.unmatched_,
        "plain": mean_average_precision(*codes, **settings),
        "weighted": mean_average_precision(*codes, bit_weights=model.bit_weights_, **settings),
    }


SETS = {"digits": digits, "cifar10": cifar10, "coco": coco}


def run(folder, seeds, bits, sets):
    rows = []
    for name in sets:
        load = SETS[name]
        if name != "digits" and folder is None:
            continue
        for option, settings in OPTIONS.items():
            if option in UNEVEN and name != "coco":
                continue
            for n_bits in bits:
                scores = [measure(load(seed, folder), n_bits, seed, settings) for seed in range(seeds)]
                mean = {key: float(np.mean([score[key] for score in scores])) for key in scores[0]}
                rows.append({"data": name, "option": option, "bits": n_bits, "seeds": seeds, **mean})
                print(json.dumps(rows[-1]), flush=True)
    given = f"--data-dir DIR --sets {' '.join(sets)} --seeds {seeds} --bits {' '.join(map(str, bits))}"
    command = f"python benchmarks/inference_options.py {given}"
    RESULTS.write_text(json.dumps({"command": command, "rows": rows}, indent=1) + "\n")


def table():
    """The stored results as Markdown, one table per data set; a cell holds one number per code length."""
    rows = json.loads(RESULTS.read_text())["rows"]
    bits = sorted({row["bits"] for row in rows})
    lengths = " / ".join(map(str, bits))
    parts = [f"Cells hold {lengths} bits; mAP is tie-aware, by plain and by weighted Hamming distance."]
    for name in dict.fromkeys(row["data"] for row in rows):
        seeds = sorted({row["seeds"] for row in rows if row["data"] == name})
        lines = [
            f"**{name}**, seeds per cell: {' or '.join(map(str, seeds))}",
            "",
            "| option | relative residual | distance of the nearest target codes | mAP plain | mAP weighted |",
            "|:---|---:|---:|---:|---:|",
        ]
        for option in dict.fromkeys(row["option"] for row in rows if row["data"] == name):
            found = {row["bits"]: row for row in rows if row["data"] == name and row["option"] == option}
            lines.append(f"| {option} | {' | '.join(cells(found, bits))} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def cells(found, bits):
    """The texts of one row, code lengths side by side; a dash where a length was not run."""
    for key, digits in (("residual", 3), ("nearest", 1), ("plain", 3), ("weighted", 3)):
        yield " / ".join(f"{found[n][key]:.{digits}f}" if n in found else "—" for n in bits)


def fill(text):
    """A page with the tables of the stored results between its markers."""
    marked = r"(<!-- inference-options -->\n).*?(<!-- /inference-options -->)"
    return re.sub(marked, lambda match: f"{match[1]}\n{table()}\n\n{match[2]}", text, flags=re.S)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", choices=SETS, nargs="+", default=list(SETS))
    parser.add_argument("--bits", type=int, nargs="+", default=[16, 32, 48])
    parser.add_argument("--table", action="store_true", help="print the stored results as Markdown")
    parser.add_argument("--fill", type=Path, metavar="PAGE", help="write them between the markers of a page")
    given = parser.parse_args()
    if given.fill:
        given.fill.write_text(fill(given.fill.read_text()))
    elif given.table:
        print(table())
    else:
        run(given.data_dir, given.seeds, given.bits, given.sets)
