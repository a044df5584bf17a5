"""A hyperplane per bit: scores XW + c, trained on the target codes with a margin loss."""

from __future__ import annotations

from hbmp.functions._shared.feedforward import FeedForward


class Linear(FeedForward):
    """Linear layer on standardised features, one hyperplane per bit.

    Parameters
    ----------
    loss : {"hinge", "logistic", "smooth", "squared"}, default="hinge"
        Loss of each bit. "hinge" is the loss of the paper; "smooth" is logistic with slightly uncertain targets.
    epochs : int or None, default=None
        Passes over the data. None trains for about 3,000 steps.
    batch_size : int, default=256
        Samples per step.
    lr : float, default=3e-3
        Highest learning rate.
    weight_decay : float, default=1e-2
        Weight decay of the optimiser.
    bit_importance : bool, default=False
        Weight each bit's loss by the size of its learned weight.
    optimizer : {"adamw", "sgd"}, default="adamw"
        The optimiser. "sgd" has momentum 0.9.
    schedule : {"one-cycle", "step", "constant"}, default="one-cycle"
        Learning rate over time. "one-cycle" rises for a tenth of training and then falls to 0 by a cosine.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to train. `project` runs on the CPU without torch.
    verbose : bool, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    layers_ : list of (ndarray of shape (d, n_bits), ndarray of shape (n_bits,))
        Weights and bias, with the standardisation folded in.
    loss_ : list of float
        Mean loss of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.functions import Linear
    >>> X = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
    >>> targets = np.where(X[:, :4] > 0, 1, -1).astype(np.int8)
    >>> function = Linear(epochs=50, lr=1e-2, device="cpu").fit(X, targets, random_state=0)
    >>> function.project(X).shape
    (200, 4)
    >>> function.bit_error(X, targets) < 0.1
    True
    """

    def __init__(
        self,
        *,
        loss: str = "hinge",
        epochs: int | None = None,
        batch_size: int = 256,
        lr: float = 3e-3,
        weight_decay: float = 1e-2,
        bit_importance: bool = False,
        optimizer: str = "adamw",
        schedule: str = "one-cycle",
        device: str = "auto",
        verbose: bool = False,
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
