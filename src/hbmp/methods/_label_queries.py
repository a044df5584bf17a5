"""Real-valued queries that ask for labels.

Codes are compared with codes as they are, but a query may bring real numbers: how much each bit is worth to it.
Log-odds say how sure a bit is. What retrieves is something else: which items share labels with the query.

    U      codes                 (items, bits)
    Y      labels of items       (items, labels)   0/1; for classes the rows of a unit matrix
    c      counts                (items,)          how many instances carry an item
    V      label vectors         (labels, bits)    minimise Σ_i c_i ‖Y_i - V (U_i - ū)‖², with a small ridge
    p      label probabilities   (n, labels)       softmax of label scores for classes, sigmoid for label sets
    ψ      log-odds of bits      (n, bits)
    q      scores                (n, bits)         ψ + ρ p V where that has the sign of ψ, a thousandth of ψ elsewhere

V u is the best linear guess at the labels behind a code u, so that p V u is the number of labels that a query shares
with it, to expect. ρ makes both parts equally large on average. Signs are those of ψ: a query has the code of its item.

Past the paper (docs/beyond-the-paper.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

LEAST = 1e-3  # of its log-odds, that every bit keeps
_RIDGE = 0.01  # of the mean variance of a bit


@dataclass
class LabelQueries:
    """What turns log-odds and label scores into scores that ask for labels."""

    vectors: np.ndarray  # (labels, bits) float32, ρ V
    exclusive: bool  # one label an instance: classes

    def ask(self, odds: np.ndarray, label_scores: np.ndarray) -> np.ndarray:
        """The scores q."""
        signs = np.sign(odds)
        return signs * np.maximum(signs * (odds + self._wanted(label_scores)), LEAST * np.abs(odds))

    def _wanted(self, label_scores):
        probabilities = softmax(label_scores, axis=1) if self.exclusive else expit(label_scores)
        return probabilities @ self.vectors

    def level_with(self, odds: np.ndarray, label_scores: np.ndarray) -> None:
        """Choose ρ by these, so that neither part outweighs the other."""
        size = np.abs(self._wanted(label_scores)).mean()
        if size > 0:
            self.vectors = (self.vectors * (np.abs(odds).mean() / size)).astype(np.float32)


def make_queries(label_rows, counts, codes, *, exclusive: bool) -> LabelQueries:
    """Label vectors of items, ρ = 1; label_rows: (items, labels), codes: (items, bits)."""
    weights = (counts / counts.sum())[:, None]
    codes = codes.astype(np.float64)
    centred = codes - (weights * codes).sum(axis=0)
    spread = (weights * centred).T @ centred
    spread += _RIDGE * max(np.trace(spread) / len(spread), 1e-12) * np.eye(len(spread))
    vectors = np.linalg.solve(spread, centred.T @ (weights * label_rows)).T
    return LabelQueries(vectors.astype(np.float32), exclusive)
