"""Scores that are learned in every few steps only: which, when, and where not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from hbmp._training.losses import code_loss
from hbmp._training.occasional import Occasional, OccasionalLinear
from hbmp.functions import MLP, Kernel, Linear
from hbmp.methods.hbmp.objective import Objective
from hbmp.methods.hbmp.plan import Plan

RNG = np.random.default_rng(0)


class Squares(nn.Module):
    """Mean square of all scores that are given; keeps how many those were."""

    def __init__(self, occasional=None):
        super().__init__()
        self.occasional, self.columns = occasional, []

    def forward(self, scores, *rest):
        self.columns.append(scores.shape[1])
        return (scores - 1).square().mean()


def test_a_layer_gives_all_scores_in_every_third_step_and_outside_training():
    layer, rows = OccasionalLinear(5, 7, Occasional(3, 3)), torch.randn(4, 5)
    widths = [layer(rows).shape[1] for _ in range(7)]
    assert widths == [7, 3, 3, 7, 3, 3, 7]
    layer.eval()
    weight, bias = layer.joined
    for _ in range(2):
        torch.testing.assert_close(layer(rows), rows @ weight.T + bias)


def test_skipped_scores_stay_as_they_are():
    layer, rows = OccasionalLinear(5, 7, Occasional(3, 2)), torch.randn(4, 5)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    for step in range(4):
        first, others = layer.always.weight.detach().clone(), layer.at_times.weight.detach().clone()
        layer(rows).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        assert not torch.equal(layer.always.weight, first)
        assert torch.equal(layer.at_times.weight, others) == bool(step % 2)


@pytest.mark.parametrize(
    ("function", "widths"),
    [
        (Linear(epochs=2, batch_size=16), {3, 7}),
        (Kernel(n_anchors=6, linear=Linear(epochs=2, batch_size=16)), {3, 7}),
        (MLP(epochs=2, batch_size=16, hidden=(4,)), {7}),  # layers below learn from all scores
    ],
)
def test_functions_without_layers_below_skip_and_know_all_scores_afterwards(function, widths):
    X = RNG.standard_normal((40, 5)).astype(np.float32)
    loss = Squares(Occasional(3, 2))
    function.learn(X, loss, n_bits=7, random_state=0)
    assert set(loss.columns) == widths
    assert function.project(X).shape == (40, 7)
    plain = Squares()
    function.learn(X, plain, n_bits=7, random_state=0)
    assert set(plain.columns) == {7}


def test_occasional_scores_are_learned():
    X = RNG.standard_normal((200, 4)).astype(np.float32)
    function = Linear(epochs=60, lr=0.1, batch_size=50).learn(X, Squares(Occasional(2, 3)), n_bits=6, random_state=0)
    np.testing.assert_allclose(function.project(X), 1, atol=0.1)


def test_rates_are_those_of_the_second_part():
    X = RNG.standard_normal((60, 4)).astype(np.float32)
    slow, quick = (
        Linear(epochs=2, lr=1e-3, batch_size=30).learn(X, Squares(Occasional(2, 2, rate)), n_bits=6, random_state=0)
        for rate in (1, 8)
    )
    np.testing.assert_array_equal(slow.project(X)[:, :2], quick.project(X)[:, :2])
    assert (slow.project(X)[:, 2:] != quick.project(X)[:, 2:]).all()


@pytest.mark.parametrize(
    ("n_labels", "of_classes", "of_labels"), [(0, 1, 1), (10, 1, 1), (40, 1, 1), (80, 2, 2), (100, 3, 2), (900, 4, 2)]
)
def test_label_scores_that_outnumber_the_bits_are_learned_in_fewer_steps(n_labels, of_classes, of_labels):
    for n_classes, period, rate in ((n_labels, of_classes, 1), (0, of_labels, of_labels)):
        if n_labels:
            loss = Objective(Plan(n_classes=n_classes), 32, None, code_loss("hinge"), n_labels)
            assert loss.occasional == (None if period == 1 else Occasional(32, period, rate))
    assert Objective(Plan(), 32, None, code_loss("hinge")).occasional is None
