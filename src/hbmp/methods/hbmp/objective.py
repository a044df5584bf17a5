"""Stage three's loss: what a hash function minimises to give every instance the code of its item (HBMP Eq. 11, 12).

    ψ      scores           (n, b)
    u      codes            (n, b)       of the instances' items
    U      code book        (items, b)
    λ      contrast_share
    k      counts           (n, b)       how often each bit draws each instance, twice on average, over two
    w      weights          (n,)         of the instances, of mean 1; every term of an instance is multiplied by its own
    ℓ      label scores     (n, labels)

    L  =  (1 - λ) Σ_t k_t loss(ψ_t u_t)  +  λ b H(p, softmax(U ψ / ‖ψ‖))  +  loss of ℓ

The first part makes every bit right, whatever the others do. The second makes the right code the nearest: cross-entropy
over the cosines of the scores with codes, times √b. Where items are classes, p is certain of the class, U holds the
codes of all, and the cosine with the right one counts 0.2 less; where items resemble each other U holds the codes of
the batch and p is softmax(U u / √b). With `neighbours`, half of p is even over those of the batch that share a label.
The third part teaches label scores beside the bits.

Bagging draws a sample of its own for each bit, twice as large as the data and with repeats, so that bits of one item
err at different instances.

Past the paper (docs/beyond-the-paper.md); λ = 0, no bagging and no label scores is HBMP Eq. 12.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._training.losses import SMOOTHING
from hbmp.methods._shared.cosines import cosine_cross_entropy
from hbmp.methods._shared.pairs import inner, similar
from hbmp.methods._shared.score_norm import ScoreNorm
from hbmp.methods.hbmp.plan import Plan

DRAWS = 2  # how often a bit draws an instance on average
_MARGIN = 0.2  # by how much the cosine with the code of the right class must be ahead
_BLOCK = 2**15  # instances drawn at a time


class Objective(nn.Module):
    """The loss of a batch, called as `objective(scores, codes, items, labels, counts[, weights])`; scores: bits, then
    labels.

    plan : its shares and switches
    codes : (items, b) the code book, where items are classes, or None where they resemble each other
    bit_loss : the hash function's own loss of scores and codes
    """

    book: torch.Tensor | None

    def __init__(self, plan: Plan, n_bits: int, codes: np.ndarray | None, bit_loss):
        super().__init__()
        self.plan, self.n_bits, self.bit_loss = plan, n_bits, bit_loss
        self.norm = ScoreNorm(n_bits) if plan.normalise and codes is not None else None
        self.register_buffer("book", None if codes is None else torch.from_numpy(codes.astype(np.float32)))

    def forward(self, scores, codes, items, labels, counts, weights=None):
        """codes: (n, b) · items: (n,) rows of the book · labels: (n,) classes, (n, labels) or (n, 0) · counts: (n, b)
        or (n, 0) · weights: (n,)."""
        bits, label_scores = scores[:, : self.n_bits], scores[:, self.n_bits :]
        own, share = codes.float(), self.plan.contrast_share
        if self.norm is not None:
            bits = self.norm(bits)
        loss = scores.new_zeros(())
        if share < 1:
            loss = loss + (1 - share) * self.bit_loss(bits, own, self._emphasis(counts, weights))
        if share > 0:
            near = neighbours(labels) if self._sees_neighbours(label_scores) else None
            loss = loss + share * self.n_bits * contrast(bits, own, items, self.book, near, weights)
        return loss + label_loss(label_scores, labels, weights) if label_scores.shape[1] else loss

    def _emphasis(self, counts, weights):
        """Weight of each bit of each instance, (n, b) or (n, 1); None where all count alike."""
        drawn = counts.float() / DRAWS if self.plan.bagging else None
        if weights is None:
            return drawn
        return weights[:, None] if drawn is None else drawn * weights[:, None]

    def _sees_neighbours(self, label_scores) -> bool:
        return self.plan.neighbours and self.book is None and label_scores.shape[1] > 0

    def affine(self, n_scores: int) -> tuple[np.ndarray, np.ndarray] | None:
        """(factor, shift) of all scores that normalisation amounts to once trained; label scores stay as they are."""
        if self.norm is None:
            return None
        factor, shift = self.norm.affine()
        more = n_scores - self.n_bits
        return np.concatenate([factor, np.ones(more)]), np.concatenate([shift, np.zeros(more)])


def contrast(scores, own, items, book=None, near=None, weights=None):
    """Cross-entropy over cosines with codes, times √b: those of the book, or of the batch, by how alike codes are and,
    where they are given, by who are neighbours.

    own : (n, b) codes of the instances · items : (n,) their rows in the book · near : (n, n), from `neighbours`
    """
    scale = own.shape[1] ** 0.5
    if book is not None:
        return _mean(cosine_cross_entropy(scores, F.one_hot(items, len(book)), book, scale, _MARGIN), weights)
    wanted = F.softmax(inner(own, own) / scale, dim=1)
    if near is not None:
        wanted = (wanted + near) / 2
    logits = inner(F.normalize(scores.float(), dim=1), own)
    if weights is None:
        return F.cross_entropy(logits, wanted)
    return _mean(F.cross_entropy(logits, wanted, reduction="none"), weights)


def neighbours(labels):
    """(n, n): each row spread evenly over the instances that share a label or the class, itself among them."""
    share = labels[:, None] == labels if labels.ndim == 1 else similar(labels, labels)
    share = share.float().fill_diagonal_(1)  # an instance without labels has itself
    return share / share.sum(dim=1, keepdim=True)


def label_loss(label_scores, labels, weights=None):
    """Cross-entropy of classes, or of each label of a set."""
    if labels.ndim == 1:  # softened, because certainty about the class leaves nothing to vote on
        if weights is None:
            return F.cross_entropy(label_scores, labels, label_smoothing=SMOOTHING)
        losses = F.cross_entropy(label_scores, labels, label_smoothing=SMOOTHING, reduction="none")
        return _mean(losses, weights)
    return _mean(F.binary_cross_entropy_with_logits(label_scores, labels, reduction="none").sum(dim=1), weights)


def _mean(losses, weights):
    """Mean of the losses of the instances, (n,), which weights of mean 1 emphasise."""
    return losses.mean() if weights is None else (losses * weights).mean()


def draw_counts(n: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """How often each bit draws each instance, (n, n_bits) uint8."""
    counts = np.empty((n, n_bits), dtype=np.uint8)
    for start in range(0, n, _BLOCK):
        counts[start : start + _BLOCK] = rng.poisson(DRAWS, counts[start : start + _BLOCK].shape)
    return counts
