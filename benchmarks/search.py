"""Speed, recall and memory of `hbmp.Index` next to FAISS, usearch and numpy: one run, ratios.

    python benchmarks/search.py                      one million codes of 64 bits, random and clustered
    python benchmarks/search.py --ten-million        and ten million, streamed
    python benchmarks/search.py --graph              and usearch's graph index, which takes minutes to build
    python benchmarks/search.py --items 50000        a quick look

Every ratio is throughput over that of FAISS `IndexBinaryFlat` (plain Hamming, unweighted), measured in turns with it so
that both see the same machine; the best of several rounds counts. Weighted search answers a harder question than its
yardstick does. Recall is against distances computed from the formula for every code.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import faiss
import numpy as np

import hbmp
from hbmp import hamming

N_BITS = 64
_IDLE = 0.7  # load average under which figures for several threads are worth showing
YARDSTICK = "faiss IndexBinaryFlat (plain)"


def random_codes(rng, n_items):
    return rng.integers(0, 256, (n_items, N_BITS // 8), dtype=np.uint8)


def clustered_codes(rng, n_items, n_centres=2000, flipped=0.1):
    """Clusters of very different sizes; an item differs from its centre in a tenth of the bits."""
    centres = rng.integers(0, 2, (n_centres, N_BITS), dtype=np.uint8)
    sizes = rng.zipf(1.5, n_centres).clip(1, 200).astype(float)
    labels = rng.choice(n_centres, n_items, p=sizes / sizes.sum())
    packed = np.empty((n_items, N_BITS // 8), np.uint8)
    for start in range(0, n_items, 1 << 16):
        some = labels[start : start + (1 << 16)]
        flips = rng.random((len(some), N_BITS), dtype=np.float32) < flipped
        packed[start : start + len(some)] = np.packbits(centres[some] ^ flips, axis=1, bitorder="little")
    return packed


def best_in_turns(calls, rounds):
    """Least seconds of each call, all of them taking turns."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def numpy_search(queries, packed, k):
    words = packed.view(np.uint64)[:, 0]
    for query in queries.view(np.uint64)[:, 0]:
        different = np.bitwise_count(words ^ query)
        nearest = np.argpartition(different, k)[:k]
        nearest[np.argsort(different[nearest], kind="stable")]


def recall(index, queries, codes, weights, k):
    """Share of the returned items that are no farther than the true k-th, over all codes in blocks."""
    nearest = np.empty((len(queries), 0), np.float32)
    for start in range(0, len(codes), 1 << 17):
        block = hamming.distances(queries, codes[start : start + (1 << 17)], weights)
        nearest = np.sort(np.concatenate([nearest, block], axis=1), axis=1)[:, :k]
    found, ids = index.search(queries, k)
    true = np.array(
        [hamming.distances(query[None], codes[row], weights)[0] for query, row in zip(queries, ids, strict=True)]
    )
    if not np.array_equal(true, found):
        raise RuntimeError("The distances returned are not those of the codes returned.")
    return float((true <= nearest[:, -1:]).mean())


