"""Labels vote on bits: a function that also tells the labels of an instance knows which code to expect.

Each target bit parts the items in two halves, often an odd mix of classes, while a class is what features are good at.
So the hash function gives label scores beside its bit scores, from one training, and where it is unsure of the item,
all items vote with their codes.

    ℓ      label scores     (n, labels)
    Y      label rows       (items, labels)    0/1: which labels an item carries
    c      counts           (items,)           how many instances carry an item
    P      probabilities    (n, items)         softmax(ℓ Yᵀ + γ log c)
    U      codes            (items, bits)
    P U    expected codes   (n, bits)          in [-1, 1]

Classes are told apart by cross-entropy, so that P is the softmax of ℓ and γ is 0. The labels of a label set are
learned each on its own; the product of their odds is ℓ Yᵀ, and how often a set occurs speaks for those that go
together: γ = 1/2 was better than 0 on MS-COCO, and level with it on VOC 2007.

Past the paper (docs/beyond-the-paper.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hbmp._core.labels import as_classes, as_label_sets, has_label_sets

_PRIOR = 0.5  # γ of label sets
_BLOCK = 2**24  # probabilities held at a time


@dataclass
class LabelVotes:
    """What turns label scores into expected codes."""

    label_rows: np.ndarray  # (items, labels) float32
    prior: np.ndarray  # (items,) γ log c
    codes: np.ndarray  # (items, bits) int8

    def expected_codes(self, label_scores: np.ndarray) -> np.ndarray:
        """P U, float32, a block of rows at a time."""
        step = max(1, _BLOCK // len(self.codes))
        blocks = [self._expected(label_scores[start : start + step]) for start in range(0, len(label_scores), step)]
        return np.concatenate(blocks)

    def _expected(self, label_scores):
        logits = label_scores @ self.label_rows.T + self.prior
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights @ self.codes.astype(np.float32) / weights.sum(axis=1, keepdims=True)


def label_targets(y) -> np.ndarray:
    """What the label scores learn: the number of the class, (n,), or rows of 0/1 labels, (n, labels) float32."""
    if has_label_sets(y):
        return as_label_sets(y)
    return np.unique(as_classes(y), return_inverse=True)[1].reshape(-1)


def make_votes(labels: np.ndarray, affinity, codes: np.ndarray) -> LabelVotes:
    """The votes of the items of a fitted affinity; labels: of its instances, from `label_targets`."""
    first = np.unique(affinity.item_of_, return_index=True)[1]  # an instance of every item
    if labels.ndim == 1:
        rows, prior = np.eye(labels.max() + 1, dtype=np.float32)[labels[first]], np.zeros(len(first), np.float32)
    else:
        rows, prior = labels[first], (_PRIOR * np.log(affinity.counts_)).astype(np.float32)
    return LabelVotes(rows, prior, codes)


def split_scores(scores: np.ndarray, votes: list[LabelVotes]) -> list[tuple[np.ndarray, np.ndarray]]:
    """(bit scores, expected codes) by each code book, from scores that hold the bits of all, then those of labels.

    The books are of the same items, so that one set of probabilities serves them all.
    """
    ends = np.cumsum([0, *(of_book.codes.shape[1] for of_book in votes)])
    all_codes = np.concatenate([of_book.codes for of_book in votes], axis=1)
    expected = replace(votes[0], codes=all_codes).expected_codes(scores[:, ends[-1] :])
    return [(scores[:, start:end], expected[:, start:end]) for start, end in pairwise(ends)]
