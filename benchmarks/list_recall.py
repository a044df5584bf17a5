"""Whether inverted lists reach the recall they are built for, with the real-valued queries of a model.

    python benchmarks/list_recall.py DATA              DATA holds the folders of SETS
    python benchmarks/list_recall.py --table           print the results there are as Markdown

A thousand rows of each set query the others. Three models are trained on 3,000 rows: 64 and 128 bits without labels and
32 bits with labels. For each, lists are built for recalls of 0.9, 0.95 and 0.99 without knowing the queries, and
searched with scores (`model.project`) and with codes (`model.transform`). The truth is the exact index.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import hbmp
from hbmp._core.machine import describe
from hbmp._core.table import Table

RESULTS = Path(__file__).parents[1] / "results" / "benchmark-list-recall.json"
SETS = ("newsgroups20", "gist22k", "cifar10-efficientnet-lite0", "coco")
MODELS, ASKED, N_QUERIES, N_TRAINING = ("unlabelled 64", "unlabelled 128", "labels 32"), (0.9, 0.95, 0.99), 1000, 3000
_SHORT = 0.02


def load(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels in a random order."""
    features = np.load(next(folder / name for name in ("features.npy", "gist.npy") if (folder / name).is_file()))
    if (folder / "labels.npz").is_file():
        labels = np.load(folder / "labels.npz")["labels"]
    else:
        labels = np.load(next(folder / name for name in ("labels.npy", "classes.npy") if (folder / name).is_file()))
    order = np.random.default_rng(0).permutation(len(features))
    return features[order].astype(np.float32), labels[order]


def fit(name: str, features: np.ndarray, labels: np.ndarray) -> hbmp.HBMP:
    """A model of one kind."""
    kind, n_bits = name.split()
    if kind == "labels":
        return hbmp.HBMP(int(n_bits), function="linear", random_state=0).fit(features, labels)
    return hbmp.HBMP(int(n_bits), random_state=0).fit(features)


def measure(name: str, folder: Path) -> list[dict]:
    """One row per model and recall asked for."""
    features, labels = load(folder)
    queries, items, rows = features[:N_QUERIES], features[N_QUERIES:], []
    for kind in MODELS:
        model = fit(kind, items[:N_TRAINING], labels[N_QUERIES : N_QUERIES + N_TRAINING])
        codes = model.transform(items)
        exact = hbmp.Index(codes.shape[1], model.bit_weights_).add(codes)
        asked = {"scores": model.project(queries), "codes": model.transform(queries)}
        for recall in ASKED:
            lists = hbmp.Index.build(codes, bit_weights=model.bit_weights_, kind="ivf", recall=recall)
            row = {"set": name, "items": len(items), "model": kind, "asked": recall}
            for k in (10, 100):
                row[f"recall_ at {k}"] = round(lists.recall_[k], 4)
                for how, some in asked.items():
                    kth = exact.search(some, k)[0][:, -1:]
                    row[f"{how} at {k}"] = round(float((lists.search(some, k)[0] <= kth).mean()), 4)
            rows.append(row)
            print(row, flush=True)
    return rows


def table(result: dict) -> str:
    """The least recall of each set and recall asked for, over models and numbers of results."""
    rows, lines = result["rows"], []
    for name in dict.fromkeys(row["set"] for row in rows):
        for asked in ASKED:
            some = [row for row in rows if (row["set"], row["asked"]) == (name, asked)]
            least = [min(row[f"{how} at {k}"] for row in some for k in (10, 100)) for how in ("scores", "codes")]
            measured = min(row[f"recall_ at {k}"] for row in some for k in (10, 100))
            lines.append((name, f"{some[0]['items']:,}", str(asked), *(f"{value:.3f}" for value in (*least, measured))))
    head = ("set", "items", "recall asked for", "least recall, scores", "least recall, codes", "least `recall_`")
    found = [min(row[f"scores at {k}"] for k in (10, 100)) - row["asked"] for row in rows]
    short = sum(each < -_SHORT for each in found)
    return (
        f"`{result['command']}`: {len(rows)} builds, {short} of them more than {_SHORT} short of the recall asked for; "
        f"the worst is {min(found):+.3f} from it.\n\n{Table(head, tuple(lines)).markdown()}"
    )


def main() -> None:
    """Measure, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the results there are as Markdown")
    options = parser.parse_args()
    if not options.table:
        rows = [row for name in options.sets for row in measure(name, options.data / name)]
        result = {"command": "python benchmarks/list_recall.py DATA", "machine": describe("cpu"), "rows": rows}
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(table(json.loads(options.output.read_text())))


if __name__ == "__main__":
    main()
