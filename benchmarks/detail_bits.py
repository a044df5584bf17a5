"""Detail bits beside label bits alone and bits without labels: the right kind, and the right ones.

    python benchmarks/detail_bits.py FOLDER [--sets digits voc …] [--bits 32 64]

FOLDER holds sets as `NAME.npz` with features, labels and the rows of train, new and query. The database is the train
rows and the new rows, shuffled. A column of two numbers is class mAP / neighbour recall of the class, in per cent.

    label     all bits are label bits
    chosen    detail bits by `choose_details`: train rows are learned, half of the new rows are held out
    unlabelled  all bits rebuild the features

`first` is the share of database items that come first when they are searched again, identical vectors aside; `tied`
the share of queries whose first ten are all at one distance. Codes of fewer label bits are prefixes of one fit.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import hbmp
from hbmp import hamming, metrics
from hbmp.methods.hbmp.detail import DetailBits, join_weights
from hbmp.methods.hbmp.detail_choice import ScoredRows, choose_details


def measure(task, queries, codes, weights=None) -> tuple[float, float]:
    """(class mAP, neighbour recall of the class), in per cent."""
    labels = task["query"][1], task["database"][1]
    found = metrics.mean_average_precision(queries, codes, *labels, bit_weights=weights)
    near = metrics.neighbour_recall(
        queries,
        codes,
        task["query"][0],
        task["database"][0],
        query_labels=labels[0],
        database_labels=labels[1],
        bit_weights=weights,
    )
    return 100 * found, 100 * near


def compare(task, label_scores, weights_for, n_bits) -> dict:
    """All columns for label scores of the train, held, database and query rows, each (rows, bits)."""
    train, held, database, query = (label_scores[name][:, :n_bits] for name in ("train", "held", "database", "query"))
    codes, weights = hamming.signs(database), weights_for(n_bits)
    row = {
        "label": measure(task, hamming.signs(query), codes, weights),
        "label_real": measure(task, query, codes, weights),
        "label_first": metrics.self_first_share(codes, task["database"][0]),
        "label_tied": metrics.tied_share(hamming.signs(query), codes, bit_weights=weights),
    }
    choice = choose_details(
        ScoredRows(train, *task["train"]), ScoredRows(held, *task["held"]), weights_for, random_state=0
    )
    row["detail_bits"], row["total"], row["total_real"] = choice.n_bits, choice.total, choice.total_real
    if choice.n_bits == 0:
        return row
    keep = n_bits - choice.n_bits
    size = choice.total_real / choice.total
    detail = DetailBits().fit(task["train"][0], train[:, :keep], choice.n_bits, size=size, random_state=0)
    queries, items = (
        np.hstack([scores[:, :keep], detail.project(task[name][0], scores[:, :keep])])
        for name, scores in (("query", query), ("database", database))
    )
    codes, weights = hamming.signs(items), join_weights(weights_for(keep), detail.weights_, choice.total)
    row["chosen"] = measure(task, hamming.signs(queries), codes, weights)
    row["chosen_real"] = measure(task, queries, codes, weights)
    row["first"] = metrics.self_first_share(codes, task["database"][0])
    row["tied"] = metrics.tied_share(hamming.signs(queries), codes, bit_weights=weights)
    return row


def load(path: Path, seed: int = 0) -> dict:
    """Features and labels by part, each in random order; `held` is half of the new rows."""
    content = np.load(path)
    features, labels = content["features"].astype(np.float32), content["labels"]
    rng = np.random.default_rng(seed)
    rows = {name: rng.permutation(content[name]) for name in ("train", "new", "query")}
    rows["held"] = rows["new"][: len(rows["new"]) // 2]
    rows["database"] = rng.permutation(np.concatenate([rows["train"], rows["new"]]))
    return {name: (features[of_part], labels[of_part]) for name, of_part in rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--bits", nargs="*", type=int, default=[32, 64])
    args = parser.parse_args()
    for path in sorted(args.folder.glob("*.npz")):
        if args.sets and path.stem not in args.sets:
            continue
        task = load(path)
        model = hbmp.HBMP(max(args.bits), random_state=0).fit(*task["train"])
        scores = {name: model.project(task[name][0]) for name in ("train", "held", "database", "query")}
        for n_bits in args.bits:
            row = compare(task, scores, model.weights_for, n_bits)
            plain = hbmp.HBMP(n_bits, random_state=0).fit(task["train"][0])
            codes, query = plain.transform(task["database"][0]), task["query"][0]
            row["unlabelled"] = measure(task, plain.transform(query), codes, plain.bit_weights_)
            row["unlabelled_real"] = measure(task, plain.project(query), codes, plain.bit_weights_)
            print(path.stem, n_bits, *(f"{key}={_shown(value)}" for key, value in row.items()), flush=True)


def _shown(value) -> str:
    return "/".join(f"{part:.1f}" for part in value) if isinstance(value, tuple) else f"{value:.3g}"


if __name__ == "__main__":
    main()
