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

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, softmax

from hbmp.methods._label_votes import LabelVotes

LEAST = 1e-3  # of its log-odds, that every bit keeps
LEVELLED = 2000  # instances, about, that are enough to choose ρ by
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

    def levelled(self, odds: np.ndarray, label_scores: np.ndarray) -> LabelQueries:
        """With ρ by these, so that neither part outweighs the other."""
        size = np.abs(self._wanted(label_scores)).mean()
        factor = np.abs(odds).mean() / size if size > 0 else 1.0
        return replace(self, vectors=(self.vectors * factor).astype(np.float32))


def make_queries(votes: LabelVotes, counts: np.ndarray, *, exclusive: bool) -> LabelQueries:
    """Label vectors by the labels and codes of items, the same that vote; ρ = 1. counts: of the items."""
    weights = (counts / counts.sum())[:, None]
    codes = votes.codes.astype(np.float64)
    centred = codes - (weights * codes).sum(axis=0)
    spread = (weights * centred).T @ centred
    spread += _RIDGE * max(np.trace(spread) / len(spread), 1e-12) * np.eye(len(spread))
    vectors = np.linalg.solve(spread, centred.T @ (weights * votes.label_rows)).T
    return LabelQueries(vectors.astype(np.float32), exclusive)
