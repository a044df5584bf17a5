"""How often the recall interval of a fit without labels covers the recall of new queries.

    python benchmarks/recall_coverage.py --data data

For each set of `without_labels.py` and each seed, 2,000 rows are fitted and up to 3,000 other rows query them. Also
shows how many bits were predicted to reach a recall of 0.9 beside the bits at hand.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import hbmp
from hbmp.methods.hbmp.recall import nearest, shares_found
from without_labels import SETS

RESULTS = Path(__file__).parent.parent / "results" / "recall-coverage.jsonl"


def fitted(X, seed, n_bits, rows):
    """(estimate, recall of new queries) of one fit."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, queries = X[order[:rows]], X[order[rows : rows + 3000]]
    model = hbmp.HBMP(n_bits, random_state=seed).fit(train)
    near = nearest(queries @ train.T - np.square(train).sum(axis=1) / 2, model.recall_.k)
    found = model.project(queries) @ (model.transform(train) * model.bit_weights_).astype(np.float32).T
    return model.recall_, float(shares_found(found, near, model.recall_.k).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", choices=SETS, nargs="+", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    lines = []
    for name in given.sets:
        X = np.asarray(np.load(given.data / SETS[name], mmap_mode="r"), dtype=np.float32)
        X = X[np.linalg.norm(X, axis=1) > 0]
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        for seed in range(given.seeds):
            found, truth = fitted(X, seed, given.bits, given.rows)
            numbers = {"estimate": found.estimate, "low": found.low, "high": found.high, "truth": truth}
            lines.append({"data": name, "seed": seed} | {key: round(value, 3) for key, value in numbers.items()})
            print(json.dumps(lines[-1]), flush=True)
    given.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    covered = [line["low"] <= line["truth"] <= line["high"] for line in lines]
    print(f"covered {sum(covered)} of {len(covered)}: {np.mean(covered):.3f}")


if __name__ == "__main__":
    main()
