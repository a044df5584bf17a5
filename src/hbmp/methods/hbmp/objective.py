"""Stage three's loss: what a hash function minimises to give every instance the code of its item (HBMP Eq. 11, 12).

    ψ      scores           (n, b)
    u      codes            (n, b)       of the instances' items
    U      code book        (items, b)
    λ      contrast_share
    w      weights          (n,)         of the instances, of mean 1; every term of an instance is multiplied by its own
    ℓ      label scores     (n, labels)

    L  =  (1 - λ) Σ_t loss(ψ_t u_t)  +  λ b H(p, softmax(U ψ / ‖ψ‖))  +  loss of ℓ

The first part makes every bit right, whatever the others do. The second makes the right code the nearest: cross-entropy
over the cosines of the scores with codes, times √b. Where items are classes, p is certain of the class, U holds the
codes of all, and the cosine with the right one counts 0.2 less; where items resemble each other U holds the codes of
the batch and p is softmax(U u / √b). The third part trains the label scores.

Past the paper (docs/beyond-the-paper.md); λ = 0 and no label scores is HBMP Eq. 12.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._training.occasional import Occasional
from hbmp.methods._shared.pairs import inner
from hbmp.methods._shared.score_norm import ScoreNorm
from hbmp.methods.hbmp.plan import Plan

_SMOOTHING, _OF_FEW, _FEW_CLASSES = 0.1, 0.2, 10  # of classes: certainty about the class leaves nothing to vote on
_MARGIN = 0.2  # by how much the cosine with the code of the right class must be ahead


class Objective(nn.Module):
    """The loss of a batch, called as `objective(scores, codes, items, labels[, weights])`; scores: bits, then labels.

    plan : its shares and switches
    codes : (items, b) the code book, where items are classes, or None where they resemble each other
    bit_loss : the hash function's own loss of scores and codes
    n_labels : label scores; many are learned in every few steps only, where the function can do without them
    """

    book: torch.Tensor | None

    def __init__(self, plan: Plan, n_bits: int, codes: np.ndarray | None, bit_loss: Any, n_labels: int = 0) -> None:
        super().__init__()
        self.plan, self.n_bits, self.bit_loss = plan, n_bits, bit_loss
        self.norm = ScoreNorm(n_bits) if plan.normalise and codes is not None else None
        self.smoothing = _OF_FEW if 0 < plan.n_classes <= _FEW_CLASSES else _SMOOTHING
        self.occasional = label_steps(n_labels, n_bits, classes=plan.n_classes > 0)
        self.register_buffer("book", None if codes is None else torch.from_numpy(codes.astype(np.float32)))

    def forward(
        self,
        scores: torch.Tensor,
        codes: torch.Tensor,
        items: torch.Tensor,
        labels: torch.Tensor,
        weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """codes: (n, b) · items: (n,) rows of the book · labels: (n,), (n, labels) or (n, 0) · weights: (n,)."""
        bits, label_scores = scores[:, : self.n_bits], scores[:, self.n_bits :]
        own, share = codes.float(), self.plan.contrast_share
        if self.norm is not None:
            bits = self.norm(bits)
        loss = scores.new_zeros(())
        if share < 1:
            loss = loss + (1 - share) * self.bit_loss(bits, own, None if weights is None else weights[:, None])
        if share > 0:
            loss = loss + share * self.n_bits * contrast(bits, own, items, self.book, weights)
        if not label_scores.shape[1]:
            return loss
        return loss + label_loss(label_scores, labels, weights, smoothing=self.smoothing)

    def affine(self, n_scores: int) -> tuple[np.ndarray, np.ndarray] | None:
        """(factor, shift) of all scores that normalisation amounts to once trained; label scores stay as they are."""
        if self.norm is None:
            return None
        factor, shift = self.norm.affine()
        more = n_scores - self.n_bits
        return np.concatenate([factor, np.ones(more)]), np.concatenate([shift, np.zeros(more)])


def label_steps(n_labels: int, n_bits: int, *, classes: bool) -> Occasional | None:
    """How seldom label scores are learned, where they outnumber the bits and would take most of the training.

    Scores of classes lose nothing by fewer steps. Those of labels do, and catch up by longer ones.
    """
    period = min(round(n_labels / n_bits), 4 if classes else 2)
    return Occasional(n_bits, period, rate=1 if classes else period) if period > 1 else None


def contrast(
    scores: torch.Tensor,
    own: torch.Tensor,
    items: torch.Tensor,
    book: torch.Tensor | None = None,
    weights: torch.Tensor | None = None,
) -> torch.Tensor:
    """Cross-entropy over cosines with codes, times √b: those of the book, or of the batch, by how alike codes are.

    own : (n, b) codes of the instances · items : (n,) their rows in the book
    """
    scale = own.shape[1] ** 0.5
    if book is not None:
        logits = inner(F.normalize(scores.float(), dim=1), book)  # √b times the cosines: a code has length √b
        ahead = logits.new_full((len(logits), 1), -scale * _MARGIN)
        losses = F.cross_entropy(logits.scatter_add(1, items[:, None], ahead), items, reduction="none")
        return _mean(losses, weights)
    wanted = F.softmax(inner(own, own) / scale, dim=1)
    logits = inner(F.normalize(scores.float(), dim=1), own)
    if weights is None:
        return F.cross_entropy(logits, wanted)
    return _mean(F.cross_entropy(logits, wanted, reduction="none"), weights)


def label_loss(
    label_scores: torch.Tensor,
    labels: torch.Tensor,
    weights: torch.Tensor | None = None,
    *,
    smoothing: float = _SMOOTHING,
) -> torch.Tensor:
    """Cross-entropy of classes, or of each label of a set."""
    if labels.ndim == 1:
        if weights is None:
            return F.cross_entropy(label_scores, labels, label_smoothing=smoothing)
        losses = F.cross_entropy(label_scores, labels, label_smoothing=smoothing, reduction="none")
        return _mean(losses, weights)
    return _mean(F.binary_cross_entropy_with_logits(label_scores, labels, reduction="none").sum(dim=1), weights)


def _mean(losses: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """Mean of the losses of the instances, (n,), which weights of mean 1 emphasise."""
    return losses.mean() if weights is None else (losses * weights).mean()
