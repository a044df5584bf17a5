"""Label votes: a function that also predicts the labels of an instance can predict the code of its item.

Each target bit parts the items in two halves, often an odd mix of classes, while a class is what features are good at.
So the hash function gives label scores in addition to its bit scores, from one training, and where it is unsure of the
item, all items vote with their codes.

    ℓ      label scores     (n, labels)
    Y      label rows       (items, labels)    0/1: the labels of an item
    c      counts           (items,)           number of instances of an item, or their weight
    P      probabilities    (n, items)         softmax(ℓ Yᵀ + γ log c)
    U      codes            (items, bits)
    P U    expected codes   (n, bits)          in [-1, 1]

Classes are separated by cross-entropy, so that the softmax of ℓ favours common classes. γ = -1/2 takes back half of
that, and rare classes keep their own codes; where classes are balanced it changes nothing. The labels of a label
set are learned each on its own; the product of their odds is ℓ Yᵀ, and γ = 1/2 favours label sets that occur often.

Past the paper (docs/beyond-the-paper.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hbmp._core.labels import as_classes, as_label_sets, has_label_sets

CERTAIN = 0.999  # the largest expected bit that is taken at its word
_PRIOR_OF_SETS, _PRIOR_OF_CLASSES = 0.5, -0.5  # γ
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

    def _expected(self, label_scores: np.ndarray) -> np.ndarray:
        logits = label_scores @ self.label_rows.T + self.prior
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights @ self.codes.astype(np.float32) / weights.sum(axis=1, keepdims=True)


def label_targets(y: Any) -> np.ndarray:
    """Targets of the label scores: the number of the class, (n,), or rows of 0/1 labels, (n, labels) float32."""
    if has_label_sets(y):
        return as_label_sets(y)
    return np.unique(as_classes(y), return_inverse=True)[1].reshape(-1)


def make_votes(labels: np.ndarray, affinity: Any, codes: np.ndarray, weights: np.ndarray | None = None) -> LabelVotes:
    """The votes of the items of a fitted affinity; labels, weights: of its instances, the first
    from `label_targets`."""
    first = np.unique(affinity.item_of_, return_index=True)[1]  # an instance of every item
    if labels.ndim == 1:
        own, n_classes = labels[first], labels.max() + 1
        rows, counts, power = (
            np.eye(n_classes, dtype=np.float32)[own],
            np.bincount(labels, weights)[own],
            _PRIOR_OF_CLASSES,
        )
    else:
        rows, counts, power = labels[first], affinity.counts_, _PRIOR_OF_SETS
    return LabelVotes(rows, (power * np.log(counts)).astype(np.float32), codes)


def blend(bit_scores: np.ndarray, expected_codes: np.ndarray, label_share: float) -> np.ndarray:
    """Log-odds of the bits: a logistic function's scores are such, and those of an expected bit e in [-1, 1] are
    log (1 + e) / (1 - e), which get the weight `label_share`."""
    if label_share == 0:
        return bit_scores
    votes = 2 * np.arctanh(np.clip(expected_codes, -CERTAIN, CERTAIN))
    return (1 - label_share) * bit_scores + label_share * votes
