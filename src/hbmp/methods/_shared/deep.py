"""Base of the deep methods: any hash function trained by gradients, on a loss of its scores and the labels.

A method is defined by its loss. `make_loss` returns a torch module that is called per batch as `loss(scores, *rest)`
with rows of the arrays from `loss_inputs`: by default the labels and the positions of the samples. The same loss trains
a small function on features and a whole network on images.

Departs from the publications: all methods share one optimiser, schedule, batch size and number of steps (those of the
hash function), because this package compares methods under one budget. The constants of the losses are
published ones where they carry over; each file names the exceptions and their effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core import catalog
from hbmp._core.labels import as_classes, as_label_sets, has_label_sets
from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp._training.loop import seeded
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.methods._shared.function import make_function, suited_to


class DeepHasher(Hasher):
    """Base of the methods that are defined by a loss. A subclass defines `make_loss`."""

    supervised = True
    takes_images = True
    smoke = {"function": "linear"}

    function: object
    device: str
    verbose: bool
    random_state: RandomState

    def make_loss(self, labels: np.ndarray, seed: int) -> Any:
        """The loss as a torch module, from the 0/1 labels (n, c) of the training set and a seed for its own draws."""
        raise NotImplementedError

    @property
    def n_scores(self) -> int:
        """Scores to train: the bits. A method that needs more for its loss drops them in `finish`."""
        return self.n_bits

    def prepare(self, X: Any, labels: np.ndarray, seed: int) -> None:
        """Learn what is needed before the loss is made. Most methods need nothing."""

    def loss_inputs(self, X: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, ...]:
        """Arguments of the loss after the scores: labels (n, c) and positions (n,)."""
        return labels, np.arange(len(X))

    def with_learning_rate(self, n_rows: int, factor: float) -> dict[str, Any] | None:
        """Settings for features that multiply the learning rate, as plain values; None if `function` is not "auto"."""
        if not (isinstance(self.function, str) and self.function == "auto"):
            return None
        name = suited_to(False, n_rows)
        usual = Linear().lr if name == "kernel" else catalog.load("functions", name)().lr
        rate = {"lr": float(f"{factor * usual:.3g}")}
        return {"function": [name, {"linear": ["linear", rate]} if name == "kernel" else rate]}

    def finish(self, loss: Any) -> None:
        """Store results of the trained loss, such as bit weights. Most losses have none."""

    def _fit(self, X: Any, y: Any) -> None:
        rng = as_generator(self.random_state)
        labels = self._label_rows(X, y)
        seed = draw_seed(rng)
        self.function_ = make_function(self.function, X, device=self.device, verbose=self.verbose)
        self.prepare(X, labels, seed)
        with seeded(seed):
            loss = self.make_loss(labels, seed)
        inputs = self.loss_inputs(X, labels)
        self.function_.learn(X, loss, *inputs, n_bits=self.n_scores, random_state=draw_seed(rng))
        self.finish(loss)

    def _project(self, X: Any) -> np.ndarray:
        return self.function_.project(X)

    def _label_rows(self, X: Any, y: Any) -> np.ndarray:
        """Labels as rows of 0/1: one column per class, or the given rows of multi-label data."""
        if y is None:
            return np.zeros((len(X), 0), dtype=np.float32)
        if has_label_sets(y):
            if self.single_label:
                raise ValueError(
                    f"{type(self).__name__} is defined for one class per instance, found labels of shape {y.shape}. "
                    "Pass a vector of classes, or use a multi-label method, for example 'hbmp'."
                )
            return as_label_sets(y)
        _, classes = np.unique(as_classes(y), return_inverse=True)
        return np.eye(classes.max() + 1, dtype=np.float32)[classes]
