"""Speed against recall on learned codes: `hbmp.Index` beside FAISS's binary indexes and usearch, one core, one run.

    python benchmarks/search_learned.py FOLDER                      FOLDER holds features.npy and labels.npy
    python benchmarks/search_learned.py FOLDER --items 200000 --sets labels detail
    python benchmarks/search_learned.py FOLDER --no-graphs          without the graphs, which take minutes to build
    python benchmarks/search_learned.py --table                     print the results there are as Markdown

`benchmarks/learned_codes.py` describes the codes. Every ratio is throughput over that of FAISS `IndexBinaryFlat`
(plain Hamming, unweighted) measured in turns with it; the best of several rounds counts. Recall is the share of the k
results that are no farther than the true k-th, by the distance the engine searches with: weighted or plain.
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import faiss
import numpy as np

import hbmp
from hbmp import hamming
from learned_codes import SETS, make

YARDSTICK = "FAISS BinaryFlat"
RESULTS = Path(__file__).parents[1] / "results" / "benchmark-search-learned.json"


def engines_of(made, options):
    """Search functions by name: from packed queries and k to distances and ids; and seconds to build each."""
    items, weights = made["items"], made["weights"]
    n_bits = 8 * items.shape[1]
    calls, seconds = {}, {}

    def add(name, build, search):
        start = time.perf_counter()
        index = build()
        seconds[name] = round(time.perf_counter() - start, 2)
        calls[name] = lambda queries, k: search(index, queries, k)

    def built(index, n_bits=n_bits):
        index.search(hamming.unpack(made["unseen"][:1], n_bits), 1)  # what is built at the first search
        return index

    def by_signs(index, queries, k):
        return index.search(hamming.unpack(queries, n_bits), k)

    def by_bytes(index, queries, k):
        return index.search(queries, k)

    def binary(kind, *arguments, train=False, **settings):
        index = getattr(faiss, kind)(*arguments)
        for key, value in settings.items():
            setattr(index.hnsw if key.startswith("ef") else index, key, value)
        if train:
            index.train(items[:: max(1, len(items) // 50_000)])
        index.add(items)
        return index

    add(YARDSTICK, lambda: binary("IndexBinaryFlat", n_bits), by_bytes)
    add("hbmp exact (weighted)", lambda: built(hbmp.Index(n_bits, weights).add_packed(items)), by_signs)
    add("hbmp exact (plain)", lambda: built(hbmp.Index(n_bits).add_packed(items)), by_signs)
    if options.graphs:
        codes = hamming.unpack(items, n_bits)
        add(
            "hbmp ivf (weighted)",
            lambda: built(hbmp.Index.build(codes, bit_weights=weights, kind="ivf", recall=0.98)),
            by_signs,
        )
        coarse = faiss.IndexBinaryFlat(n_bits)
        add("FAISS BinaryIVF, 16 of 1024", lambda: binary("IndexBinaryIVF", coarse, n_bits, 1024, train=True, nprobe=16), by_bytes)  # fmt: skip
        add("FAISS BinaryMultiHash, 1 flip", lambda: binary("IndexBinaryMultiHash", n_bits, n_bits // 16, 16, nflip=1), by_bytes)  # fmt: skip
        add("FAISS BinaryHNSW, ef 64", lambda: binary("IndexBinaryHNSW", n_bits, 16, efSearch=64), by_bytes)
        add("usearch HNSW, ef 64", lambda: usearch_graph(items), usearch_search)
    return calls, seconds


def usearch_graph(items):
    from usearch.index import Index, MetricKind

    graph = Index(ndim=8 * items.shape[1], metric=MetricKind.Hamming, dtype="b1", expansion_search=64)
    graph.add(np.arange(len(items)), items, threads=1)
    return graph


def usearch_search(graph, queries, k):
    matches = graph.search(queries, k, threads=1)
    return np.atleast_2d(matches.distances), np.atleast_2d(matches.keys).astype(np.int64)


def recall(call, made, kind, truths, weighted, k):
    """Share of results within the true k-th distance."""
    queries = made[kind][: len(truths[weighted])]
    signs = hamming.unpack(queries, 8 * queries.shape[1])
    weights = made["weights"] if weighted else None
    hits = []
    for row, (results, kth) in enumerate(zip(call(queries, k)[1], truths[weighted], strict=True)):
        ids = results[results >= 0]
        found = hamming.distances(signs[row : row + 1], hamming.unpack(made["items"][ids], signs.shape[1]), weights)
        hits.append((found <= kth).sum() / k)
    return round(float(np.mean(hits)), 4)


def kth_distances(made, kind, weighted, k, n_queries):
    """The true k-th distances, from the formula for every item."""
    signs = hamming.unpack(made[kind][:n_queries], 8 * made[kind].shape[1])
    weights, nearest = made["weights"] if weighted else None, np.empty((n_queries, 0))
    for start in range(0, len(made["items"]), 1 << 17):
        items = hamming.unpack(made["items"][start : start + (1 << 17)], signs.shape[1])
        block = np.partition(hamming.distances(signs, items, weights), k - 1, axis=1)[:, :k]
        nearest = np.sort(np.concatenate([nearest, block], axis=1), axis=1)[:, :k]
    return nearest[:, -1]


def seconds_in_turns(calls, rounds):
    """Least seconds of each call, all of them taking turns."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def measure(name, jitter, options):
    """All engines on one set of codes, with unseen queries and with copies."""
    made = make(name, options.items, jitter, options.features, options.cache)
    calls, build_seconds = engines_of(made, options)
    rows, facts = [], []
    for kind in ("unseen", "copies"):
        if kind not in made:
            continue
        truths = {weighted: kth_distances(made, kind, weighted, options.k, options.checked) for weighted in (True, False)}  # fmt: skip
        batch = made[kind][: options.queries]
        in_batch = seconds_in_turns({key: lambda c=c, b=batch: c(b, options.k) for key, c in calls.items()}, options.rounds)  # fmt: skip
        alone = seconds_in_turns(
            {key: lambda c=c, b=batch: one_by_one(c, b, options.k) for key, c in calls.items()}, options.rounds
        )
        for engine, call in calls.items():
            row = {
                "codes": name, "jitter": jitter, "queries": kind, "engine": engine, "items": options.items,
                "k": options.k, "batch": len(batch), "queries_per_second": round(len(batch) / in_batch[engine], 1),
                "ratio": round(in_batch[YARDSTICK] / in_batch[engine], 2),
                "single_queries_per_second": round(_SINGLES / alone[engine], 1),
                "single_ratio": round(alone[YARDSTICK] / alone[engine], 2),
                "recall": recall(call, made, kind, truths, "weighted" in engine, options.k),
                "build_seconds": build_seconds[engine],
            }  # fmt: skip
            rows.append(row)
            print(f"{name:14} {jitter:4} {kind} {engine:30} {row['ratio']:8.2f} x  single {row['single_ratio']:8.2f} x"
                  f"  recall {row['recall']:.4f}  built in {row['build_seconds']:.1f} s", flush=True)  # fmt: skip
        distinct = len(np.unique(made["items"].view(f"V{made['items'].shape[1]}")))
        facts.append({
            "codes": name, "jitter": jitter, "queries": kind, "items": options.items, "distinct": distinct,
            "median_kth_distance": float(np.median(truths[False])),
        })  # fmt: skip
        print(facts[-1], flush=True)
    return rows, facts


