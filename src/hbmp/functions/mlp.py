"""A small network: hidden ReLU layers with dropout, then one linear score per bit."""

from __future__ import annotations

from hbmp.functions._shared.feedforward import FeedForward


class MLP(FeedForward):
    """Multi-layer perceptron on standardised features.

    Parameters
    ----------
    hidden : tuple of int, default=(1024,)
        Sizes of the hidden layers.
    dropout : float, default=0.5
        Fraction of hidden units dropped in each training step.
    loss : {"hinge", "logistic", "smooth", "squared"}, default="hinge"
        Loss of each bit. "hinge" is the loss of the paper; "smooth" is logistic with slightly uncertain targets.
    epochs : int or None, default=None
        Passes over the data. None trains for about 3,000 steps.
    batch_size : int, default=256
        Samples per step.
    lr : float, default=1e-3
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
    layers_ : list of (ndarray, ndarray)
        Weights and bias of each layer, with the standardisation folded into the first.
    loss_ : list of float
        Mean loss of each epoch.

    Examples
    --------
    Two bits that no hyperplane separates:

    >>> import numpy as np
    >>> from hbmp.functions import MLP
    >>> X = np.random.default_rng(0).standard_normal((300, 3)).astype(np.float32)
    >>> targets = np.where(X[:, :2] * X[:, 1:] > 0, 1, -1).astype(np.int8)
    >>> function = MLP(hidden=(32,), dropout=0.0, epochs=40, lr=1e-2, device="cpu").fit(X, targets, random_state=0)
    >>> function.bit_error(X, targets) < 0.1
    True
    """

    smoke = {"epochs": 2, "hidden": (8,)}

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (1024,),
        dropout: float = 0.5,
        loss: str = "hinge",
        epochs: int | None = None,
        batch_size: int = 256,
        lr: float = 1e-3,
        weight_decay: float = 1e-2,
        bit_importance: bool = False,
        optimizer: str = "adamw",
        schedule: str = "one-cycle",
        device: str = "auto",
        verbose: bool = False,
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
