"""Speed and memory of the pursuit, as ratios in one run.

    python benchmarks/inference.py                              all cases without data
    python benchmarks/inference.py --nuswide labels81.npz       also the 4,580 label sets of NUS-WIDE's 21 concepts
    python benchmarks/inference.py --cuda                       also the dense case on a GPU against the CPU
    python benchmarks/inference.py --table                      the stored figures as Markdown
    python benchmarks/inference.py --fill docs/inference.md     writes them into the page

Peers of the first case: the paper's inference at the paper's cost, a dense eigendecomposition and a regression with a
row for every pair of items, once by the pseudo-inverse as in the released code and once by LAPACK's least squares.
Prints each case and writes results/benchmark-inference.json (cases already there and not run again are kept).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import hbmp
from hbmp.affinities import LabelOverlap, SameClass, SharedLabels

RESULTS = Path(__file__).parent.parent / "results" / "benchmark-inference.json"


def straight_inference(R, n_bits, regression, seed=0):
    """Algorithm 1 as written: eigh of the whole residual, a regression over all pairs; the residual it leaves."""
    rng = np.random.default_rng(seed)
    off = ~np.eye(len(R), dtype=bool)
    target, columns, residual = R[off], [], np.where(off, R, 0)
    for _ in range(n_bits):
        v = np.where(np.linalg.eigh(residual)[1][:, -1] > 0, 1.0, -1.0)
        while v @ residual @ v < 0:
            v = np.where(rng.standard_normal(len(R)) > 0, 1.0, -1.0)
        columns.append(np.outer(v, v)[off])
        design = np.stack(columns, axis=1)
        left = target - design @ regression(design, target)
        residual = np.zeros_like(R)
        residual[off] = left
    return np.linalg.norm(left) / np.linalg.norm(target)


def by_pseudo_inverse(design, target):
    """As the released code solves Eq. 10."""
    return np.linalg.pinv(design) @ target


def by_least_squares(design, target):
    """The same solution by LAPACK's least-squares routine."""
    return np.linalg.lstsq(design, target, rcond=None)[0]


def label_rows(n, n_labels, seed=0):
    rng = np.random.default_rng(seed)
    shares = np.linspace(0.3, 0.02, n_labels)
    rows = (rng.random((n, n_labels)) < shares).astype(np.uint8)
    rows[np.arange(n), rng.integers(0, n_labels, n)] = 1
    return rows


def timed(call, repeats=1):
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - started)
    return result, min(seconds)


def against_the_straight_way():
    """Label sets, 16 bits. Target: 50 times faster than the direct method at n = 400, residual not higher."""
    return {str(n): straight_case(n) for n in (400, 1000)}


def straight_case(n):
    rows = np.unique(label_rows(8000, 21), axis=0)
    rows = rows[np.random.default_rng(0).permutation(len(rows))[:n]]
    affinity = SharedLabels().fit(None, rows)
    R = affinity.matrix().astype(float)
    hbmp.infer_codes(R, 2)
    book, ours = timed(lambda: hbmp.infer_codes(affinity, 16), repeats=3)
    theirs_residual, released = timed(lambda: straight_inference(R, 16, by_pseudo_inverse))
    _, direct = timed(lambda: straight_inference(R, 16, by_least_squares))
    return {
        "times_faster": released / ours,
        "times_faster_than_lstsq": direct / ours,
        "seconds": ours,
        "residual": book.relative_residuals[-1],
        "residual_of_peer": theirs_residual,
    }


def nuswide(path):
    """4,580 label sets, regress, one-flip. Target: 48 bits in 8 s, 1 GB, residual 0.56."""
    stored = np.load(path)
    labels = stored["labels"][:, stored["top21"]]
    affinity = SharedLabels().fit(None, labels[labels.any(axis=1)])
    hbmp.infer_codes(SharedLabels(items="instances").fit(None, labels[:1100]), 2)  # numba compiles
    found = {"items": affinity.n_items_, "bits": 48, "square_cpu_seconds": square_of(affinity.matrix())}
    for name, settings in {"nested": {}, "refined": {"refine": 1}}.items():
        cpu = time.process_time()
        book, seconds = timed(lambda settings=settings: hbmp.infer_codes(affinity, 48, **settings))
        found[name] = {
            "seconds": seconds,
            "cpu_seconds": time.process_time() - cpu,
            "residual": book.relative_residuals[-1],
        }
    return {**found, "peak_gb": peak_memory()}


def square_of(R):
    """CPU seconds of one product of the affinity with itself in single precision, a peer that any machine has."""
    cpu = time.process_time()
    R @ R
    return time.process_time() - cpu


def growth():
    """Low-rank affinities, 8 bits. Target: ten times the items in twelve times the time; a million in 8 GB."""
    found = {}
    for name, make in {
        "same_class": lambda n: SameClass(items="instances").fit(None, np.arange(n) % 1000),
        "label_overlap": lambda n: LabelOverlap(items="instances").fit(None, label_rows(n, 40)),
    }.items():
        seconds = []
        for n in (100_000, 1_000_000):
            affinity = make(n)
            seconds.append(timed(lambda affinity=affinity: hbmp.infer_codes(affinity, 8))[1])
        found[name] = {"seconds": seconds, "growth": seconds[1] / seconds[0], "peak_gb": peak_memory()}
    return found


