"""What the tests of deep losses share: a batch to try them on, and gradients by small differences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)
quick = settings(max_examples=25, deadline=None)


def problem(seed, n=7, n_bits=8, n_labels=5, sets=True):
    """Scores, label rows and positions of a batch; label sets hold one to three labels."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((n, n_labels), dtype=np.float32)
    for row in labels:
        row[rng.choice(n_labels, rng.integers(1, 4) if sets else 1, replace=False)] = 1
    scores = rng.normal(size=(n, n_bits))
    scores += np.copysign(0.01, scores)  # away from 0, where signs and sizes have no gradient
    scores = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
    return scores, torch.from_numpy(labels), torch.arange(n)


def gradient_by_differences(function, scores, step=1e-3):
    """The gradient of a function of the scores, one entry at a time, in double precision."""
    at = scores.detach().double()
    found = torch.zeros_like(at)
    for index in np.ndindex(*at.shape):
        up, down = at.clone(), at.clone()
        up[index] += step
        down[index] -= step
        found[index] = float(function(up) - function(down)) / (2 * step)
    return found.float()


def assert_same_loss(loss, plain, scores, labels, rows, differences=True):
    """A loss module gives the value of a plain loop, and its gradient that of small differences of the loop."""
    value = loss(scores, labels, rows)
    assert number(value) == pytest.approx(float(plain(scores.detach().double())), rel=1e-4, abs=1e-6)
    if differences:
        value.backward()
        torch.testing.assert_close(scores.grad, gradient_by_differences(plain, scores), rtol=2e-2, atol=2e-3)


def number(tensor):
    return float(tensor.detach())


def cosine(a, b):
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))
