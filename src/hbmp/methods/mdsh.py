"""Minimal-distance-separated centres: class codes as far apart as possible, no two nearer than a bound promises.

Random or Hadamard centres may be arbitrarily close where there are more classes than bits. Here the sum of distances
is maximised under a least distance, which the Gilbert–Varshamov bound sets as large as centres surely exist.
Wang, Pan, Liu, Lai, Yin & Liu, "Deep Hashing with Minimal-Distance-Separated Hash Centers", CVPR 2023.

    h_i    centres       (c, b)   max Σ_ij ‖h_i − h_j‖² with every distance ≥ d
    d      distance               largest d with c · V(b, d − 1) ≤ 2ᵇ; V counts the words of a Hamming ball
    u      scores        (n, b)
    L      L_C + β L_P + λ L_Q    of `_shared/centre_softmax.py`
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.centre_softmax import CentreSoftmaxLoss
from hbmp.methods._shared.centres import bernoulli_centres, nearest
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.memory import memory_size
from hbmp.methods._shared.separated import gilbert_varshamov, separated_centres


def sum_of_products(products: np.ndarray, i: int) -> np.ndarray:
    """Σ_{j≠i} h_i · h_j of each candidate, (k,): the less, the larger the sum of distances."""
    return products.sum(axis=1) - products[:, i]


class MDSH(DeepHasher):
    """Centres with a guaranteed least distance, learned by a softmax over cosines to all centres.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    pair_weight : float, default=1.0
        β, weight of pairs of one class.
    quantisation : float, default=1e-4
        λ, weight of the distance of scores from ±1.
    memory : int or "auto", default="auto"
        Training samples to which a batch is compared in one step. "auto" is 1,000, and 0 (the batch itself) for a
        network on images.
    function : str or HashFunction, default="auto"
        Hash function trained by gradients, by name or as an object. "auto" is a kernel, an MLP from 20,000 samples,
        or a network for images.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where gradients are computed.
    random_state : int, Generator, RandomState or None, default=None
        Seed. The same seed gives the same model.
    verbose : bool, default=False
        Show progress on stderr.

    Attributes
    ----------
    centres_ : ndarray of shape (n_classes, n_bits)
        Code of each class in sorted order.
    least_distance_ : int
        The Hamming distance of the two nearest centres.
    function_ : HashFunction
        The fitted hash function.

    Notes
    -----
    Departs from the paper: flips of single bits under a growing penalty replace its ℓ_p-box ADMM. Every step is a
    binary code, and the distance is lowered only if several starts miss it.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import MDSH
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = MDSH(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.least_distance_
    5
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Wang, Pan, Liu, Lai, Yin & Liu, CVPR 2023"
    single_label = True
    smoke = {"function": Linear(epochs=2)}
    search = {"pair_weight": [0.0, 1.0, 3.0], "quantisation": [1e-4, 0.1]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        pair_weight: float = 1.0,
        quantisation: float = 1e-4,
        memory: int | str = "auto",
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.pair_weight = pair_weight
        self.quantisation = quantisation
        self.memory = memory
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """The loss towards centres that are searched from the seed."""
        rng = np.random.default_rng(seed)
        start = bernoulli_centres(labels.shape[1], self.n_bits, rng)
        distance = gilbert_varshamov(labels.shape[1], self.n_bits)
        centres = separated_centres(start, sum_of_products, distance, rng)
        size = memory_size(self.memory, getattr(self, "function_", None))
        return CentreSoftmaxLoss(centres, labels, self.pair_weight, self.quantisation, size)

    def finish(self, loss: Any) -> None:
        """Keep the centres and the distance they keep."""
        self.centres_ = loss.centres.cpu().numpy().astype(np.int8)
        self.least_distance_ = nearest(self.centres_)
