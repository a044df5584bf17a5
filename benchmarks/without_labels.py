"""Search without labels: HBMP beside ITQ, rotated principal components, and FAISS's PQ and RaBitQ.

    python benchmarks/without_labels.py                      digits only
    python benchmarks/without_labels.py --data-dir DIR       also DIR/gist22k, DIR/cifar10-efficientnet-lite0, DIR/coco

The protocol is labelme's: features less the training mean, scaled to unit length; queries drawn first; 5,000 rows of
the database train; neighbours lie near in Euclidean distance. GIST of 22,019 images stands in for the paper's 22K
LabelMe; of CIFAR-10 and COCO features 20,000 rows are drawn.

    ndcg      of the full ranking, gain 2^(c/10) - 1, grades 10, 5, 2, 1 for the nearest 2, 5, 10, 20 %
    at_10     share of the ten nearest within the first ten
    at_100    share of the ten nearest within the first hundred

Queries are signs ("plain", "weighted") or real-valued ("real"). PQ with 8 bits a part takes as many bytes as the codes;
its "plain" quantises the query too. RaBitQ keeps 8 bytes a vector beside its bits, so it takes more bytes than the rest
where it has as many bits, and fits into as many from 96 bits on, with a third of them. Ties keep the database's order.
Writes results/without-labels.json: rows of the sets that ran are replaced, others stay. `--table` prints it.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import faiss
import numpy as np
from sklearn.datasets import load_digits

import hbmp

RESULTS = Path(__file__).parent.parent / "results" / "without-labels.json"
SETS = {
    "digits": None,
    "gist22k": "gist22k/gist.npy",
    "cifar10": "cifar10-efficientnet-lite0/features.npy",
    "coco": "coco/features.npy",
}
NOTES = {"gist22k": "a stand-in for 22K LabelMe", "cifar10": "20,000 rows", "coco": "20,000 rows"}
MEASURES = ("ndcg", "at_10", "at_100")
FACTORS = 8  # bytes RaBitQ keeps a vector


def load(name, folder):
    if SETS[name] is None:
        return load_digits().data.astype(np.float32)
    features = np.load(folder / SETS[name], mmap_mode="r")
    rows = np.arange(len(features))
    if name != "gist22k":
        rows = np.sort(np.random.default_rng(0).choice(len(features), 20_000, replace=False))
    return features[rows].astype(np.float32)


class Task:
    """Queries, database and training rows of one split, and what each query should find."""

    def __init__(self, features, seed, n_queries):
        order = np.random.default_rng(seed).permutation(len(features))
        query, rest = order[:n_queries], order[n_queries:]
        features = features - features[rest[:5000]].mean(axis=0)
        features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
        self.queries, self.database, self.train = features[query], features[rest], features[rest[:5000]]
        sample = self.train[:2500]
        pairs = _distances(sample, sample)[np.triu_indices(len(sample), 1)]
        distances = _distances(self.queries, self.database)
        grades = np.array([10, 5, 2, 1, 0])[np.searchsorted(np.percentile(pairs, [2, 5, 10, 20]), distances)]
        self.gains = (2 ** (grades / 10) - 1).astype(np.float32)
        self.discounts = (1 / np.log2(np.arange(2, len(rest) + 2))).astype(np.float32)
        self.best = -np.sort(-self.gains, axis=1) @ self.discounts
        self.nearest = np.argpartition(distances, 10, axis=1)[:, :10]

    def measure(self, similarity):
        """The three measures of a ranking by similarity, (queries, database)."""
        order = np.argsort(-similarity.astype(np.float32), axis=1, kind="stable")
        found = np.take_along_axis(self.gains, order, axis=1) @ self.discounts
        scored = self.best > 0
        ndcg = (found[scored] / self.best[scored]).mean()
        shares = [np.mean([np.isin(near, row[:k]).mean() for near, row in self._top(order)]) for k in (10, 100)]
        return dict(zip(MEASURES, map(float, (ndcg, *shares)), strict=True))

    def _top(self, order):
        return zip(self.nearest, order[:, :100], strict=True)


def _distances(a, b):
    return np.sqrt(np.maximum(2 - 2 * a @ b.T, 0))  # of rows of unit length


def signs(scores):
    return np.where(scores >= 0, np.float32(1), np.float32(-1))


def hbmp_without_labels(task, n_bits, seed):
    model = hbmp.HBMP(n_bits, random_state=seed).fit(task.train)
    return by_codes(model.project(task.queries), model.project(task.database), model.bit_weights_.astype(np.float32))


def published(name):
    def run(task, n_bits, seed):
        if n_bits > task.train.shape[1]:
            return {}  # these methods have no more bits than features
        model = hbmp.get_method(name)(n_bits, random_state=seed).fit(task.train)
        return by_codes(model.project(task.queries), model.project(task.database))

    return run


def by_codes(queries, database, weights=None):
    """Similarities by plain and weighted Hamming distance and of real-valued queries."""
    codes = signs(database).T
    found = {"plain": signs(queries) @ codes}
    if weights is None:
        return {**found, "real": queries @ codes}
    return {**found, "weighted": (signs(queries) * weights) @ codes, "real": (queries * weights) @ codes}


def product_quantiser(task, n_bits, seed):
    parts = n_bits // 8
    width = -(-task.train.shape[1] // parts) * parts  # PQ wants parts of equal width: pad with zeros

    def padded(rows):
        return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, width - rows.shape[1]))))

    quantiser = faiss.ProductQuantizer(width, parts, 8)
    quantiser.cp.seed = seed + 1234
    quantiser.cp.min_points_per_centroid = 1
    quantiser.train(padded(task.train))
    queries = padded(task.queries)
    rebuilt, coarse = (quantiser.decode(quantiser.compute_codes(padded(x))) for x in (task.database, task.queries))
    lengths = np.square(rebuilt).sum(axis=1) / 2
    return {"plain": coarse @ rebuilt.T - lengths, "real": queries @ rebuilt.T - lengths}


def rabitq(n_axes_of):
    def run(task, n_bits, seed):
        n_axes = n_axes_of(n_bits)
        if not 8 <= n_axes <= task.train.shape[1]:
            return {}
        axes = faiss.PCAMatrix(task.train.shape[1], n_axes, 0, True)
        axes.train(task.train)
        index = faiss.IndexRaBitQ(n_axes)
        index.qb = 0  # queries in full precision
        index.train(axes.apply(task.train))
        index.add(axes.apply(task.database))
        distances, items = index.search(axes.apply(task.queries), len(task.database))
        similarity = np.empty_like(distances)
        np.put_along_axis(similarity, items, -distances, axis=1)
        return {"real": similarity}

    return run


METHODS = {
    "HBMP": (hbmp_without_labels, lambda n_bits: n_bits // 8),
    "ITQ": (published("itq"), lambda n_bits: n_bits // 8),
    "PCA rotation": (published("pca_rotation"), lambda n_bits: n_bits // 8),
    "PQ": (product_quantiser, lambda n_bits: n_bits // 8),
    "RaBitQ, same bits": (rabitq(lambda n_bits: n_bits), lambda n_bits: n_bits // 8 + FACTORS),
    "RaBitQ, same bytes": (rabitq(lambda n_bits: n_bits - 8 * FACTORS), lambda n_bits: n_bits // 8),
}


def run(name, folder, lengths, seeds, n_queries):
    features = load(name, folder)
    scores: dict[tuple, list[dict]] = {}
    for seed in range(seeds):
        task = Task(features, seed, n_queries)
        for n_bits in lengths:
            for method, (similarities, _) in METHODS.items():
                for queries, similarity in similarities(task, n_bits, seed).items():
                    scores.setdefault((method, n_bits, queries), []).append(task.measure(similarity))
    for (method, n_bits, queries), measured in scores.items():
        means = {key: round(float(np.mean([score[key] for score in measured])), 4) for key in MEASURES}
        n_bytes = METHODS[method][1](n_bits)
        yield {"data": name, "method": method, "bits": n_bits, "bytes": n_bytes, "queries": queries, **means}


def table(stored):
    """The stored results as Markdown: a table a data set and kind of query, a cell a code length."""
    parts = []
    for name in dict.fromkeys(row["data"] for row in stored["rows"]):
        note = f" ({NOTES[name]})" if name in NOTES else ""
        for measure in MEASURES:
            rows = [row for row in stored["rows"] if row["data"] == name]
            lengths = sorted({row["bits"] for row in rows})
            lines = [f"**{name}**{note}, {measure}", "", "| method | query | " + " | ".join(map(str, lengths)) + " |"]
            lines.append("|:---|:---|" + "---:|" * len(lengths))
            for method, queries in dict.fromkeys((row["method"], row["queries"]) for row in rows):
                found = {row["bits"]: row for row in rows if (row["method"], row["queries"]) == (method, queries)}
                cells = [f"{found[n][measure]:.3f}" if n in found else "—" for n in lengths]
                lines.append(f"| {method} | {queries} | {' | '.join(cells)} |")
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def plot(stored, path) -> None:
    """Recall of the ten nearest within the first hundred against bits: a panel a set and kind of query."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(stored["runs"])
    shown = {"HBMP": "tab:blue", "ITQ": "tab:red", "PCA rotation": "tab:orange", "PQ": "tab:green"}
    shown["RaBitQ, same bits"] = "tab:purple"
    figure, panels = plt.subplots(2, len(names), figsize=(3 * len(names), 5.6), sharex=True, layout="constrained")
    for row, queries in enumerate((("weighted", "plain"), ("real",))):
        for column, name in enumerate(names):
            panel = panels[row, column]
            for method, colour in shown.items():
                found: dict = {}
                for kind in reversed(queries):  # by its own distance: weighted where it has weights
                    rows = [r for r in stored["rows"] if (r["data"], r["method"], r["queries"]) == (name, method, kind)]
                    found |= {r["bits"]: r["at_100"] for r in rows}
                lengths = sorted(found)
                panel.plot(lengths, [found[n] for n in lengths], "o-", color=colour, label=method, markersize=3)
            panel.set_title(f"{name}, {'real-valued queries' if row else 'codes alone'}", fontsize=9)
            panel.grid(alpha=0.3)
    for panel in panels[:, 0]:
        panel.set_ylabel("10 nearest found in 100")
    for panel in panels[-1]:
        panel.set_xlabel("bits")
    panels[0, 0].legend(fontsize=7)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", choices=SETS, nargs="+", default=list(SETS))
    parser.add_argument("--bits", type=int, nargs="+", default=[16, 24, 32, 48, 64, 96])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--queries", type=int, default=250)
    parser.add_argument("--table", action="store_true", help="print the stored results as Markdown")
    parser.add_argument("--plot", help="draw the stored results to this file, and run nothing")
    given = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"runs": {}, "rows": []}
    if given.plot:
        return plot(stored, given.plot)
    if given.table:
        return print(table(stored))
    for name in given.sets:
        if SETS[name] is not None and given.data_dir is None:
            continue
        start = time.perf_counter()
        rows = list(run(name, given.data_dir, given.bits, given.seeds, given.queries))
        stored["rows"] = [row for row in stored["rows"] if row["data"] != name] + rows
        stored["runs"][name] = {
            "bits": given.bits,
            "seeds": given.seeds,
            "queries": given.queries,
            "seconds": round(time.perf_counter() - start),
            "machine": platform.machine(),
            "faiss": faiss.__version__,
            "note": NOTES.get(name, ""),
        }
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
        print(table({"rows": rows}), flush=True)


if __name__ == "__main__":
    main()
