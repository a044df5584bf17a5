"""Layers of weights trained in torch, stored and applied as plain arrays; shared by `linear` and `mlp`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hbmp._core.device import pick_device, require_torch, to_numpy, to_torch
from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp._training.loop import ArrayBatches, Recipe, seeded, train
from hbmp.functions._shared.base import HashFunction

Layers = list[tuple[np.ndarray, np.ndarray]]


class FeedForward(HashFunction):
    """Standardised features through ReLU layers to scores; a subclass sets the hidden layers.

    `layers_` holds (weights, bias) of each layer, the standardisation folded into the first.
    """

    hidden: tuple[int, ...] = ()
    dropout: float = 0.0
    smoke = {"epochs": 2}

    layers_: Layers
    loss_: list[float]

    epochs: int | None
    batch_size: int
    lr: float
    weight_decay: float
    optimizer: str
    schedule: str
    verbose: bool

    def learn(
        self, X: Any, loss: Callable[..., Any], *rest: np.ndarray, n_bits: int, random_state: RandomState = None
    ) -> Self:
        """Minimise `loss(scores, *rest)` with minibatches. A loss that is a module is trained too."""
        require_torch(type(self).__name__)
        device = pick_device(self.device)
        seed = draw_seed(as_generator(random_state))
        mean, scale = _standardisation(X)
        inputs = to_torch(((X - mean) / scale).astype(np.float32), device)
        occasional = None if self.hidden else getattr(loss, "occasional", None)  # layers below need every score
        recipe = replace(self._recipe(len(X)), rates=() if occasional is None else occasional.rates)
        data = ArrayBatches(inputs, *(to_torch(array, device) for array in rest), batch_size=recipe.batch_size)
        with seeded(seed, device):
            module = self._module(X.shape[1], n_bits, occasional).to(device)
            loss = loss.to(device) if hasattr(loss, "to") else loss
            self.loss_ = train(module, data, loss, recipe, seed=seed, progress=self.verbose, label="hash function")
        self.layers_ = _folded(_layers(module), mean, scale)
        return self

    def rescale(self, factor: np.ndarray, shift: np.ndarray) -> None:
        """Fold a factor and a shift of each score into the last layer."""
        weights, bias = self.layers_[-1]
        self.layers_[-1] = ((weights * factor).astype(np.float32), (bias * factor + shift).astype(np.float32))

    def drop(self, columns: Sequence[int]) -> None:
        """Remove these scores from the last layer."""
        weights, bias = self.layers_[-1]
        self.layers_[-1] = (np.delete(weights, columns, axis=1), np.delete(bias, columns))

    def project(self, X: np.ndarray) -> NDArray[np.float32]:
        """Scores of the trained layers, in NumPy."""
        out: NDArray[np.float32] = np.asarray(X, dtype=np.float32)
        for position, (weights, bias) in enumerate(self.layers_):
            out = out @ weights + bias
            if position < len(self.layers_) - 1:
                np.maximum(out, 0, out=out)
        return out

    def _recipe(self, n_samples: int) -> Recipe:
        batch_size = min(self.batch_size, max(8, n_samples // 4))
        epochs = self.epochs
        if epochs is None:  # about 3,000 steps, and 10 to 200 passes
            epochs = int(np.clip(math.ceil(3000 * batch_size / n_samples), 10, 200))
        return Recipe(
            epochs=epochs,
            batch_size=batch_size,
            lr=self.lr,
            weight_decay=self.weight_decay,
            optimizer=self.optimizer,
            schedule=self.schedule,
        )

    def _module(self, n_inputs: int, n_bits: int, occasional: Any = None) -> Any:
        from torch import nn

        from hbmp._training.occasional import OccasionalLinear

        sizes = [n_inputs, *self.hidden]
        parts: list[nn.Module] = []
        for a, b in itertools.pairwise(sizes):
            parts += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(self.dropout)]
        if occasional is None:
            return nn.Sequential(*parts, nn.Linear(sizes[-1], n_bits))
        return nn.Sequential(OccasionalLinear(sizes[-1], n_bits, occasional))


def _standardisation(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and scale of each feature; a constant feature keeps scale 1."""
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    return mean, np.where(deviation > 1e-7 * (np.abs(mean) + 1), deviation, 1.0)


def _layers(module: Any) -> Layers:
    from torch import nn

    found = [(part.weight, part.bias) for part in module if isinstance(part, nn.Linear)]
    found += [part.joined for part in module if hasattr(part, "joined")]
    return [(to_numpy(weight).T.astype(np.float64), to_numpy(bias).astype(np.float64)) for weight, bias in found]


def _folded(layers: Layers, mean: np.ndarray, scale: np.ndarray) -> Layers:
    """The layers for raw features instead of standardised ones."""
    weights = layers[0][0] / scale[:, None]
    layers[0] = (weights, layers[0][1] - mean @ weights)
    return [(np.ascontiguousarray(w, dtype=np.float32), b.astype(np.float32)) for w, b in layers]
