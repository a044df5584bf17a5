"""How often the recall interval of a fit without labels covers the recall of new queries.

    python benchmarks/recall_coverage.py --data data

For each set of `without_labels.py` and each seed, 2,000 rows are fitted and up to 3,000 other rows query them. Also
shows how many bits were predicted to reach a recall of 0.9 beside the bits at hand.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import hbmp
from hbmp.methods.hbmp.recall import nearest, shares_found
from without_labels import SETS


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
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--rows", type=int, default=2000)
    given = parser.parse_args()
    covered = []
    for name in given.sets:
        X = np.asarray(np.load(given.data / SETS[name], mmap_mode="r"), dtype=np.float32)
        X = X[np.linalg.norm(X, axis=1) > 0]
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        for seed in range(given.seeds):
            estimate, truth = fitted(X, seed, given.bits, given.rows)
            covered.append(estimate.low <= truth <= estimate.high)
            print(f"{name} {seed}: {estimate.estimate:.3f} ({estimate.low:.3f} to {estimate.high:.3f}), {truth:.3f}")
    print(f"covered {sum(covered)} of {len(covered)}: {np.mean(covered):.3f}")


if __name__ == "__main__":
    main()
