"""Several processes that train one network (`torchrun`): who I am, my share of a batch, everyone's scores.

Each process computes the scores of its share of a batch; all of them then see all scores, so a loss over pairs or
triplets means the same as in one process. The gradient that comes back through `gather` is the sum over the processes,
which DistributedDataParallel then averages: together exactly the gradient of one process with the whole batch.
"""

from __future__ import annotations

import atexit
import os


def rank() -> int:
    """The number of this process, 0 where there is one alone."""
    return int(os.environ.get("RANK", "0"))


def world() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def join(device: str) -> str:
    """Join the group that `torchrun` started; returns this process's own device."""
    if world() == 1:
        return device
    import torch
    from torch import distributed

    own = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if str(device).startswith("cuda") else "cpu"
    if not distributed.is_initialized():
        if own != "cpu":
            torch.cuda.set_device(own)
        distributed.init_process_group("gloo" if own == "cpu" else "nccl")
        atexit.register(_leave)  # a process that ends with the group's threads running is aborted now and then
    return own


def _leave() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()


def share(rows):
    """This process's part of the rows of one batch; the few that do not divide evenly are left out."""
    if world() == 1:
        return rows
    even = len(rows) // world() * world()
    return rows[:even][rank() :: world()]


def wrap(module):
    """The module with gradients averaged over the processes."""
    if world() == 1:
        return module
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(module)


def gather(tensor):
    """Every process's rows, in the order of the processes; gradients flow back to the process they came from."""
    if world() == 1:
        return tensor
    import torch
    from torch.distributed.nn.functional import all_gather

    return torch.cat(all_gather(tensor.contiguous()))


def wait() -> None:
    """Let every process arrive here before any goes on."""
    if world() > 1:
        from torch import distributed

        distributed.barrier()
