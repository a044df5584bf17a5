"""Straight-through sign: the sign forward, the identity backward, so that losses of binary codes have gradients.

u      scores    (n, b)   of any size
b      signs     (n, b)   in {-1, +1}; sign(0) is +1, as everywhere in this package
"""

from __future__ import annotations

from typing import Any

import torch


def signs_of(scores: torch.Tensor) -> torch.Tensor:
    """Signs in {-1, +1}, without gradients."""
    return torch.where(scores.detach() >= 0, 1.0, -1.0).to(scores.dtype)


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor) -> torch.Tensor:
        return signs_of(scores)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def straight_through(scores: torch.Tensor) -> torch.Tensor:
    """Signs whose gradient passes to the scores unchanged."""
    return _StraightThrough.apply(scores)
