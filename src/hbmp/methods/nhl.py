"""NHL: one nested code for many lengths; every prefix has a published loss, and shorter ones learn from longer ones.

A plug-in for any deep method: its loss is computed on each prefix of the scores. The objectives share bits, so that
their weights are adapted to their gradients. The similarities of a longer prefix teach the next shorter one.
He, Zhang, Li, Huang, Wu & Chen, "A Flexible Plug-and-Play Module for Generating Variable-Length", arXiv 2412.08922,
2024.

    b_k    lengths           b_1 < … < b_K = b
    u_k    prefixes          (n, b_k) the first b_k scores
    L_k    base loss         of u_k
    g_k    gradient          of L_k by the first b_1 scores, which all lengths share
    α_k    weights           ‖g_1‖ / ‖g_k‖, at most 1, smoothed over steps: no longer code outweighs the shortest there
    D_k    distillation      mean over pairs of (cos(u_k,i, u_k,j) − cos(u_k+1,i, u_k+1,j))², the longer one fixed
    L      Σ_k α_k L_k + λ Σ_k<K D_k
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.hasher import get_method
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import inner

BASES = ("csq", "dch", "dpn", "dpsh", "greedyhash", "mihash")
"""Methods whose loss is all they have: nothing is folded into the function after training."""

_SHORTEST = 8
_MEMORY = 0.9  # of the smoothed sizes of gradients


def doubled(n_bits: int) -> list[int]:
    """8, 16, 32 … below n_bits, and n_bits itself."""
    lengths = []
    length = _SHORTEST
    while length < n_bits:
        lengths.append(length)
        length *= 2
    return [*lengths, n_bits]


def distillation(short: torch.Tensor, long: torch.Tensor) -> torch.Tensor:
    """Mean squared difference of the cosines of all pairs; the longer scores have no gradient."""
    taught, teacher = (F.normalize(scores, dim=1) for scores in (short, long.detach()))
    return (inner(taught, taught) - inner(teacher, teacher)).square().mean()


class _NestedLoss(nn.Module):
    """The base loss of every prefix, weighted by gradients, and distillation from each length to the next shorter."""

    sizes: torch.Tensor

    def __init__(self, lengths: Sequence[int], losses: Sequence[nn.Module], distilled: float, adaptive: bool):
        super().__init__()
        self.lengths, self.distilled, self.adaptive = list(lengths), distilled, adaptive
        self.losses = nn.ModuleList(losses)
        self.register_buffer("sizes", torch.zeros(len(self.lengths)))

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        scores = scores.float()
        prefixes = [scores[:, :length] for length in self.lengths]
        values = [loss(prefix, labels, rows) for loss, prefix in zip(self.losses, prefixes, strict=True)]
        if self.adaptive and scores.requires_grad:
            self._measure(values, scores)
        total = sum(weight * value for weight, value in zip(self.weights(), values, strict=True))
        pairs = itertools.pairwise(prefixes)
        return total + self.distilled * sum(distillation(short, long) for short, long in pairs)

    def weights(self) -> list[float]:
        """α of each length; all 1 before the first step."""
        if not self.adaptive or not self.sizes.any():
            return [1.0] * len(self.lengths)
        return (self.sizes[0] / self.sizes.clamp(min=1e-12)).clamp(max=1.0).tolist()

    def _measure(self, values: list[torch.Tensor], scores: torch.Tensor) -> None:
        """Smooth the sizes of the gradients on the bits that all lengths share."""
        shared = [torch.autograd.grad(value, scores, retain_graph=True)[0][:, : self.lengths[0]] for value in values]
        now = torch.stack([gradient.norm() for gradient in shared])
        self.sizes = now if not self.sizes.any() else _MEMORY * self.sizes + (1 - _MEMORY) * now


class NHL(DeepHasher):
    """Nested hash layer: one code whose prefixes of 8, 16, 32 … bits are codes too.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the longest code.
    lengths : list of int or "doubled", default="doubled"
        Lengths that are trained. "doubled" is 8, 16, 32 … and n_bits.
    base : {"csq", "dch", "dpn", "dpsh", "greedyhash", "mihash"}, default="greedyhash"
        The method whose loss every prefix has, with its default settings.
    distilled : float, default=1.0
        λ, weight of the distillation from longer to shorter codes.
    adaptive : bool, default=True
        Weigh the lengths by the sizes of their gradients instead of equally.
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
    lengths_ : list of int
        The lengths that were trained. `transform(X)[:, :length]` is the code of a length.
    function_ : HashFunction
        The fitted hash function.

    Notes
    -----
    The publication was not available; this is an interpretation of its outline. Choices made:
    weights compare the sizes of gradients on the shortest prefix, and similarities are cosines of scores over the pairs
    of a batch.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import NHL
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = NHL(16, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.lengths_
    [8, 16]
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "He, Zhang, Li, Huang, Wu & Chen, arXiv 2412.08922, 2024"
    smoke = {"function": Linear(epochs=2), "lengths": [1, 2]}
    search = {"base": ["csq", "greedyhash"], "distilled": [0.0, 1.0, 10.0]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        lengths: Sequence[int] | str = "doubled",
        base: str = "greedyhash",
        distilled: float = 1.0,
        adaptive: bool = True,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.lengths = lengths
        self.base = base
        self.distilled = distilled
        self.adaptive = adaptive
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """The loss of the base method for every length."""
        if self.base not in BASES:
            raise ValueError(f"base must be one of {', '.join(map(repr, BASES))}; found {self.base!r}.")
        lengths = self._lengths()
        losses = [get_method(self.base)(length).make_loss(labels, seed) for length in lengths]
        return _NestedLoss(lengths, losses, self.distilled, self.adaptive)

    def finish(self, loss: Any) -> None:
        """Keep the lengths."""
        self.lengths_ = list(loss.lengths)

    def _lengths(self) -> list[int]:
        if isinstance(self.lengths, str):
            if self.lengths != "doubled":
                raise ValueError(f"lengths must be 'doubled' or a list of code lengths, found {self.lengths!r}.")
            return doubled(self.n_bits)
        wanted = sorted({int(length) for length in self.lengths})
        if not wanted or wanted[0] < 1:
            raise ValueError(f"lengths must be positive code lengths, found {self.lengths!r}.")
        return [length for length in wanted if length < self.n_bits] + [self.n_bits]
