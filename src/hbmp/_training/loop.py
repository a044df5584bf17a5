"""The one training loop for everything in torch: batches in, gradient steps, a schedule, checkpoints, a progress bar.

A `Recipe` says how to train; `train` does it for any module, any batches and any loss. Batches come from an object
with `batches(generator, start)` that yields tuples `(inputs, *rest)` from batch number `start` on; the loss is called
as `loss(module(inputs), *rest)`. A loss with parameters of its own (proxies, a classifier) is a module too and is
trained along. A batch may ask the loss more than once (mixup, `accumulate`), so a loss does not count calls: where it
has `after_step()` or `after_epoch()`, these are called once after each step of the optimiser and each epoch.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from hbmp._core.device import threads_for
from hbmp._training import distributed
from hbmp._training.checkpoints import Checkpoints
from hbmp._training.run import TrainingRun


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    optimizer: "adamw" or "sgd" (with momentum). schedule: "one-cycle" (warm up, then cosine to zero), "step"
    (multiplied by `step_factor` every `step_epochs`) or "constant". rates: multiples of `lr` for parameters whose name
    starts with a prefix. accumulate: parts that a batch is computed in, one after the other. ema: how much of the
    averaged weights each step keeps, 0 for none.
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
    rates: tuple[tuple[str, float], ...] = ()
    precision: str = "float32"
    accumulate: int = 1
    ema: float = 0.0
    compile: bool = False
    patience: int | None = None

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

    def make_optimizer(self, named_parameters):
        """The optimiser this recipe names, with one group of parameters a rate."""
        import torch

        groups: dict[float, list] = {}
        for name, parameter in named_parameters:
            factor = next((rate for prefix, rate in self.rates if name.startswith(prefix)), 1.0)
            groups.setdefault(factor, []).append(parameter)
        parts = [{"params": part, "factor": factor} for factor, part in groups.items()]
        if self.optimizer == "adamw":
            fused = all(parameter.is_cuda for part in groups.values() for parameter in part)
            return torch.optim.AdamW(parts, lr=self.lr, weight_decay=self.weight_decay, fused=fused or None)
        if self.optimizer == "sgd":
            return torch.optim.SGD(parts, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)
        raise ValueError(f"optimizer must be 'adamw' or 'sgd', found {self.optimizer!r}.")


class ArrayBatches:
    """Shuffled batches of arrays that lie on the device already: rows of `inputs` with rows of each of `rest`."""

    def __init__(self, inputs, *rest, batch_size: int):
        self.tensors, self.batch_size = (inputs, *rest), batch_size

    def __len__(self) -> int:
        return math.ceil(len(self.tensors[0]) / self.batch_size)

    def batches(self, generator, start: int = 0):
        """One pass in a fresh order, from batch number `start` on."""
        import torch

        order = torch.randperm(len(self.tensors[0]), generator=generator).to(self.tensors[0].device)
        for rows in order.split(self.batch_size)[start:]:
            mine = distributed.share(rows)
            yield tuple(tensor[mine] for tensor in self.tensors)


@contextlib.contextmanager
def seeded(seed: int, device: str = "cpu"):
    """Torch's own draws (weights at the start, dropout) from a seed, with the global generator put back after."""
    import torch

    devices = [torch.device(device)] if str(device).startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def train(
    module,
    data,
    loss: Callable,
    recipe: Recipe,
    *,
    seed: int,
    progress: bool = False,
    label: str = "training",
    monitor: Callable | None = None,
    validate: Callable | None = None,
    checkpoint: str | None = None,
    checkpoint_minutes: float = 10.0,
    callbacks: Sequence[Callable[[Mapping], None]] = (),
) -> list[float]:
    """Train `module` in place; returns the mean loss of each epoch.

    monitor(scores, *rest): a share that the progress bar shows, such as bits that miss their target. validate(module):
    a score after each epoch, higher is better; the best weights are kept, and training stops after `patience` epochs
    without a better one. checkpoint: a folder; a training that finds its own checkpoint there goes on from it.
    callbacks: called after each epoch with what happened in it.
    """
    training = TrainingRun(module, data, loss, recipe, seed, monitor)
    saved = None
    if checkpoint is not None:
        saved = Checkpoints(checkpoint, training.about, minutes=checkpoint_minutes)
        if (state := saved.load()) is not None:
            training.restore(state)
    bar = tqdm(
        total=recipe.epochs * len(data) * recipe.batch_size,
        initial=training.step * recipe.batch_size,
        desc=label,
        unit="sample",
        unit_scale=True,
        disable=None if progress and distributed.rank() == 0 else True,
        leave=False,
    )
    operations = 6 * recipe.batch_size * sum(parameter.numel() for parameter in module.parameters())
    with bar, threads_for(operations):
        while training.epoch < recipe.epochs and not training.stopped:
            began = time.perf_counter()
            for _ in training.steps():
                bar.update(recipe.batch_size)
                if saved is not None and saved.due:
                    _save(saved, training)
            facts = training.end_epoch(validate, time.perf_counter() - began)
            bar.set_postfix({name: f"{value:.4f}" for name, value in facts.items() if name in ("loss", "unmatched")})
            for callback in callbacks:
                callback(facts)
            if saved is not None:
                _save(saved, training)
    training.finish()
    return training.history


def _save(saved: Checkpoints, training: TrainingRun) -> None:
    if distributed.rank() == 0:
        saved.save(training.state())
    distributed.wait()
