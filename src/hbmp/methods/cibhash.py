"""CIBHash: contrastive learning of codes, without labels: two views of a sample agree, all other samples differ.

Read as an information bottleneck, the contrast keeps what two views share; a small divergence of the bits'
probabilities takes away what only one view holds.
Qiu, Su, Ou, Yu & Chen, "Unsupervised Hashing with Contrastive Information Bottleneck", IJCAI 2021.

    p      chances      (n, b)   σ of the scores: each bit is +1 with this probability
    z      codes        (n, b)   sgn(p − ½) forward, the gradient passes to p
    L_c    −log of exp(cos(z_i, z_i')/τ) over the sum with all other codes of both views, z_i itself left out
    L_KL   ½ [KL(p ‖ p') + KL(p' ‖ p)], summed over bits
    L      L_c + β L_KL          τ = 0.3, β = 0.001
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.checks import need_positive
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import inner
from hbmp.methods._shared.straight_through import straight_through
from hbmp.methods._shared.views import two_views


def contrast(first: torch.Tensor, second: torch.Tensor, temperature: float) -> torch.Tensor:
    """L_c of each code of both views, (2n,); the codes (n, b) of the views are in the same order."""
    codes = F.normalize(torch.cat([first, second]), dim=1)
    logits = inner(codes, codes) / temperature
    logits.fill_diagonal_(-torch.inf)
    places = torch.arange(len(codes), device=codes.device)
    return F.cross_entropy(logits, (places + len(first)) % len(codes), reduction="none")


def divergence(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """L_KL of each sample, (n,), from the logits of the bits."""
    # Both directions together are (p − p')(logit p − logit p').
    return ((torch.sigmoid(first) - torch.sigmoid(second)) * (first - second)).sum(dim=1) / 2


class _ContrastiveLoss(nn.Module):
    """The contrast of codes and the divergence of chances, over two views of a batch."""

    def __init__(self, temperature: float, divergence: float, dropped: float):
        super().__init__()
        self.temperature, self.divergence, self.dropped = temperature, divergence, dropped

    def views(self, inputs: torch.Tensor) -> torch.Tensor:
        return two_views(inputs, self.dropped)

    def forward(self, scores: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        first, second = scores.float().unbind(dim=1)
        codes = straight_through(2 * torch.sigmoid(scores.float()) - 1)
        value = contrast(codes[:, 0], codes[:, 1], self.temperature).mean()
        return value + self.divergence * divergence(first, second).mean()


class CIBHash(DeepHasher):
    """Contrastive codes of two views of each sample, learned without labels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    temperature : float, default=0.3
        τ, by which cosines are divided.
    divergence : float, default=0.001
        β, weight of the divergence of the bits' probabilities.
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
    The paper augments images before a fixed network. Features have no images behind them, so that a view of features
    leaves numbers out. `y` is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.methods import CIBHash
    >>> from hbmp.functions import Linear
    >>> X = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    >>> model = CIBHash(8, function=Linear(epochs=5, device="cpu"), random_state=0).fit(X)
    >>> model.transform(X).shape
    (100, 8)
    """

    citation = "Qiu, Su, Ou, Yu & Chen, IJCAI 2021"
    supervised = False
    smoke = {"function": Linear(epochs=2)}
    search = {"temperature": [0.1, 0.3, 0.6], "dropped": [0.5, 0.8]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        temperature: float = 0.3,
        divergence: float = 0.001,
        dropped: float = 0.5,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.temperature = temperature
        self.divergence = divergence
        self.dropped = dropped
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """The contrast of two views."""
        need_positive(temperature=self.temperature)
        return _ContrastiveLoss(self.temperature, self.divergence, self.dropped)
