"""The one training loop for everything in torch: batches, gradient steps, a schedule, checkpoints, a progress bar.

A `Recipe` holds the settings; `train` applies them to any module, batches and loss. Batches come from an object with
`batches(generator, start)` that yields tuples `(inputs, *rest)` from batch number `start` on. Its `about()`, if it has
one, gives the digests by which a checkpoint recognises its data. The loss is called as
`loss(module(inputs), *rest)`. A loss with parameters (proxies, a classifier) is a module and is trained too. A batch
may call the loss several times (mixup, `accumulate`), so a loss must not count calls. If it has `after_step()` or
`after_epoch()`, these are called once after each optimiser step and each epoch. If it has `views(inputs)`, this gives
several versions of each input, (views, n, …), and the loss gets their scores, (n, views, b).
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hbmp._core.device import threads_for
from hbmp._core.progress import counted
from hbmp._training import distributed, resuming
from hbmp._training.checkpoints import Checkpoints
from hbmp._training.fingerprint import fingerprint
from hbmp._training.run import TrainingRun


@dataclass(frozen=True)
class Recipe:
    """Settings of one training.

    Parameters
    ----------
    epochs : int, default=30
        Passes over the data.
    batch_size : int, default=256
        Samples per step.
    lr : float, default=1e-3
        Highest learning rate.
    weight_decay : float, default=1e-4
        Weight decay of the optimiser.
    optimizer : {"adamw", "sgd"}, default="adamw"
        The optimiser.
    momentum : float, default=0.9
        Momentum of "sgd".
    schedule : {"one-cycle", "step", "constant"}, default="one-cycle"
        "one-cycle" warms up, then falls to 0 by a cosine. "step" multiplies by `step_factor` every `step_epochs`.
    rates : tuple of (str, float), default=()
        Multiples of `lr` for parameters whose name starts with the prefix.
    precision : {"float32", "bf16", "fp16"}, default="float32"
        Precision of the forward pass.
    accumulate : int, default=1
        Parts that a batch is split into, computed one by one.
    ema : float, default=0.0
        Decay of the exponential moving average of the weights. 0 keeps no average.
    compile : bool, default=False
        Compile the module.
    patience : int or None, default=None
        Epochs without a better validation score after which training stops.
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
        """Learning rate as a multiple of `lr`, for a progress of training from 0 to 1."""
        if self.schedule == "one-cycle":
            warm = 0.1
            if progress < warm:
                return 0.04 + 0.96 * progress / warm
            return 0.5 * (1 + math.cos(math.pi * (progress - warm) / (1 - warm)))
        if self.schedule == "step":
            return self.step_factor ** (int(progress * self.epochs) // self.step_epochs)
        return 1.0

    def make_optimizer(self, named_parameters: Iterable[tuple[str, Any]]) -> Any:
        """The optimiser that this recipe names, with one parameter group per rate."""
        import torch

        groups: dict[float, list[Any]] = {}
        for name, parameter in named_parameters:
            factor = next((rate for prefix, rate in self.rates if name.startswith(prefix)), 1.0)
            groups.setdefault(factor, []).append(parameter)
        parts = [{"params": part, "factor": factor} for factor, part in groups.items()]
        if self.optimizer == "adamw":
            devices = {parameter.device.type for part in groups.values() for parameter in part}
            fused = devices <= {"cpu", "cuda"}  # one pass over the parameters instead of ten
            return torch.optim.AdamW(parts, lr=self.lr, weight_decay=self.weight_decay, fused=fused or None)
        if self.optimizer == "sgd":
            return torch.optim.SGD(parts, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)
        raise ValueError(f"optimizer must be 'adamw' or 'sgd', found {self.optimizer!r}.")


class ArrayBatches:
    """Shuffled batches of tensors that are on the device already: rows of `inputs` with rows of each of `rest`."""

    def __init__(self, inputs: Any, *rest: Any, batch_size: int):
        self.tensors, self.batch_size = (inputs, *rest), batch_size

    def __len__(self) -> int:
        return math.ceil(len(self.tensors[0]) / self.batch_size)

    def about(self) -> dict[str, Any]:
        """Digests of the inputs and of the targets, for a checkpoint."""
        return {"data": fingerprint(self.tensors[0]), "targets": fingerprint(*self.tensors[1:])}

    def batches(self, generator: Any, start: int = 0) -> Iterator[tuple[Any, ...]]:
        """One epoch in a new order, from batch number `start` on."""
        import torch

        order = torch.randperm(len(self.tensors[0]), generator=generator).to(self.tensors[0].device)
        for rows in order.split(self.batch_size)[start:]:
            mine = distributed.share(rows)
            yield tuple(tensor[mine] for tensor in self.tensors)


@contextlib.contextmanager
def seeded(seed: int, device: str = "cpu") -> Iterator[None]:
    """Seed torch's own draws (initial weights, dropout) inside this context; restore the global generator after it."""
    import torch

    devices = [torch.device(device)] if str(device).startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def train(
    module: Any,
    data: Any,
    loss: Callable[..., Any],
    recipe: Recipe,
    *,
    seed: int,
    progress: bool = False,
    label: str = "training",
    monitor: Callable[..., Any] | None = None,
    validate: Callable[[Any], float] | None = None,
    checkpoint: Any = None,
    checkpoint_minutes: float = 10.0,
    about: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callable[[Mapping[str, Any]], None]] = (),
) -> list[float]:
    """Train `module` in place.

    Parameters
    ----------
    module : torch.nn.Module
        The network.
    data : object with `batches(generator, start)` and a length
        The batches.
    loss : callable or torch.nn.Module
        Called as `loss(scores, *rest)`.
    recipe : Recipe
        The settings.
    seed : int
        Seed of the order of the samples.
    progress : bool, default=False
        Show a progress bar on stderr.
    label : str, default="training"
        Text of the progress bar.
    monitor : callable, optional
        Called as `monitor(scores, *rest)` per batch; its mean, such as the bit error rate, is shown in the bar.
    validate : callable, optional
        Called as `validate(module)` after each epoch; returns a score, higher is better. The best weights are kept.
    checkpoint : str or path, optional
        Folder for checkpoints. A training that finds its own checkpoint there resumes from it. A checkpoint of another
        training (data, targets, loss, settings or seed) is refused. Initial weights are not compared.
    checkpoint_minutes : float, default=10.0
        The most minutes between checkpoints.
    about : mapping of str to JSON value, optional
        Further facts that a checkpoint must agree with, such as a digest of the validation data.
    callbacks : sequence of callable, default=()
        Called after each epoch with a mapping of its figures.

    Returns
    -------
    history : list of float
        Mean loss of each epoch.
    """
    training = TrainingRun(module, data, loss, recipe, seed, monitor)
    saved = _checkpoints(training, checkpoint, checkpoint_minutes, about)
    if saved is not None and (state := saved.load()) is not None:
        training.restore(state)
    operations = 6 * recipe.batch_size * sum(parameter.numel() for parameter in module.parameters())
    with counted(label, recipe.epochs * len(data), show=progress) as done, threads_for(operations):
        done(training.step)
        while training.epoch < recipe.epochs and not training.stopped:
            began = time.perf_counter()
            for _ in training.steps():
                done()
                if saved is not None and saved.due:
                    _save(saved, training)
            facts = training.end_epoch(validate, time.perf_counter() - began)
            figures = {name: f"{facts[name]:.4f}" for name in ("loss", "unmatched") if name in facts}
            done(0, epoch=f"{training.epoch} of {recipe.epochs}", **figures)
            for callback in callbacks:
                callback(facts)
            if saved is not None and saved.due_at_epoch(last=training.epoch == recipe.epochs):
                _save(saved, training)
    training.finish()
    return training.history


def _checkpoints(
    training: TrainingRun, folder: Any, minutes: float, about: Mapping[str, Any] | None
) -> Checkpoints | None:
    """The checkpoints in the given folder, or in that of a `resumable` block; None where nothing is kept."""
    if folder is None and not resuming.active():
        return None
    facts = {**training.about(), **(about or {})}
    if folder is not None:
        return Checkpoints(folder, facts, minutes=minutes)
    facts["start"] = fingerprint(*training.trained.state_dict().values())  # nobody named this training
    place, seconds = resuming.training_folder(facts)
    return Checkpoints(place, facts, minutes=seconds / 60, spare=True)


def _save(saved: Checkpoints, training: TrainingRun) -> None:
    if distributed.rank() == 0:
        saved.save(training.state())
    distributed.wait()
