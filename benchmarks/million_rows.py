"""A million vectors from a memory-mapped file: time and memory of fitting and encoding without labels.

    python benchmarks/million_rows.py --folder /tmp                        a million x 768 float32 at 768 bits
    python benchmarks/million_rows.py --folder /tmp --rows 200000          a fifth of it

The file (3 GB) is written before and deleted after: unit rows of falling variance along 768 random directions, plus
noise. Prints one line of JSON. Memory is the peak of this process, without the pages of the file that the system keeps.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from pathlib import Path

import numpy as np

import hbmp
from hbmp import hamming

BLOCK = 20_000  # rows written or encoded at a time


def write_rows(path, n_rows, width):
    """Unit rows with variances that fall as 1 / rank, block by block."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((width, width)))[0] / np.sqrt(np.arange(1, width + 1))[:, None]
    directions = directions.astype(np.float32)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, width))
    for start in range(0, n_rows, BLOCK):
        block = rng.standard_normal((min(BLOCK, n_rows - start), width), dtype=np.float32) @ directions
        rows[start : start + BLOCK] = block / np.linalg.norm(block, axis=1, keepdims=True)
    rows.flush()


class PeakMemory:
    """The most memory of this process beside mapped files, in GB, looked at ten times per second."""

    def __init__(self):
        self.peak, self._done = 0.0, threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while not self._done.wait(0.1):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon"):
                    self.peak = max(self.peak, int(line.split()[1]) / 1e6)

    def stop(self):
        """The peak so far; no more is looked at."""
        self._done.set()
        return round(self.peak, 2)


def measured(path, n_bits):
    X, memory, clocks = np.load(path, mmap_mode="r"), PeakMemory(), [(time.time(), time.process_time())]
    model = hbmp.HBMP(n_bits, random_state=0).fit(X)
    clocks.append((time.time(), time.process_time()))
    packed = np.empty((len(X), n_bits // 8), np.uint8)
    for start in range(0, len(X), BLOCK):
        packed[start : start + BLOCK] = hamming.pack(model.transform(X[start : start + BLOCK]))
    clocks.append((time.time(), time.process_time()))
    (fit, fit_cpu), (encode, encode_cpu) = np.diff(clocks, axis=0).round(1).tolist()
    seconds = {"fit_s": fit, "fit_cpu_s": fit_cpu, "encode_s": encode, "encode_cpu_s": encode_cpu}
    shape = {"rows": len(X), "features": X.shape[1], "bits": n_bits}
    return {**shape, **seconds, "peak_gb": memory.stop(), "recall": round(model.recall_.estimate, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the file is written")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--bits", type=int, default=768)
    given = parser.parse_args()
    path = given.folder / "hbmp-million-rows.npy"
    try:
        write_rows(path, given.rows, given.features)
        print(json.dumps(measured(path, given.bits)))
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
