"""What each step past the paper brings: HBMP from its three stages alone to its defaults, and the strongest rivals.

    python benchmarks/beyond_the_paper.py --data-dir data --sets digits kinds --bits 16 32 --seeds 0 1

Sets: digits (bundled), cifar (cifar-1 on CIFAR-10 features), voc (VOC 2007), coco (MS-COCO, 800 queries), kinds (the
100 commonest label sets of MS-COCO as classes), scenes (the 200 classes of the stand-in for 22K LabelMe, GIST),
docstrings (text: which part of which installed Python package a docstring comes from; latent semantic analysis). A line
a model goes to results/beyond-the-paper.jsonl; lines that are there are not run again. mAP over the full ranking, on
MS-COCO over the first 5,000; ties averaged, so that weights gain nothing from breaking them.
"""

from __future__ import annotations

import argparse
import ast
import json
import sysconfig
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

import hbmp
from hbmp import datasets, protocols
from hbmp.functions import Kernel, Linear

LABELS_ALONE = {"feature_share": 0, "label_share": 0, "weight_share": 1, "function": "kernel"}
SMOOTH = {"function": Kernel(linear=Linear(loss="smooth", lr=1e-2))}
BY_BITS = {"contrast_share": 0, "dither": 0}
MIXED = {**SMOOTH, **BY_BITS, "feature_share": 0.5, "weight_share": 1}
LADDER = {
    "three stages": LABELS_ALONE,
    "+ smooth loss": {**LABELS_ALONE, **SMOOTH},
    "+ features in the affinity": {**MIXED, "label_share": 0, "intercept": False},
    "+ a free constant": {**MIXED, "label_share": 0, "intercept": True},
    "+ labels vote": MIXED,
    "+ shares chosen": BY_BITS,
    "defaults": {},
}
LABEL_SETS = ("voc", "coco")  # a constant is tried for these alone
RIVALS = ("orthohash", "hashnet", "csq", "greedyhash")


def digits(place, seed):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    return X.astype(np.float32), y, order[:600], order[600:1100], np.r_[order[:600], order[1100:]], None


def by_protocol(name, data, cutoff=None, queries=None):
    def load(place, seed):
        found = datasets.load(data, place)
        split = protocols.get(name).split(found, seed)
        query = split.query
        if queries:
            query = np.random.default_rng(seed).choice(query, queries, replace=False)
        return np.asarray(found.features, np.float32), found.labels, split.train, query, split.database, cutoff

    return load


def kinds(place, seed, n_kinds=100, most=300):
    found = datasets.load("coco", place)
    _, kind, counts = np.unique(found.labels, axis=0, return_inverse=True, return_counts=True)
    kind, rng = kind.reshape(-1), np.random.default_rng(seed)
    rows = [rng.permutation(np.flatnonzero(kind == k))[:most] for k in np.argsort(-counts)[:n_kinds]]
    rows = rng.permutation(np.concatenate(rows))
    return np.asarray(found.features, np.float32), kind, rows[1000:5000], rows[:1000], rows[1000:], None


def scenes(place, seed):
    found = datasets.load("gist22k", place)
    order = np.random.default_rng(seed).permutation(len(found.labels))
    return np.asarray(found.features, np.float32), found.labels, order[1000:6000], order[:1000], order[1000:], None


def docstrings(place, seed, n_dimensions=256, fewest=60, most=300):
    """Docstrings of the packages that constraints.txt pins; a class is a module of the second level."""
    folder, texts = Path(sysconfig.get_path("purelib")), {}
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).parts
        if not {"test", "tests"} & set(parts):
            texts.setdefault(".".join(parts[:2]).removesuffix(".py"), []).extend(_docstrings_of(file))
    rng, rows = np.random.default_rng(seed), []
    for kind, found in enumerate(text for text in texts.values() if len(text) >= fewest):
        rows += [(found[at], kind) for at in rng.permutation(len(found))[:most]]
    words = TfidfVectorizer(sublinear_tf=True, min_df=3, ngram_range=(1, 2), max_features=60_000, stop_words="english")
    X = TruncatedSVD(n_dimensions, random_state=0).fit_transform(words.fit_transform([text for text, _ in rows]))
    X, order = normalize(X).astype(np.float32), rng.permutation(len(rows))
    return X, np.array([kind for _, kind in rows]), order[1000:6000], order[:1000], order[1000:21_000], None


