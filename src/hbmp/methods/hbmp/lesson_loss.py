"""The loss of `_lessons`, batch by batch; its symbols are explained there."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._training.losses import SMOOTHING
from hbmp.methods._shared.cosines import cosine_cross_entropy
from hbmp.methods._shared.pairs import inner, similar
from hbmp.methods._shared.score_norm import ScoreNorm
from hbmp.methods.hbmp.lessons import DRAWS

_MARGIN = 0.2  # by how much the cosine with the code of the right class must be ahead


class LessonLoss(nn.Module):
    """`loss(scores, targets, items[, labels][, counts])`: of the bits of all lessons, then of label scores."""

    def __init__(self, lessons, code_losses, *, certain: bool, labelled: bool):
        super().__init__()
        self._parts = [_BookLoss(*pair, certain=certain) for pair in zip(lessons, code_losses, strict=True)]
        self.parts, self._labelled = nn.ModuleList(self._parts), labelled
        self._sizes = [lesson.codes.shape[1] for lesson in lessons]
        self._by_neighbours = labelled and any(lesson.neighbours for lesson in lessons)

    def forward(self, scores, targets, items, *rest):
        """The loss of one batch."""
        labels = rest[0] if self._labelled else None
        counts = rest[-1] if len(rest) > self._labelled else None
        drawn = [None] * len(self._parts) if counts is None else counts.split(self._sizes, dim=1)
        bits, end = targets.split(self._sizes, dim=1), targets.shape[1]
        of_bits = scores[:, :end].split(self._sizes, dim=1)
        batches = zip(self._parts, of_bits, bits, drawn, strict=True)
        neighbours = _neighbours(labels) if self._by_neighbours else None  # of the batch, the same for all books
        total = sum(part(psi, own.float(), items, neighbours, count) for part, psi, own, count in batches)
        return total if labels is None else total + label_loss(scores[:, end:], labels)

    def affine(self) -> tuple[np.ndarray, np.ndarray]:
        """(factor, shift) of the bits, what normalisation does to them once trained."""
        pairs = [part.affine() for part in self._parts]
        return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


class _BookLoss(nn.Module):
    """That of one code book."""

    book: torch.Tensor | None

    def __init__(self, lesson, code_loss, *, certain: bool):
        super().__init__()
        self.share, self._bagging, self._code_loss = lesson.contrast_share, lesson.bagging, code_loss
        self._by_neighbours = lesson.neighbours
        self.n_bits = lesson.codes.shape[1]
        self.normalise = ScoreNorm(self.n_bits) if lesson.normalise else None
        self.register_buffer("book", torch.from_numpy(lesson.codes.astype(np.float32)) if certain else None)

    def forward(self, scores, own, items, neighbours, counts):
        if self.normalise is not None:
            scores = self.normalise(scores)
        loss = scores.new_zeros(())
        if self.share < 1:
            shares = counts.float() / DRAWS if self._bagging else None
            loss = loss + (1 - self.share) * self._code_loss(scores, own, shares)
        if self.share > 0:
            near = neighbours if self._by_neighbours else None
            loss = loss + self.share * self.n_bits * contrast(scores, own, items, self.book, near)
        return loss

    def affine(self):
        if self.normalise is not None:
            return self.normalise.affine()
        return np.ones(self.n_bits, np.float32), np.zeros(self.n_bits, np.float32)


def contrast(scores, own, items, book=None, neighbours=None):
    """Cross-entropy over cosines with codes, times √b: those of the book, or of the batch, by how alike codes are and,
    where they are given, by who are neighbours.

    own : (n, b) float codes of the samples; items : (n,) their rows in the book; neighbours : (n, n), see `_neighbours`
    """
    scale = own.shape[1] ** 0.5
    if book is not None:
        return cosine_cross_entropy(scores, F.one_hot(items, len(book)), book, scale, _MARGIN).mean()
    wanted = F.softmax(inner(own, own) / scale, dim=1)
    if neighbours is not None:
        wanted = (wanted + neighbours) / 2
    return F.cross_entropy(inner(F.normalize(scores.float(), dim=1), own), wanted)


def _neighbours(labels):
    """(n, n): each row spread evenly over the samples that share a label or the class, itself among them."""
    share = labels[:, None] == labels if labels.ndim == 1 else similar(labels, labels)
    share = share.float().fill_diagonal_(1)  # a sample without labels has itself
    return share / share.sum(dim=1, keepdim=True)


def label_loss(label_scores, labels):
    """Cross-entropy of classes, or of each label of a set."""
    if labels.ndim == 1:  # softened, because certainty about the class leaves nothing to vote on
        return F.cross_entropy(label_scores, labels, label_smoothing=SMOOTHING)
    return F.binary_cross_entropy_with_logits(label_scores, labels, reduction="none").sum(dim=1).mean()
