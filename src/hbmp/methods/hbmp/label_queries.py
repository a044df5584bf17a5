"""Label-aware real-valued queries.

Codes are compared with codes as they are, but a query may be real-valued, with the importance of each bit.
Log-odds measure how certain a bit is, but relevance depends on which items share labels with the query.

    B      codes                 (n, bits)       of training instances, as the function gives them
    Y      labels                (n, labels)     0/1; of a class a single 1
    V      label vectors         (labels, bits)  minimise Σ_i ‖Y_i - V (B_i - b̄)‖², with a small ridge
    p      label probabilities   (m, labels)     softmax of label scores for classes, sigmoid for label sets
    ψ      log-odds of bits      (m, bits)
    q      scores                (m, bits)       ψ + ρ p V where that has the sign of ψ, a thousandth of ψ elsewhere

V b is the best linear estimate of the labels of an item with code b, so that p V b is the expected number of labels
that a query shares with it. ρ makes both parts equally large on average. The scores have the signs of ψ, so that a
query has the code of its item.

Past the paper (docs/beyond-the-paper.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax

_RIDGE = 0.01  # of the mean variance of a bit


@dataclass
class LabelQueries:
    """Turns log-odds and label scores into label-aware scores."""

    vectors: np.ndarray  # (labels, bits) float32, ρ V
    exclusive: bool  # one label an instance: classes

    def wanted(self, label_scores: np.ndarray) -> np.ndarray:
        """The term that the expected labels add to the log-odds, ρ p V."""
        probabilities = softmax(label_scores, axis=1) if self.exclusive else expit(label_scores)
        return probabilities @ self.vectors

    def levelled(self, odds: np.ndarray, label_scores: np.ndarray) -> LabelQueries:
        """With ρ by these, so that neither part outweighs the other."""
        size = np.abs(self.wanted(label_scores)).mean()
        factor = np.abs(odds).mean() / size if size > 0 else 1.0
        return replace(self, vectors=(self.vectors * factor).astype(np.float32))


def make_queries(codes: np.ndarray, labels: np.ndarray, n_labels: int) -> LabelQueries:
    """Label vectors by instances, ρ = 1; codes: (n, bits), labels: numbers of classes or rows of 0/1."""
    exclusive = labels.ndim == 1
    rows = _one_hot(labels, n_labels) if exclusive else sparse.csr_array(labels)
    centred = codes - codes.mean(axis=0)
    spread = centred.T @ centred / len(codes)
    spread += _RIDGE * max(np.trace(spread) / len(spread), 1e-12) * np.eye(len(spread))
    vectors = np.linalg.solve(spread, (rows.T @ centred).T / len(codes)).T
    return LabelQueries(vectors.astype(np.float32), exclusive)


def _one_hot(classes: np.ndarray, n_classes: int) -> sparse.csr_array:
    n = len(classes)
    return sparse.csr_array((np.ones(n), (np.arange(n), classes)), shape=(n, n_classes))
