"""Losses that pull scores to target codes (Eq. 12): upper bounds of the number of wrong bits (the smooth one up to a
constant).

ψ      scores    (n, b)
u      targets   (n, b) in {-1, +1}
"""

from __future__ import annotations

NAMES = ("hinge", "logistic", "smooth", "squared")

SMOOTHING = 0.1  # of a target that is taken as not certain, in "smooth"


def code_loss(name: str, importance=None):
    """The loss `(scores, targets, counts=None) -> scalar`: mean over samples, sum over bits as in the released code.

    importance: (b,) weights of the bits, or None for equal ones; counts: (n, b) how much each bit of a sample counts.
    """
    from torch.nn import functional as F

    def hinge(margin):
        return F.relu(1 - margin)

    def logistic(margin):
        return F.softplus(-margin)

    def smooth(margin):  # logistic, as if each target bit were wrong with probability SMOOTHING / 2
        return F.softplus(-margin) + SMOOTHING / 2 * margin

    def squared(margin):
        return (1 - margin).square()

    choices = {"hinge": hinge, "logistic": logistic, "smooth": smooth, "squared": squared}
    if name not in choices:
        raise ValueError(f"loss must be one of {', '.join(map(repr, NAMES))}; found {name!r}.")
    bound = choices[name]

    def loss(scores, targets, counts=None):
        per_bit = bound(scores * targets)
        if counts is not None:
            per_bit = per_bit * counts
        return (per_bit if importance is None else per_bit * importance).sum(dim=1).mean()

    return loss
