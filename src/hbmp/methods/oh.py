"""Overview hashing: each sample is seen through all others, weighted by the Hamming distance of its code to theirs.

The function has two heads. The bits of a sample choose how much of every other sample's continuous vector enters its
overview, and two views of one sample must have like overviews. So the bits learn the neighbourhood, without labels.
Yu et al., "Hashing One With All", ACM Multimedia 2023, doi 10.1145/3581783.3611977.

    h_i    bits            (n, b)   sgn(p_i − ½), p_i = σ of the scores; the gradient passes to p_i
    c_i    continuous      (n, m)   the other scores, length 1
    a_ij   attention       (n, k)   softmax over j ≠ i of (1 − d_H(h_i, h_j)/b)/τ, j among remembered samples
    p_i    overview        (n, m)   Σ_j a_ij c_j at length 1, plus ω c_i, at length 1 again
    L      −log softmax of p_i · p_i'/τ among the remembered overviews, and again among the views p_j' of the batch
           ω = 0.5, τ = 0.2; p' is the overview of the other view, without gradient
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.checks import need_positive
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.memory import Memory
from hbmp.methods._shared.pairs import at_least, distinct, inner
from hbmp.methods._shared.straight_through import signs_of, straight_through
from hbmp.methods._shared.views import two_views

_MASKED = -1e4
"""Logit of a sample paired with itself: finite, so that a row without any other sample has no NaN."""


def overview(
    bits: torch.Tensor,
    continuous: torch.Tensor,
    memory: tuple[torch.Tensor, torch.Tensor],
    others: torch.Tensor,
    temperature: float,
    own: float,
) -> torch.Tensor:
    """p_i of each sample, (n, m); memory is (bits, continuous) of k samples, others marks j ≠ i, (n, k)."""
    remembered_bits, remembered = memory
    # 1 − d_H/b = (1 + h · h'/b)/2, and a softmax ignores the constant.
    logits = inner(bits, remembered_bits) / (2 * bits.shape[1] * temperature)
    attention = torch.softmax(logits.masked_fill(~others, _MASKED), dim=1)
    return F.normalize(F.normalize(inner(attention, remembered.T), dim=1) + own * continuous, dim=1)


def contrast(
    first: torch.Tensor, second: torch.Tensor, remembered: torch.Tensor, others: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Both terms of L for each sample, (n,)."""
    agreement = (first * second).sum(dim=1, keepdim=True)
    negatives = (inner(first, remembered) / temperature).masked_fill(~others, _MASKED)
    with_memory = torch.cat([agreement / temperature, negatives], dim=1)
    with_batch = inner(first, second) / temperature
    places = torch.arange(len(first), device=first.device)
    return F.cross_entropy(with_memory, 0 * places, reduction="none") + F.cross_entropy(
        with_batch, places, reduction="none"
    )


class _OverviewLoss(nn.Module):
    """The contrast of overviews; stores bits, continuous vectors and overviews of all training samples."""

    def __init__(self, memory: Memory, n_bits: int, n_continuous: int, temperature: float, own: float, dropped: float):
        super().__init__()
        self.memory, self.sizes = memory, [n_bits, n_continuous]
        self.temperature, self.own, self.dropped = temperature, own, dropped

    def views(self, inputs: torch.Tensor) -> torch.Tensor:
        return two_views(inputs, self.dropped)

    def forward(self, scores: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        stored, _, stored_rows = self.memory.draw(rows)
        *remembered, overviews = stored.split([*self.sizes, self.sizes[1]], dim=1)
        others = distinct(rows, stored_rows)
        bits, continuous = scores.float().split(self.sizes, dim=2)
        bits, continuous = straight_through(torch.tanh(bits / 2)), F.normalize(continuous, dim=2)
        first, second = (
            overview(bits[:, view], continuous[:, view], remembered, others, self.temperature, self.own)
            for view in (0, 1)
        )
        second = second.detach()
        self.memory.keep(torch.cat([signs_of(bits[:, 1]), continuous[:, 1].detach(), second], dim=1), rows)
        return contrast(first, second, overviews, others, self.temperature).mean()


class OH(DeepHasher):
    """Overview hashing: contrastive learning of each sample's weighted mean of all others, without labels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    n_continuous : int, default=128
        Length of the continuous vectors. They are used in training alone.
    temperature : float, default=0.2
        τ of the attention and of the contrast.
    own : float, default=0.5
        ω, weight of a sample's own continuous vector in its overview.
    memory : int, default=1000
        Training samples that enter the overviews of one step, drawn from all samples seen so far.
    dropped : float, default=0.5
        Share of the numbers of a feature vector that a view leaves out. Images are moved and mirrored instead.
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
    function_ : HashFunction
        The fitted hash function.

    Notes
    -----
    The formulas follow the abstract of the publication and the program that its authors released; the text of the
    publication was not available. `y` is not used.

    Departs from the released program: there is no second encoder with averaged weights, and the latest vectors of all
    training samples, a sample's own left out, replace a queue of the latest 4,096. Continuous vectors have 128 numbers
    instead of 1,024. Features have no images behind them, so that a view of features leaves numbers out.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.methods import OH
    >>> from hbmp.functions import Linear
    >>> X = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    >>> model = OH(8, function=Linear(epochs=5, device="cpu"), random_state=0).fit(X)
    >>> model.transform(X).shape
    (100, 8)
    """

    citation = "Yu et al., ACM Multimedia 2023"
    supervised = False
    smoke = {"function": Linear(epochs=2), "n_continuous": 8}
    search = {"temperature": [0.1, 0.2, 0.5], "dropped": [0.5, 0.8]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_continuous: int = 128,
        temperature: float = 0.2,
        own: float = 0.5,
        memory: int = 1000,
        dropped: float = 0.5,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.n_continuous = n_continuous
        self.temperature = temperature
        self.own = own
        self.memory = memory
        self.dropped = dropped
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def n_scores(self) -> int:
        """Bits and continuous numbers."""
        return self.n_bits + self.n_continuous

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """The contrast of two views' overviews."""
        need_positive(temperature=self.temperature)
        at_least(1, memory=self.memory, n_continuous=self.n_continuous)
        memory = Memory(labels[:, :0], self.n_bits + 2 * self.n_continuous, self.memory)
        return _OverviewLoss(memory, self.n_bits, self.n_continuous, self.temperature, self.own, self.dropped)

    def loss_inputs(self, X: Any, labels: np.ndarray) -> tuple[np.ndarray, ...]:
        """Positions of the samples."""
        return (np.arange(len(X)),)

    def finish(self, loss: Any) -> None:
        """Remove the continuous scores: a code has bits alone."""
        self.function_.drop(range(self.n_bits, self.n_scores))
