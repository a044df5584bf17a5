"""What a busy machine costs a fit: CPU time and wall time beside other processes, against a quiet machine.

    python benchmarks/contention.py --busy 8
    python benchmarks/contention.py --busy 8 --multi-label --rows 5400

Each fit runs in a process of its own, first alone, then beside processes that multiply numbers without a pause. Threads
that wait by spinning show as CPU time: a fit that needs 10 s alone must not need more than 15 s of CPU beside others.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time

import numpy as np


def data(rows: int, dimensions: int, multi_label: bool) -> tuple[np.ndarray, np.ndarray]:
    """Made features, with ten classes or 20 labels that overlap."""
    rng = np.random.default_rng(0)
    if multi_label:
        y = (rng.random((rows, 20)) < 0.1).astype(int)
        y[np.arange(rows), rng.integers(0, 20, rows)] = 1
        latent = y @ rng.standard_normal((20, dimensions))
    else:
        y = rng.integers(0, 10, rows)
        latent = rng.standard_normal((10, dimensions))[y]
    return (latent + 2 * rng.standard_normal((rows, dimensions))).astype(np.float32), y


def busy() -> None:
    """Work without a pause until it is ended."""
    value = 0
    while True:
        value = (value * 1103515245 + 12345) % 2**31


def fit(method: str, bits: int, options, answer) -> None:
    """Fit once and send (wall seconds, CPU seconds of all threads)."""
    import hbmp

    X, y = data(options.rows, options.dimensions, options.multi_label)
    model = hbmp.get_method(method)(bits, random_state=0)
    model.fit(X[:300], y[:300])  # imports and first use of libraries
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    answer.send((time.perf_counter() - wall, time.process_time() - cpu))


def measured(options) -> tuple[float, float]:
    """`fit` in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=fit, args=(options.method, options.bits, options, there))
    process.start()
    found = here.recv()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=8, help="processes beside the fit")
    parser.add_argument("--method", default="hbmp")
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--multi-label", action="store_true")
    options = parser.parse_args()
    quiet = measured(options)
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=busy, daemon=True) for _ in range(options.busy)]
    for process in others:
        process.start()
    try:
        crowded = measured(options)
    finally:
        for process in others:
            process.terminate()
    print(f"alone            {quiet[0]:7.1f} s wall {quiet[1]:7.1f} s CPU")
    print(f"beside {options.busy:2} others {crowded[0]:7.1f} s wall {crowded[1]:7.1f} s CPU")
    print(f"ratio            {crowded[0] / quiet[0]:7.2f}        {crowded[1] / quiet[1]:7.2f}")


if __name__ == "__main__":
    main()
