"""Several processes that train one network (`torchrun`): ranks, the rows of each process, and the gathered scores.

Each process computes the scores of its rows of a batch. All processes then gather all scores, so a loss over pairs or
triplets is the same as in one process. The gradient through `gather` is the sum over the processes, and
DistributedDataParallel averages it. Together this is exactly the gradient of one process with the whole batch.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from datetime import timedelta


def rank() -> int:
    """The number of this process; 0 if there is only one."""
    return int(os.environ.get("RANK", "0"))


def world() -> int:
    """Number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def join(device: str) -> str:
    """Join the process group that `torchrun` started; return the device of this process."""
    if world() == 1:
        return device
    import torch
    from torch import distributed

    own = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if str(device).startswith("cuda") else "cpu"
    if not distributed.is_initialized():
        if own != "cpu":
            torch.cuda.set_device(own)
        distributed.init_process_group("gloo" if own == "cpu" else "nccl")
        atexit.register(_leave)  # exiting while the threads of the group run sometimes aborts the process
    return own


def _leave() -> None:
    """Leave the group together: a process that goes while another still talks to it may abort."""
    from torch import distributed

    if not distributed.is_initialized():
        return
    if distributed.get_backend() == "gloo":
        with suppress(RuntimeError):  # another process is gone already
            distributed.monitored_barrier(timeout=timedelta(seconds=20))
    distributed.destroy_process_group()


def share(rows):
    """The rows of a batch that this process computes. Rows that do not divide evenly are skipped."""
    if world() == 1:
        return rows
    even = len(rows) // world() * world()
    return rows[:even][rank() :: world()]


def wrap(module):
    """Wrap the module so that gradients are averaged over the processes."""
    if world() == 1:
        return module
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(module)


def gather(tensor):
    """The rows of all processes in rank order. Gradients flow back to the process that computed each row."""
    if world() == 1:
        return tensor
    import torch
    from torch.distributed.nn.functional import all_gather

    return torch.cat(all_gather(tensor.contiguous()))


def wait() -> None:
    """Block until all processes have arrived here."""
    if world() > 1:
        from torch import distributed

        distributed.barrier()