def _docstrings_of(file: Path, shortest=120, longest=1500) -> list[str]:
    try:
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    except (SyntaxError, ValueError):  # templates, and files for other Pythons
        return []
    found = (ast.get_docstring(node) for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return [text[:longest] for text in found if text and len(text) > shortest]


SETS = {
    "digits": digits,
    "cifar": by_protocol("cifar-1", "cifar10-efficientnet-lite0"),
    "voc": by_protocol("voc2007", "voc2007"),
    "coco": by_protocol("coco", "coco", cutoff=5000, queries=800),
    "kinds": kinds,
    "scenes": scenes,
    "docstrings": docstrings,
}


def measure(model, X, y, train, query, database, cutoff):
    start = time.perf_counter()
    model.fit(X[train], y[train])
    seconds = time.perf_counter() - start
    scores, codes = model.project(X[query]), model.transform(X[database])
    signs = hbmp.hamming.signs(scores)

    def retrieve(queries, weights, ties):
        return hbmp.metrics.mean_average_precision(
            queries, codes, y[query], y[database], bit_weights=weights, cutoff=cutoff, ties=ties
        )

    weights = model.bit_weights_
    plain = retrieve(signs, None, "average")
    return {
        "plain": plain,
        "own": retrieve(signs, weights, "average") if np.ptp(weights) else plain,
        "real": retrieve(scores, None, "database"),
        "seconds": seconds,
        **{
            name: getattr(model, name + "_")
            for name in ("feature_share", "label_share", "weight_share")
            if not rival(model)
        },
    }


def rival(model) -> bool:
    return not isinstance(model, hbmp.HBMP)


def plot(lines, path) -> None:
    """Points of mAP over the three stages alone, a panel a code length, a group a set, a bar a method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    methods = [name for name in (*LADDER, *RIVALS) if name != "three stages"]
    names = [name for name in SETS if any(line["set"] == name for line in lines)]
    lengths = sorted({line["bits"] for line in lines})
    colours = [
        *plt.get_cmap("Blues")(np.linspace(0.35, 0.9, len(LADDER) - 1)),
        *plt.get_cmap("Greys")([0.3, 0.45, 0.6, 0.75]),
    ]
    figure, panels = plt.subplots(len(lengths), 1, figsize=(9, 3.2 * len(lengths)), squeeze=False, layout="constrained")
    for panel, bits in zip(panels[:, 0], lengths, strict=True):
        for place, (method, colour) in enumerate(zip(methods, colours, strict=True)):
            gains = [
                100 * (_mean(lines, name, bits, method) - _mean(lines, name, bits, "three stages")) for name in names
            ]
            panel.bar(
                np.arange(len(names)) + (place - (len(methods) - 1) / 2) * 0.1, gains, 0.09, color=colour, label=method
            )
        panel.axhline(0, color="black", linewidth=0.8)
        panel.set_xticks(range(len(names)), names)
        panel.set_ylabel("points of mAP")
        panel.set_title(f"{bits} bits, over the three stages alone", fontsize=10)
    panels[0, 0].legend(ncols=4, fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)


def _mean(lines, name, bits, method) -> float:
    found = [line["own"] for line in lines if (line["set"], line["bits"], line["method"]) == (name, bits, method)]
    return float(np.mean(found)) if found else np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--bits", nargs="+", type=int, default=[16, 32])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--methods", nargs="+", default=[*LADDER, *RIVALS])
    parser.add_argument("--output", default="results/beyond-the-paper.jsonl")
    parser.add_argument("--plot", help="draw the lines that are there to this file, and run nothing")
    options = parser.parse_args()
    path = Path(options.output)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if options.plot:
        return plot(lines, options.plot)
    done = {line["key"] for line in lines}
    for seed in options.seeds:
        for name in options.sets:
            loaded = None
            for bits in options.bits:
                for method in options.methods:
                    key = f"{name}-{bits}-{seed}-{method}"
                    if key in done or (method == "+ a free constant" and name not in LABEL_SETS):
                        continue
                    loaded = loaded or SETS[name](datasets.data_dir(options.data_dir), seed)
                    build = hbmp.HBMP if method in LADDER else hbmp.get_method(method)
                    model = build(bits, random_state=seed, **LADDER.get(method, {}))
                    found = {key: round(float(value), 4) for key, value in measure(model, *loaded).items()}
                    line = {"key": key, "set": name, "bits": bits, "seed": seed, "method": method, **found}
                    with path.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
