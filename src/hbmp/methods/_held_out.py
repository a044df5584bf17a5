"""Two settings of HBMP that depend on the data, chosen on training instances that the function has not seen.

    λ      label_share    how much of a score comes from the labels' votes, the rest from the bit itself
    s      weight_share   how far bit weights go from equal ones (0) to those of the pursuit (1)

A part of the training instances is held out and queries twice: itself, as new items in a database would be, and the
instances that were learned from, which a database often holds too. The best λ has the highest mean of both mAPs; bits
are weighted only where that lifts both.
"""

from __future__ import annotations

import numpy as np

from hbmp.metrics import mean_average_precision

LABEL_SHARES = (0.0, 0.25, 0.5)
WEIGHT_SHARES = (0.0, 0.5, 1.0)
DEFAULTS = (0.25, 0.5)  # (λ, s) where there are too few instances to choose on, or a training is too dear to repeat
FEWEST = 200  # instances
_HELD, _MOST, _QUERIES = 0.2, 4000, 500  # share held out, instances in a database, and how many query


def parts(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(instances to learn from, instances held out)."""
    order = rng.permutation(n)
    held = min(round(_HELD * n), _MOST)
    return order[held:], order[:held]


def blend(bit_scores: np.ndarray, expected_codes: np.ndarray, label_share: float) -> np.ndarray:
    """Scores in [-1, 1]: tanh(ψ/2), the expected bit of a logistic function, and the expected code of the votes."""
    return (1 - label_share) * np.tanh(bit_scores / 2) + label_share * expected_codes


def shrink(weights: np.ndarray, share: float) -> np.ndarray:
    """Weights between equal ones and these, of the same mean."""
    return share * weights + (1 - share) * weights.mean()


class Trial:
    """Scores of held-out and of learned instances, and how well they retrieve."""

    def __init__(self, held: tuple, learned: tuple, held_labels: np.ndarray, learned_labels: np.ndarray):
        """held, learned: (bit scores, expected codes) of each; labels: classes or rows of 0/1."""
        self.held, self.learned = held, (learned[0][:_MOST], learned[1][:_MOST])
        self.held_labels, self.learned_labels = held_labels, learned_labels[:_MOST]

    def best_label_share(self, choices=LABEL_SHARES) -> float:
        """The λ with the highest mean mAP; the smallest of equal ones."""
        return max(choices, key=lambda share: (round(float(np.mean(self.retrieval(share))), 4), -share))

    def best_weight_share(self, label_share: float, weights: np.ndarray, choices=WEIGHT_SHARES) -> float:
        """The s that lifts the less lifted of both mAPs most, 0 where none lifts both."""
        if np.ptp(weights) == 0:
            return choices[0]
        plain = np.array(self.retrieval(label_share))
        gains = {0.0: 0.0}
        for share in choices:
            if share > 0:
                gains[share] = float(min(self.retrieval(label_share, shrink(weights, share)) - plain))
        return max(gains, key=lambda share: (round(gains[share], 4), -share))

    def retrieval(self, label_share: float, weights=None) -> np.ndarray:
        """mAP of held-out queries among themselves, and among the learned instances, ties averaged."""
        held, learned = (_signs(blend(bits, votes, label_share)) for bits, votes in (self.held, self.learned))
        queries, of_queries = held[:_QUERIES], self.held_labels[:_QUERIES]
        scores = [
            mean_average_precision(queries, codes, of_queries, labels, bit_weights=weights, ties="average")
            for codes, labels in ((held, self.held_labels), (learned, self.learned_labels))
        ]
        return np.nan_to_num(scores)  # where no query has a neighbour


def _signs(scores):
    return np.where(scores >= 0, np.int8(1), np.int8(-1))
