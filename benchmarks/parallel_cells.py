"""Cells of a benchmark in parallel processes: their lines go to a file as they end, so that a stopped run continues.

A cell is a tuple of arguments; the work on it returns its lines. Each process keeps to one thread and sees no GPU, and
this process alone writes.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
ALONE = {**dict.fromkeys(_THREADS, "1"), "CUDA_VISIBLE_DEVICES": ""}  # the environment of each process


def read_lines(path: Path) -> list[dict]:
    """The lines of a file; a last line that a killed process left unfinished is no line."""
    found = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def measured(
    work: Callable[..., list[dict]], cells: Iterable[tuple], output: Path, *, jobs: int = 1, seconds: float = math.inf
) -> Iterator[list[dict]]:
    """The lines of `work(*cell)` for every cell, in order of completion, each on disk before it is yielded.

    No cell begins after `seconds`; those that run then are finished.
    """
    end, left = time.monotonic() + seconds, list(cells)[::-1]
    os.environ.update(ALONE)  # read by the libraries of new processes as they start
    _repair(output)
    running: set[Future] = set()
    with (
        ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool,
        output.open("a") as file,
    ):
        while left or running:
            while left and len(running) < jobs and time.monotonic() < end:
                running.add(pool.submit(_one_thread, work, left.pop()))
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                lines = future.result()
                file.writelines(json.dumps(line) + "\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
                yield lines


def _one_thread(work: Callable[..., list[dict]], cell: tuple) -> list[dict]:
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
    return work(*cell)


def _repair(output: Path) -> None:
    """Make the folder; cut off an unfinished last line."""
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.exists() and not output.read_text().endswith("\n"):
        output.write_text("".join(json.dumps(line) + "\n" for line in read_lines(output)))
