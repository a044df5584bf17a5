"""Losses that pull scores to target codes (HBMP Eq. 12): upper bounds of the bit errors (the smooth one up to a
constant).

ψ      scores    (n, b)
u      targets   (n, b) in {-1, +1}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAMES = ("hinge", "logistic", "smooth", "squared")

SMOOTHING = 0.1  # twice the probability that "smooth" assumes for a wrong target bit


def code_loss(name: str, importance: Any = None) -> Callable[..., Any]:
    """The loss `(scores, targets, counts=None) -> scalar`: mean over samples, sum over bits as in the released code.

    `importance` has one weight per bit, (b,), or is None for equal weights. `counts` has one weight per bit of each
    sample, (n, b).
    """
    from torch.nn import functional as F

    def hinge(margin: Any) -> Any:
        return F.relu(1 - margin)

    def logistic(margin: Any) -> Any:
        return F.softplus(-margin)

    def smooth(margin: Any) -> Any:  # logistic, with each target bit wrong with probability SMOOTHING / 2
        return F.softplus(-margin) + SMOOTHING / 2 * margin

    def squared(margin: Any) -> Any:
        return (1 - margin).square()

    choices = {"hinge": hinge, "logistic": logistic, "smooth": smooth, "squared": squared}
    if name not in choices:
        raise ValueError(f"loss must be one of {', '.join(map(repr, NAMES))}; found {name!r}.")
    bound = choices[name]

    def loss(scores: Any, targets: Any, counts: Any = None) -> Any:
        per_bit = bound(scores * targets)
        if counts is not None:
            per_bit = per_bit * counts
        return (per_bit if importance is None else per_bit * importance).sum(dim=1).mean()

    return loss


def weighted(loss: Callable[..., Any]) -> Callable[..., Any]:
    """`(scores, targets, weights) -> scalar`: a loss of `code_loss` with one weight per sample, (n,)."""

    def with_weights(scores: Any, targets: Any, weights: Any) -> Any:
        return loss(scores, targets, weights[:, None])

    return with_weights
