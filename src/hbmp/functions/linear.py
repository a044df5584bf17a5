"""A hyperplane a bit: scores XW + c, trained on the target codes with a margin loss."""

from __future__ import annotations

from hbmp.functions._shared.feedforward import FeedForward


class Linear(FeedForward):
    """One linear layer on standardised features.

    Parameters
    ----------
    loss : "hinge" (the paper's), "logistic", "smooth" (logistic, with targets a little uncertain) or "squared"
    epochs : passes over the data, or None for about 3,000 steps
    bit_importance : weight each bit's loss by the size of its learned weight
    """

    def __init__(
        self,
        *,
        loss="hinge",
        epochs=None,
        batch_size=256,
        lr=3e-3,
        weight_decay=1e-2,
        bit_importance=False,
        optimizer="adamw",
        schedule="one-cycle",
        device="auto",
        verbose=False,
    ):
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.bit_importance = bit_importance
        self.optimizer = optimizer
        self.schedule = schedule
        self.device = device
        self.verbose = verbose