def measure_data(name, packed, queries_packed, options):
    """All engines on one data set: a list of rows."""
    rng = np.random.default_rng(7)
    weights = rng.uniform(0.5, 1.5, N_BITS)
    codes, queries = hamming.unpack(packed, N_BITS), hamming.unpack(queries_packed, N_BITS)
    weighted_queries = (queries * weights).astype(np.float32)
    start = time.perf_counter()
    flat = hbmp.Index.build(codes, bit_weights=weights, kind="flat")
    flat.search(queries[:1], 1)
    build_seconds = time.perf_counter() - start
    plain = hbmp.Index.build(codes, kind="flat")
    start = time.perf_counter()
    lists = hbmp.Index.build(codes, bit_weights=weights, kind="ivf", recall=options.recall)
    lists_seconds = time.perf_counter() - start
    heavy = hbmp.Index(N_BITS, rng.standard_t(2, N_BITS)).add_packed(packed)
    binary = faiss.IndexBinaryFlat(N_BITS)
    binary.add(packed)
    floats = faiss.IndexFlatIP(N_BITS)
    for first in range(0, len(codes), 1 << 16):
        floats.add(codes[first : first + (1 << 16)].astype(np.float32))

    from usearch.index import MetricKind
    from usearch.index import search as usearch_search

    graph = usearch_graph(packed) if options.graph else None
    rows = []
    for threads in sorted({1, os.cpu_count() or 1}):
        faiss.omp_set_num_threads(threads)
        for k in (10, 100):
            for size in (options.queries, 1):
                signs, bytes_, scores = queries[:size], queries_packed[:size], weighted_queries[:size]
                calls = {
                    YARDSTICK: lambda b=bytes_, k=k: binary.search(b, k),
                    "hbmp flat (weighted)": lambda s=signs, k=k: flat.search(s, k),
                    "hbmp flat (heavy-tailed weights)": lambda s=signs, k=k: heavy.search(s, k),
                    "hbmp flat (plain)": lambda s=signs, k=k: plain.search(s, k),
                    "hbmp ivf (weighted)": lambda s=signs, k=k: lists.search(s, k),
                }
                if graph is not None:
                    calls["usearch graph (plain)"] = lambda b=bytes_, k=k, t=threads: graph.search(b, k, threads=t)
                seconds = best_in_turns(calls, options.rounds if size > 1 else 10 * options.rounds)
                per_query = {engine: value / size for engine, value in seconds.items()}
                few = min(size, 16)  # the slow ones
                slow = {
                    "faiss IndexFlatIP on ±1 (weighted)": lambda s=scores[:few], k=k: floats.search(s, k),
                    "usearch exact (plain)": lambda b=bytes_[:few], k=k, t=threads: usearch_search(
                        packed, b, k, MetricKind.Hamming, exact=True, threads=t
                    ),
                    "numpy popcount (plain)": lambda b=bytes_[:few], k=k: numpy_search(b, packed, k),
                }
                per_query |= {engine: value / few for engine, value in best_in_turns(slow, 2).items()}
                for engine, value in per_query.items():
                    ratio = per_query[YARDSTICK] / value
                    rows.append(
                        {
                            "codes": name, "engine": engine, "threads": threads, "k": k, "batch": size,
                            "ms_per_query": round(value * 1e3, 4), "ratio": round(ratio, 3),
                        }
                    )  # fmt: skip
                    print(
                        f"{name:10} {threads} threads  k={k:<4} batch {size:<5} {engine:36} {ratio:8.2f}x", flush=True
                    )
    checked = queries[: options.checked]
    recalls = {
        f"{engine}, k={k}": recall(index, checked, codes, index.bit_weights, k)
        for engine, index in (("hbmp flat (weighted)", flat), ("hbmp flat (heavy-tailed weights)", heavy))
        for k in (10, 100)
    }
    for k in (10, 100):
        exact, found = flat.search(queries, k)[0], lists.search(queries, k)[0]
        recalls[f"hbmp ivf (weighted), k={k}"] = float((found <= exact[:, -1:]).mean())
    facts = {
        "codes": name,
        "build_seconds": round(build_seconds, 3),
        "ivf_build_seconds": round(lists_seconds, 2),
        "recall": {engine: round(value, 5) for engine, value in recalls.items()},
        "bytes_per_code_byte": {
            engine: round(index.nbytes / packed.nbytes, 3)
            for engine, index in (("flat (weighted)", flat), ("flat (plain)", plain), ("ivf", lists))
        },
    }
    print(json.dumps(facts, indent=2))
    return rows, facts


