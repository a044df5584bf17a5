"""A small network: hidden ReLU layers with dropout, then a linear score a bit."""

from __future__ import annotations

from hbmp.functions._shared.feedforward import FeedForward


class MLP(FeedForward):
    """ReLU layers on standardised features.

    Parameters
    ----------
    hidden : sizes of the hidden layers
    dropout : share of hidden units left out at each training step
    loss, epochs, bit_importance : as for `Linear`
    """

    smoke = {"epochs": 2, "hidden": (8,)}

    def __init__(
        self,
        *,
        hidden=(1024,),
        dropout=0.5,
        loss="hinge",
        epochs=None,
        batch_size=256,
        lr=1e-3,
        weight_decay=1e-2,
        bit_importance=False,
        optimizer="adamw",
        schedule="one-cycle",
        device="auto",
        verbose=False,
    ):
        self.hidden = hidden
        self.dropout = dropout
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
