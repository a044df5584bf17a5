"""Batches of features that stay on disk: each is read, standardised and sent to the device when it is needed."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

from hbmp._core.device import to_torch
from hbmp._training import distributed


def is_on_disk(X: Any) -> bool:
    """Whether an array is a memory map, or a view of one."""
    while X is not None:
        if isinstance(X, (np.memmap, mmap.mmap)):
            return True
        X = getattr(X, "base", None)
    return False


class DiskBatches:
    """Shuffled batches of (standardised rows of X, rows of each of `rest`), in the order of `ArrayBatches`."""

    def __init__(
        self, X: np.ndarray, mean: np.ndarray, scale: np.ndarray, *rest: np.ndarray, batch_size: int, device: str
    ):
        self.X, self.mean, self.scale, self.rest = X, mean, scale, rest
        self.batch_size, self.device = batch_size, device

    def __len__(self) -> int:
        return math.ceil(len(self.X) / self.batch_size)

    def batches(self, generator: Any, start: int = 0) -> Iterator[tuple[Any, ...]]:
        """One epoch in a new order, from batch number `start` on."""
        import torch

        order = torch.randperm(len(self.X), generator=generator)
        for rows in order.split(self.batch_size)[start:]:
            mine = distributed.share(rows).numpy()
            inputs = ((self.X[mine] - self.mean) / self.scale).astype(np.float32)
            yield tuple(to_torch(part, self.device) for part in (inputs, *(array[mine] for array in self.rest)))
