"""What rescoring brings and costs: bytes per item, recall of the true ten, milliseconds per query.

    python benchmarks/rescoring.py run DATA --sets newsgroups20 coco    writes results/benchmark-rescoring.json
    python benchmarks/rescoring.py --table                              prints its table as Markdown

DATA/SET/features.npy holds the vectors of a set. 500 rows are queries, all others the database and the training rows of
HBMP without labels, at one bit and at a quarter of a bit per dimension. The true ten are those of the float32 vectors
by cosine. Vectors for rescoring are a float16 or int8 memory map. Milliseconds are wall time of one thread, one query
at a time: the median over all queries of the search alone, without the encoding of the query.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np

import hbmp
from hbmp._core.machine import describe
from hbmp._core.table import Table

RESULTS = Path(__file__).parents[1] / "results" / "benchmark-rescoring.json"
QUERIES, K = 500, 10
RATIOS = (0.25, 1.0)  # bits per dimension

Ids = np.ndarray
Search = Callable[[int], Ids]  # the first ten of one query, by its position


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of unit length."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def measured(search: Search, nearest: Ids) -> dict[str, float]:
    """Recall of the true ten, and the median milliseconds of a query."""
    found, seconds = [], []
    search(0)
    for place in range(len(nearest)):
        start = time.perf_counter()
        found.append(search(place))
        seconds.append(time.perf_counter() - start)
    hits = [len(set(row.tolist()) & set(true.tolist())) / K for row, true in zip(found, nearest, strict=True)]
    return {"recall": round(float(np.mean(hits)), 4), "ms": round(1000 * float(np.median(seconds)), 3)}


def quantised(vectors: np.ndarray) -> tuple[np.ndarray, float]:
    """int8 numbers and their common scale."""
    scale = float(np.abs(vectors).max()) / 127
    return np.round(vectors / scale).astype(np.int8), scale


def mapped(folder: Path, name: str, vectors: np.ndarray) -> np.ndarray:
    """The vectors as a memory map."""
    np.save(folder / f"{name}.npy", vectors)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def ways(queries: np.ndarray, database: np.ndarray, n_bits: int, folder: Path):
    """(name, bytes per item in memory, bytes per item on disk, search) of each way to search with n_bits."""
    model = hbmp.HBMP(n_bits, random_state=0).fit(database)
    index = hbmp.Index(n_bits, bit_weights=model.bit_weights_).add(model.transform(database))
    codes, scores = model.transform(queries), model.project(queries)
    half, (small, scale) = mapped(folder, "half", database.astype(np.float16)), quantised(database)
    eighth = mapped(folder, "eighth", small)
    memory, d = n_bits // 8, database.shape[1]
    yield "codes alone", memory, 0, lambda place: index.search(codes[place : place + 1], K)[1][0]
    yield "real-valued queries", memory, 0, lambda place: index.search(scores[place : place + 1], K)[1][0]
    stores = {"float16": (half, 2 * d), "int8": (lambda ids: eighth[ids] * np.float32(scale), d)}
    for times in (4, 10):
        for kind, (vectors, disk) in stores.items():

            def rescored(place, times=times, vectors=vectors):
                one = slice(place, place + 1)
                return hbmp.rescore(queries[one], index.search(scores[one], times * K)[1], vectors, k=K)[1][0]

            yield f"rescored {times} ×, {kind}", memory, disk, rescored


def measure(path: Path) -> dict:
    """All ways on one set."""
    X = unit(np.load(path).astype(np.float32))
    order = np.random.default_rng(0).permutation(len(X))
    queries, database = X[order[:QUERIES]], np.ascontiguousarray(X[order[QUERIES:]])
    flat = faiss.IndexFlatIP(X.shape[1])
    flat.add(database)
    nearest = flat.search(queries, K)[1]
    exact = measured(lambda place: flat.search(queries[place : place + 1], K)[1][0], nearest)
    rows = [{"bits": None, "way": "float32 cosine, exact", "memory": 4 * X.shape[1], "disk": 0, **exact}]
    for ratio in RATIOS:
        n_bits = int(ratio * X.shape[1])
        with tempfile.TemporaryDirectory() as folder:
            for way, memory, disk, search in ways(queries, database, n_bits, Path(folder)):
                found = measured(search, nearest)
                rows.append({"bits": n_bits, "way": way, "memory": memory, "disk": disk, **found})
                print(path.parent.name, rows[-1], flush=True)
    return {"set": path.parent.name, "rows": len(database), "dimensions": X.shape[1], "ways": rows}


def row_of(each: dict) -> tuple[str, ...]:
    """One way to search as a row of the table."""
    numbers = f"{each['memory']:,}", f"{each['disk']:,}", f"{each['recall']:.3f}", f"{each['ms']:.2f}"
    return (str(each["bits"] or "–"), each["way"], *numbers)


def table(results: dict) -> str:
    """The stored figures as Markdown."""
    parts = [f"`{results['command']}`: one thread, {QUERIES} queries, {results['machine']}"]
    for found in results["sets"]:
        name, n, d = found["set"], found["rows"], found["dimensions"]
        parts.append(f"**{name}**: {n:,} vectors of {d} dimensions")
        head = ("bits", "search", "bytes in memory", "bytes on disk", f"recall@{K}", "ms per query")
        parts.append(Table(head, tuple(row_of(each) for each in found["ways"]), n_names=2).markdown())
    return "\n\n".join(parts)


def main() -> None:
    """Run or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="print the stored results")
    commands = parser.add_subparsers(dest="command")
    run = commands.add_parser("run", help="measure")
    run.add_argument("data", type=Path)
    run.add_argument("--sets", nargs="+", default=["newsgroups20", "coco"])
    options = parser.parse_args()
    if options.command == "run":
        faiss.omp_set_num_threads(1)
        shown = ["python", "benchmarks/rescoring.py", "run", "DATA", "--sets", *options.sets]
        sets = [measure(options.data / name / "features.npy") for name in options.sets]
        machine = describe("cpu")
        found = {"command": shlex.join(shown), "machine": f"{machine['cpu']}, {machine['cores']} cores", "sets": sets}
        RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    elif not options.table:
        parser.print_help(sys.stderr)
        return
    print(table(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
