"""Randomness only through `random_state`: no function of this package uses a global generator."""

from __future__ import annotations

import numbers

import numpy as np

RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for None (fresh entropy), a whole number, a Generator or a RandomState."""
    if random_state is None or isinstance(random_state, numbers.Integral):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    raise ValueError(f"random_state must be None, a whole number or a generator, found {random_state!r}.")


def draw_seed(generator: np.random.Generator) -> int:
    """Draw a seed for a part that takes a whole number."""
    return int(generator.integers(2**31))
