"""Full-ranking mAP against a per-query argsort loop in NumPy, in the same run: python benchmarks/evaluation.py

Two loops stand beside the library, both from the same int8 signs and both exact to the last tie:

    loop         the distance as its definition reads, (query != database), then a stable argsort
    tuned loop   the distance as one float32 matrix-vector product on codes converted beforehand, then a stable argsort

The library and the loops take turns, and the fastest turn of each counts, so that a busy machine harms all alike.
Linear algebra keeps to one thread for all three; the library adds its own threads, so both the time that passed and the
processor time of all threads together are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from hbmp.metrics import average_precision_per_query

N_TURNS = 20


def average_precision(distances: np.ndarray, relevant: np.ndarray) -> float:
    ranks = np.flatnonzero(relevant[np.argsort(distances, kind="stable")]) + 1
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks))


def loop(queries, database, query_labels, database_labels, weights):
    scores = []
    for query, label in zip(queries, query_labels, strict=True):
        different = query != database
        distances = np.count_nonzero(different, axis=1) if weights is None else different @ weights
        scores.append(average_precision(distances, database_labels == label))
    return np.array(scores)


def tuned_loop(queries, database, query_labels, database_labels, weights):
    database = database.astype(np.float32)
    queries = queries.astype(np.float32) if weights is None else (queries * weights).astype(np.float32)
    products = zip(queries, query_labels, strict=True)
    return np.array([average_precision(-(database @ query), database_labels == label) for query, label in products])


def library(queries, database, query_labels, database_labels, weights):
    return average_precision_per_query(queries, database, query_labels, database_labels, bit_weights=weights)


def compare(queries, database, query_labels, database_labels, weights) -> dict:
    seconds: dict[str, list[float]] = {"library": [], "loop": [], "tuned_loop": []}
    processor: dict[str, list[float]] = {name: [] for name in seconds}
    scores: dict[str, list[np.ndarray]] = {name: [] for name in seconds}
    for turn in np.array_split(np.arange(len(queries)), N_TURNS):
        for name, method, rows in (
            ("library", library, slice(None)),
            ("loop", loop, turn),
            ("tuned_loop", tuned_loop, turn),
        ):
            begin, processor_begin = time.perf_counter(), time.process_time()
            scores[name].append(method(queries[rows], database, query_labels[rows], database_labels, weights))
            seconds[name].append((time.perf_counter() - begin) / len(scores[name][-1]))
            processor[name].append((time.process_time() - processor_begin) / len(scores[name][-1]))
    per_query = {name: min(turns) for name, turns in seconds.items()}
    work = {name: min(turns) for name, turns in processor.items()}
    value = float(scores["library"][0].mean())
    return {
        "map": value,
        "difference_to_loop": abs(value - float(np.concatenate(scores["loop"]).mean())),
        "difference_to_tuned_loop": abs(value - float(np.concatenate(scores["tuned_loop"]).mean())),
        "microseconds_per_query": {name: round(1e6 * least, 1) for name, least in per_query.items()},
        "times_faster_than_loop": round(per_query["loop"] / per_query["library"], 1),
        "times_faster_than_tuned_loop": round(per_query["tuned_loop"] / per_query["library"], 1),
        "processor_microseconds_per_query": {name: round(1e6 * least, 1) for name, least in work.items()},
        "times_less_work_than_loop": round(work["loop"] / work["library"], 1),
        "times_less_work_than_tuned_loop": round(work["tuned_loop"] / work["library"], 1),
    }


def codes_around_classes(rng, n_queries: int, n_database: int, n_bits: int, flip: float = 0.3):
    """Ten random class codes with each bit flipped now and then: mAP in a realistic range, hardly any equal codes."""
    labels = rng.integers(0, 10, n_queries + n_database)
    centres = rng.choice(np.array([-1, 1], np.int8), (10, n_bits))
    codes = np.where(rng.random((len(labels), n_bits)) < flip, -centres[labels], centres[labels])
    return codes[:n_queries], codes[n_queries:], labels[:n_queries], labels[n_queries:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--database", type=int, default=59000)
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--output", type=Path, default=Path("results/benchmark-evaluation.json"))
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    results = []
    for n_bits in arguments.bits:
        data = codes_around_classes(rng, arguments.queries, arguments.database, n_bits)
        for distance, weights in (("plain", None), ("weighted", rng.gamma(2.0, 0.5, n_bits))):
            with threadpool_limits(1, user_api="blas"):
                result = {"bits": n_bits, "distance": distance, **compare(*data, weights)}
            print(json.dumps(result))
            results.append(result)
    report = {
        "what": f"full-ranking mAP, {arguments.queries} queries x {arguments.database} codes, ties in database order",
        "numpy": np.__version__,
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load_average": os.getloadavg(),
        "results": results,
    }
    arguments.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
