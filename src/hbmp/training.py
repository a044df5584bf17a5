"""The one training loop for everything in torch: batches in, gradient steps, a schedule, a progress bar.

A `Recipe` says how to train; `train` does it for any module, any batches and any loss. Batches come from an object
with `batches(generator)` that yields tuples `(inputs, *rest)`; the loss is called as `loss(module(inputs), *rest)`.
A loss with parameters of its own (proxies, a classifier) is a module too and is trained along.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

from tqdm import tqdm

from hbmp.device import threads_for


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    optimizer: "adamw" or "sgd" (with momentum). schedule: "one-cycle" (warm up, then cosine to zero), "step"
    (multiplied by `step_factor` every `step_epochs`) or "constant".
    """

    epochs: int = 30
    batch_size: int = 256
    lr: float = 1e-3
    weight_decay: float = 1e-4
    optimizer: str = "adamw"
    momentum: float = 0.9
    schedule: str = "one-cycle"
    step_epochs: int = 20
    step_factor: float = 0.5

    def lr_factor(self, progress: float) -> float:
        """Learning rate at a share of the training done, as a multiple of `lr`."""
        if self.schedule == "one-cycle":
            warm = 0.1
            if progress < warm:
                return 0.04 + 0.96 * progress / warm
            return 0.5 * (1 + math.cos(math.pi * (progress - warm) / (1 - warm)))
        if self.schedule == "step":
            return self.step_factor ** (int(progress * self.epochs) // self.step_epochs)
        return 1.0

    def make_optimizer(self, parameters):
        """The optimiser this recipe names."""
        import torch

        if self.optimizer == "adamw":
            return torch.optim.AdamW(parameters, lr=self.lr, weight_decay=self.weight_decay)
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)
        raise ValueError(f"optimizer must be 'adamw' or 'sgd', found {self.optimizer!r}.")


class ArrayBatches:
    """Shuffled batches of arrays that lie on the device already: rows of `inputs` with rows of each of `rest`."""

    def __init__(self, inputs, *rest, batch_size: int):
        self.tensors, self.batch_size = (inputs, *rest), batch_size

    def __len__(self) -> int:
        return math.ceil(len(self.tensors[0]) / self.batch_size)

    def batches(self, generator):
        """One pass in a fresh order."""
        import torch

        order = torch.randperm(len(self.tensors[0]), generator=generator).to(self.tensors[0].device)
        for rows in order.split(self.batch_size):
            yield tuple(tensor[rows] for tensor in self.tensors)


@contextlib.contextmanager
def seeded(seed: int, device: str = "cpu"):
    """Torch's own draws (weights at the start, dropout) from a seed, with the global generator put back after."""
    import torch

    devices = [torch.device(device)] if str(device).startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def train(
    module, data, loss: Callable, recipe: Recipe, *, seed: int, progress: bool = False, label: str = "training"
) -> list[float]:
    """Train `module` in place; returns the mean loss of each epoch."""
    import torch
    from torch import nn

    trained = nn.ModuleList([module, loss] if isinstance(loss, nn.Module) else [module])
    optimizer = recipe.make_optimizer(trained.parameters())
    order = torch.Generator().manual_seed(seed)
    steps, step, history = max(1, recipe.epochs * len(data)), 0, []
    trained.train()
    bar = tqdm(total=steps, desc=label, unit="step", disable=None if progress else True, leave=False)
    operations = 6 * recipe.batch_size * sum(parameter.numel() for parameter in module.parameters())
    with bar, threads_for(operations):
        for _ in range(recipe.epochs):
            total = 0.0
            for inputs, *rest in data.batches(order):
                for group in optimizer.param_groups:
                    group["lr"] = recipe.lr * recipe.lr_factor(step / steps)
                value = loss(module(inputs), *rest)
                optimizer.zero_grad(set_to_none=True)
                value.backward()
                optimizer.step()
                step, total = step + 1, total + value.detach()
                bar.update()
            history.append(float(total) / len(data))
            bar.set_postfix(loss=f"{history[-1]:.4f}")
    trained.eval()
    return history
