"""CroVCA: the bits of one view are the labels of the other; the coding rate keeps all codes from becoming one.

Without labels the views are two versions of a sample, with labels two samples that share one. One binary
cross-entropy aligns them. The rate is the volume that the scores of a batch span: it is largest if bits are
uncorrelated and samples spread.
Moummad, Zaher, Goëau & Joly, "Image Hashing via Cross-View Code Alignment in the Age of Foundation Models", arXiv
2510.27584, 2025.

    z, z'  logits      (n, b)   scores of two views after batch normalisation
    L_A    ½ [BCE(z, z' > 0) + BCE(z', z > 0)], mean over bits, targets without gradient
    R      rate        (2b)⁻¹ log det(I + b/(m ε²) ẐᵀẐ), Ẑ the m logits of both views, rows of length 1
    L      L_A − λ R
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
from hbmp.methods._shared.pairs import drawn_partners, full_precision, similar_and_not
from hbmp.methods._shared.score_norm import ScoreNorm
from hbmp.methods._shared.views import two_views


def alignment(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """L_A of each sample, (n,): each view's bits as the labels of the other's logits."""

    def towards(logits: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        target = (other.detach() > 0).to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, target, reduction="none").mean(dim=1)

    return (towards(first, second) + towards(second, first)) / 2


def coding_rate(logits: torch.Tensor, distortion: float) -> torch.Tensor:
    """R of logits (m, b): nats per bit to distinguish the directions of the samples at this distortion."""
    with full_precision(logits):
        unit = F.normalize(logits.float(), dim=1)
        n_items, n_bits = unit.shape
        spread = torch.eye(n_bits, device=unit.device) + n_bits / (n_items * distortion**2) * (unit.T @ unit)
        return torch.logdet(spread) / (2 * n_bits)


class _AlignmentLoss(nn.Module):
    """Alignment of views less the coding rate, after batch normalisation."""

    def __init__(self, n_bits: int, rate: float, distortion: float, dropped: float):
        super().__init__()
        self.rate, self.distortion, self.dropped = rate, distortion, dropped
        self.normalise = ScoreNorm(n_bits)

    def views(self, inputs: torch.Tensor) -> torch.Tensor:
        return two_views(inputs, self.dropped)

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        logits = self.normalise(scores.flatten(0, 1)).unflatten(0, scores.shape[:2])
        first, second = logits.unbind(dim=1)
        if labels.shape[1]:
            second = second[self._partners(labels, rows)]
        return alignment(first, second).mean() - self.rate * coding_rate(logits.flatten(0, 1), self.distortion)

    def _partners(self, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """For each sample another of the batch that shares a label with it, or itself if there is none."""
        alike, _ = similar_and_not(labels, rows)
        columns, allowed = drawn_partners(alike, 1)
        return torch.where(allowed[:, 0], columns[:, 0], torch.arange(len(rows), device=rows.device))


class CroVCA(DeepHasher):
    """Cross-view code alignment: the code of one view is what another view must give, with or without labels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    rate : float, default=0.5
        λ, weight of the coding rate.
    distortion : float, default=0.5
        ε, at which the coding rate distinguishes samples.
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
    The publication was not available; this is an interpretation of its outline. Choices made:
    the rate is of logits of length 1 and is counted per bit, and the partner of a labelled sample is drawn from the
    batch. λ and ε are our own. Features have no images behind them, so that a view of features leaves numbers out.

    Departs from the paper: any hash function is trained, for the number of steps all methods have, instead of its
    own network for five epochs.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.methods import CroVCA
    >>> from hbmp.functions import Linear
    >>> X = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    >>> model = CroVCA(8, function=Linear(epochs=5, device="cpu"), random_state=0).fit(X)
    >>> model.transform(X).shape
    (100, 8)
    """

    citation = "Moummad, Zaher, Goëau & Joly, arXiv 2510.27584, 2025"
    supervised = False
    smoke = {"function": Linear(epochs=2)}
    search = {"rate": [0.3, 0.5, 1.0, 2.0], "dropped": [0.5, 0.8]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        rate: float = 0.5,
        distortion: float = 0.5,
        dropped: float = 0.5,
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.rate = rate
        self.distortion = distortion
        self.dropped = dropped
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """Alignment of two views, or of two samples that share a label."""
        need_positive(distortion=self.distortion)
        return _AlignmentLoss(self.n_bits, self.rate, self.distortion, self.dropped)

    def finish(self, loss: Any) -> None:
        """Fold the normalisation into the hash function."""
        self.function_.rescale(*loss.normalise.affine())
