"""Set-up of worker processes: an equal part of the cores each, and exit when the parent has exited."""

from __future__ import annotations

import os
import threading
import time
from typing import Any


def start_worker(numbers: Any, jobs: int, parent: int) -> None:
    """Bind this process to its part of the cores, and exit when its parent has exited.

    Parameters
    ----------
    numbers : multiprocessing.Value
        Shared counter that numbers the workers.
    jobs : int
        Number of workers.
    parent : int
        Process id of the parent.

    Examples
    --------
    >>> import multiprocessing, os
    >>> from concurrent.futures import ProcessPoolExecutor
    >>> context = multiprocessing.get_context("spawn")
    >>> setup = (context.Value("i", 0), 2, os.getpid())
    >>> pool = ProcessPoolExecutor(2, mp_context=context, initializer=start_worker, initargs=setup)
    >>> pool.shutdown()
    """
    with numbers.get_lock():
        number, numbers.value = numbers.value, numbers.value + 1
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        mine = cores[number % jobs :: jobs] or [cores[number % len(cores)]]
        os.sched_setaffinity(0, mine)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)  # a killed parent cannot end its pool, and the pool would wait forever

    threading.Thread(target=watch, daemon=True).start()