def gpu():
    """20,000 items, dense, 32 bits: at least ten times faster on the GPU."""
    import torch

    affinity = SharedLabels(items="instances").fit(None, label_rows(20_000, 60))
    hbmp.infer_codes(affinity.block(slice(2500), slice(2500)), 2, device="cuda")
    on_gpu, fast = timed(lambda: hbmp.infer_codes(affinity, 32, device="cuda"), repeats=2)
    on_cpu, slow = timed(lambda: hbmp.infer_codes(affinity, 32, device="cpu"))
    return {
        "items": 20_000,
        "bits": 32,
        "times_faster": slow / fast,
        "gpu_seconds": fast,
        "cpu_seconds": slow,
        "residual_gpu": on_gpu.relative_residuals[-1],
        "residual_cpu": on_cpu.relative_residuals[-1],
        "gpu": torch.cuda.get_device_name(),
        "cpu_cores": os.cpu_count(),
    }


def peak_memory():
    """Most memory this process ever held, in GB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_own_process(case, *arguments):
    """Run one case in a fresh process, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--case", case, *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def table():
    """The stored figures as Markdown: what was asked for and what was measured, a line a case."""
    stored = json.loads(RESULTS.read_text())
    lines = ["| case | measured | machine |", "|:---|:---|:---|"]
    for name, words in WORDS.items():
        if name in stored:
            found = stored[name]
            lines.append(f"| {found['what']} | {words(found)} | {found.get('gpu', found['machine'])} |")
    return "\n".join(lines)


def growth_words(found):
    return "; ".join(
        f"`{name}` {found[name]['growth']:.1f}×, peak {found[name]['peak_gb']:.1f} GB"
        for name in ("same_class", "label_overlap")
    )


def straight_words(n, found):
    return (
        f"n = {n}: {found['times_faster']:.1f}× faster than the pseudo-inverse, "
        f"{found['times_faster_than_lstsq']:.1f}× than LAPACK's least squares, relative residual "
        f"{found['residual']:.3f} against {found['residual_of_peer']:.3f}"
    )


WORDS = {
    "straight": lambda found: "; ".join(straight_words(n, found[n]) for n in ("400", "1000")),
    "nuswide": lambda found: (
        "; ".join(
            f"{words}: {found[name]['cpu_seconds']:.1f} s of CPU time "
            f"({found[name]['cpu_seconds'] / found['square_cpu_seconds']:.1f} × one product R R), "
            f"relative residual {found[name]['residual']:.4f}"
            for name, words in {"nested": "nested codes", "refined": "`refine=1`"}.items()
        )
        + f"; {found['peak_gb']:.2f} GB"
    ),
    "growth": growth_words,
    "gpu": lambda found: (
        f"{found['times_faster']:.1f}× faster ({found['gpu_seconds']:.1f} s against {found['cpu_seconds']:.1f} s on "
        f"{found['cpu_cores']} cores); relative residual {found['residual_gpu']:.4f} against "
        f"{found['residual_cpu']:.4f}"
    ),
}


def fill(text):
    """A page with the table of the stored figures between its markers."""
    marked = r"(<!-- inference-speed -->\n).*?(<!-- /inference-speed -->)"
    return re.sub(marked, lambda match: f"{match[1]}\n{table()}\n\n{match[2]}", text, flags=re.S)


CASES = {"straight": against_the_straight_way, "nuswide": nuswide, "growth": growth, "gpu": gpu}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nuswide", type=Path, help="labels81.npz with `labels` and `top21`")
    parser.add_argument("--cuda", action="store_true", help="run the GPU case")
    parser.add_argument("--only", choices=CASES, nargs="+")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the stored figures as Markdown")
    parser.add_argument("--fill", type=Path, metavar="PAGE", help="write them between the markers of a page")
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.table:
        print(table())
        return
    if given.fill:
        given.fill.write_text(fill(given.fill.read_text()))
        return
    if given.case:
        print(json.dumps(CASES[given.case[0]](*given.case[1:])))
        return
    wanted = given.only or [
        name for name in CASES if name not in ("nuswide", "gpu") or (given.nuswide if name == "nuswide" else given.cuda)
    ]
    kept = json.loads(given.results.read_text()) if given.results.exists() else {}
    for name in wanted:
        found = in_own_process(name, *([given.nuswide] if name == "nuswide" else []))
        kept[name] = {"what": CASES[name].__doc__, **found, "machine": machine()}
        print(f"{name}: {json.dumps(found)}", flush=True)
        given.results.parent.mkdir(parents=True, exist_ok=True)
        given.results.write_text(json.dumps(kept, indent=1) + "\n")


def machine():
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}"


if __name__ == "__main__":
    main()