def usearch_graph(packed):
    from usearch.index import Index, MetricKind

    graph = Index(ndim=N_BITS, metric=MetricKind.Hamming, dtype="b1")
    graph.add(np.arange(len(packed)), packed)
    return graph


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure_stream(n_items, block=1_000_000):
    """In a process of its own: stream codes in, search, and see what the process grew by."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 1.5, N_BITS)
    queries = hamming.unpack(random_codes(rng, 64), N_BITS)
    hbmp.Index(N_BITS, weights).add_packed(random_codes(rng, 20_000)).search(queries, 10)  # libraries are loaded now
    before, peak, build = resident_bytes(), 0, 0.0
    index = hbmp.Index(N_BITS, weights)
    for first in range(0, n_items, block):
        codes = hamming.unpack(random_codes(rng, min(block, n_items - first)), N_BITS)
        start = time.perf_counter()
        index.add(codes)
        build += time.perf_counter() - start
        peak = max(peak, resident_bytes() - before)
    del codes
    start = time.perf_counter()
    index.search(queries[:1], 1)
    build += time.perf_counter() - start
    best = best_in_turns(
        {"batch": lambda: index.search(queries, 10), "single": lambda: index.search(queries[:1], 10)}, 3
    )
    return {
        "items": n_items,
        "build_seconds": round(build, 2),
        "resident_bytes_per_code_byte": round((resident_bytes() - before) / (n_items * N_BITS // 8), 3),
        "peak_megabytes_while_adding": round(peak / 1e6),
        "batch_ms_per_query": round(best["batch"] / len(queries) * 1e3, 3),
        "single_ms_per_query": round(best["single"] * 1e3, 3),
    }


def in_new_process(n_items):
    command = [sys.executable, __file__, "--stream-only", str(n_items)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table(result):
    """The result as Markdown, the way docs/search.md shows it."""
    machine = result["machine"]
    lines = [
        f"`{result['command'].strip()}`: {result['items']:,} codes of {result['bits']} bits, {machine['cores']} cores, "
        f"FAISS {machine['faiss']} ({machine['instructions']}). Throughput relative to "
        f"{result['yardstick']} in the same run, which searches without weights; higher is better.",
    ]
    if machine["load_before"] >= _IDLE:
        lines += [
            "",
            f"Other programs were running (load {machine['load_before']:g}), which distorts runs of several "
            "threads. Their columns are left out here and are in the JSON file.",
        ]
    for batch in sorted({row["batch"] for row in result["throughput"]}, reverse=True):
        rows = [row for row in result["throughput"] if row["batch"] == batch]
        columns = list(dict.fromkeys((row["codes"], row["threads"], row["k"]) for row in rows))
        columns = [column for column in columns if column[1] == 1 or machine["load_before"] < _IDLE]
        heads = [f"{codes}, {threads} thr., k={k}" for codes, threads, k in columns]
        lines += [
            "",
            f"| {'one query at a time' if batch == 1 else f'batches of {batch}'} | " + " | ".join(heads) + " |",
        ]
        lines += ["|---|" + "---|" * len(columns)]
        for engine in dict.fromkeys(row["engine"] for row in rows):
            ratio = {(row["codes"], row["threads"], row["k"]): row["ratio"] for row in rows if row["engine"] == engine}
            lines += [f"| {engine} | " + " | ".join(f"{ratio[column]:.2f}" for column in columns) + " |"]
        speeds = {(row["engine"], row["codes"], row["threads"], row["k"]): row["ratio"] for row in rows}
        gains = [speeds["hbmp ivf (weighted)", *column] / speeds["hbmp flat (weighted)", *column] for column in columns]
        lines += ["| *hbmp ivf over hbmp flat (weighted)* | " + " | ".join(f"*{gain:.1f}*" for gain in gains) + " |"]
    lines += ["", "| | " + " | ".join(fact["codes"] for fact in result["facts"]) + " |"]
    lines += ["|---|" + "---|" * len(result["facts"])]
    for engine in result["facts"][0]["recall"]:
        lines += [
            f"| recall, {engine} | " + " | ".join(f"{fact['recall'][engine]:.4f}" for fact in result["facts"]) + " |"
        ]
    for key, label in (("build_seconds", "build, flat, seconds"), ("ivf_build_seconds", "build, ivf, seconds")):
        lines += [f"| {label} | " + " | ".join(f"{fact[key]:.2f}" for fact in result["facts"]) + " |"]
    for engine in result["facts"][0]["bytes_per_code_byte"]:
        sizes = [fact["bytes_per_code_byte"][engine] for fact in result["facts"]]
        lines += [f"| bytes in memory per code byte, {engine} | " + " | ".join(f"{size:.2f}" for size in sizes) + " |"]
    lines += [
        "",
        "| streamed in, weighted, flat | " + " | ".join(f"{run['items']:,}" for run in result["streams"]) + " |",
    ]
    lines += ["|---|" + "---|" * len(result["streams"])]
    for key in list(result["streams"][0])[1:]:
        lines += [f"| {key.replace('_', ' ')} | " + " | ".join(f"{run[key]:g}" for run in result["streams"]) + " |"]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=512, help="size of a batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--checked", type=int, default=64, help="queries whose exactness is checked over all codes")
    parser.add_argument("--recall", type=float, default=0.98, help="recall asked of the inverted lists")
    parser.add_argument("--ten-million", action="store_true")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--table", action="store_true", help="print the results there are as Markdown and run nothing")
    parser.add_argument("--stream-only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "results" / "benchmark-search.json")
    options = parser.parse_args()
    if options.stream_only:
        print(json.dumps(measure_stream(options.stream_only)))
        return
    if options.table:
        print(table(json.loads(options.output.read_text())))
        return
    load_before = os.getloadavg()[0]
    rng = np.random.default_rng(0)
    rows, facts = [], []
    for name, make in (("random", random_codes), ("clustered", clustered_codes)):
        packed = make(rng, options.items + options.queries)
        some_rows, some_facts = measure_data(name, packed[: options.items], packed[options.items :], options)
        rows += some_rows
        facts.append(some_facts)
    sizes = [options.items, *([10_000_000] if options.ten_million else [])]
    streams = [in_new_process(size) for size in sizes]
    print(json.dumps(streams, indent=2))
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before": round(load_before, 2),
        "faiss": faiss.__version__,
        "numpy": np.__version__,
        "instructions": faiss.get_compile_options().strip(),
    }
    result = {
        "command": "python benchmarks/search.py " + " ".join(sys.argv[1:]),
        "items": options.items,
        "bits": N_BITS,
        "yardstick": YARDSTICK,
        "machine": machine,
        "throughput": rows,
        "facts": facts,
        "streams": streams,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"Written to {options.output}.", file=sys.stderr)


if __name__ == "__main__":
    main()