def one_by_one(call, queries, k):
    for row in range(_SINGLES):
        call(queries[row : row + 1], k)


_SINGLES = 40


def table(result):
    """The results as Markdown."""
    lines = []
    for facts in result["facts"]:
        rows = [row for row in result["rows"] if all(row[key] == facts[key] for key in ("codes", "jitter", "queries"))]
        lines += [
            f"**{facts['codes']}**, jitter {facts['jitter']:g}, {facts['queries']} queries: {facts['items']:,} items, {facts['distinct']:,} "
            f"distinct codes, median distance to the {rows[0]['k']}th neighbour {facts['median_kth_distance']:g} bits.",
            "",
            "| engine | batch | single | recall | build, s |",
            "|---|---|---|---|---|",
        ]
        for row in rows:
            lines.append(
                f"| {row['engine']} | {row['ratio']:.2f} | {row['single_ratio']:.2f} | {row['recall']:.4f} "
                f"| {row['build_seconds']:.1f} |"
            )
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", type=Path, nargs="?", help="folder with features.npy and labels.npy")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--jitter", type=float, nargs="+", default=[0.5, 0.1])
    parser.add_argument("--queries", type=int, default=512)
    parser.add_argument("--checked", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--no-graphs", dest="graphs", action="store_false", help="only the flat and exact engines")
    parser.add_argument("--cache", type=Path, help="folder to keep the codes in")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the results there are as Markdown")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.output.read_text())))
        return
    faiss.omp_set_num_threads(1)
    load, rows, facts = os.getloadavg()[0], [], []
    for name in options.sets:
        for jitter in options.jitter if name != "random" else [0.0]:
            some_rows, some_facts = measure(name, jitter, options)
            rows += some_rows
            facts += some_facts
    machine = {
        "processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "load_before": round(load, 2),
        "faiss": faiss.__version__, "instructions": faiss.get_compile_options().strip(),
    }  # fmt: skip
    result = {"machine": machine, "rows": rows, "facts": facts}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
