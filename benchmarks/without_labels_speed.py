"""Fit and encoding time of codes without labels beside ITQ at equal bits, in seconds of processor time on one thread.

    OMP_NUM_THREADS=1 python benchmarks/without_labels_speed.py data/newsgroups20/features.npy

8,192 rows are fitted and encoded. Of several encodings the fastest counts.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import hbmp

ROWS, WARM = 8192, 1000


def seconds(call):
    """Processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measured(X, n_bits):
    """Fit time and rows encoded per second of ITQ, and of HBMP for codes and for real-valued queries."""
    models = {
        "itq": hbmp.get_method("itq")(n_bits, random_state=0),
        "hbmp": hbmp.HBMP(n_bits, random_state=0),
        "floats": hbmp.HBMP(n_bits, queries="floats", random_state=0),
    }
    found = {"bits": n_bits}
    for name, model in models.items():
        model.fit(X[:WARM])  # compiles, imports
        found[f"{name}_fit_s"] = round(seconds(lambda model=model: model.fit(X)), 2)
        fastest = min(seconds(lambda model=model: model.transform(X)) for _ in range(5))
        found[f"{name}_rows_per_s"] = round(len(X) / fastest)
    for name, prefix in (("hbmp", ""), ("floats", "floats_")):
        found[f"{prefix}fit_ratio"] = round(found[f"{name}_fit_s"] / found["itq_fit_s"], 2)
        found[f"{prefix}rate_ratio"] = round(found[f"{name}_rows_per_s"] / found["itq_rows_per_s"], 2)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    X = np.asarray(np.load(given.features, mmap_mode="r")[:ROWS], dtype=np.float32)
    lines = [{"features": X.shape[1]} | measured(X, n_bits) for n_bits in given.bits]
    text = json.dumps({"rows": len(X), "sizes": lines}, indent=1)
    print(text)
    if given.output:
        given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
