"""Structured learning of a ranking: the most violated ranking of each query, and bit weights by cutting planes.

A ranking is wrong by 1 - NDCG. The weights must hold the right ranking above every other one by as much as that one is
wrong; of those many constraints only the most violated are ever written down, one plane for all queries at a time.

    d(i, j)     distances     weighted Hamming distance of query i and item j
    k_t         ahead         (m, p)   negatives ranked before the t-th nearest positive
    Δ           wrong         (m,)     1 - NDCG of a ranking
    δψ          pair weights  (m, p+s) what a ranking's misordered pairs put on each distance: below 0 for positives
    w           weights       (bits,)  not negative
    ξ, C                      slack and its price
    μ           duals         (planes,)

References: Lin, Shen & Wu, Optimizing Ranking Measures for Compact Binary Code Learning, ECCV 2014, Eq. 5 to 10; for
the ranking, Chakrabarti et al., Structured Learning for Non-Smooth Ranking Losses, KDD 2008.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def discounts(n_items: int) -> np.ndarray:
    """1 / log2(1 + rank) for ranks 1 to n."""
    return 1 / np.log2(np.arange(2, n_items + 2))


def worst_ranking(positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Number of negatives that the most violated ranking puts before each positive, sorted from near to far.

    positive (m, p), negative (m, s): sorted distances of each query. The ranking maximises 1 - NDCG plus the mean over
    all pairs of (d_positive - d_negative) where the negative comes first. Within positives, and within negatives, the
    nearer comes first; so k_1 ≤ k_2 ≤ … are all there is to choose, and one pass over the positives finds them exactly.
    """
    (n_queries, n_positive), n_negative = positive.shape, negative.shape[1]
    ahead = np.arange(n_negative + 1)
    ranks = discounts(n_positive + n_negative)
    ideal = ranks[:n_positive].sum()
    passed = np.concatenate([np.zeros((n_queries, 1)), np.cumsum(negative, axis=1)], axis=1)
    best = np.zeros((n_queries, n_negative + 1))
    chosen = np.empty((n_positive, n_queries, n_negative + 1), dtype=np.int32)
    for t in range(n_positive):
        gain = (ahead * positive[:, t, None] - passed) / (n_positive * n_negative) - ranks[t + ahead] / ideal
        best = best + gain  # best[k]: positives up to t, with k negatives before the t-th
        highest = np.maximum.accumulate(best, axis=1)
        first = np.where(np.diff(highest, axis=1, prepend=-np.inf) > 0, ahead, 0)
        chosen[t] = np.maximum.accumulate(first, axis=1)  # which k reaches the highest so far
        best = highest
    before = np.empty((n_queries, n_positive), dtype=np.int32)
    limit = np.full(n_queries, n_negative)
    for t in reversed(range(n_positive)):
        before[:, t] = limit = chosen[t][np.arange(n_queries), limit]
    return before


def ranking_loss(before: np.ndarray, n_negative: int) -> np.ndarray:
    """1 - NDCG of rankings given by the negatives before each positive, (m,)."""
    n_positive = before.shape[1]
    ranks = discounts(n_positive + n_negative)
    return 1 - ranks[np.arange(n_positive) + before].sum(axis=1) / ranks[:n_positive].sum()


def pair_weights(before: np.ndarray, n_negative: int) -> tuple[np.ndarray, np.ndarray]:
    """δψ on sorted positives (m, p) and negatives (m, s): the mean of d_negative - d_positive where misordered."""
    n_pairs = before.shape[1] * n_negative
    behind = (before[:, :, None] > np.arange(n_negative)).sum(axis=1)  # positives that each negative precedes
    return -before / n_pairs, behind / n_pairs


def most_violated(distances: np.ndarray, n_positive: int) -> tuple[np.ndarray, float]:
    """(pair weights (m, p+s) float32, mean loss) of the most violated rankings; the first p columns are positives."""
    rows = np.arange(len(distances))[:, None]
    near, far = distances[:, :n_positive], distances[:, n_positive:]
    near_order, far_order = (part.argsort(axis=1, kind="stable") for part in (near, far))
    before = worst_ranking(near[rows, near_order], far[rows, far_order])
    weights = np.empty(distances.shape, dtype=np.float32)
    on_near, on_far = pair_weights(before, far.shape[1])
    weights[rows, near_order], weights[rows, n_positive + far_order] = on_near, on_far
    return weights, float(ranking_loss(before, far.shape[1]).mean())


def solve_weights(gains: np.ndarray, wrong: np.ndarray, price: float) -> tuple[np.ndarray, np.ndarray, float, float]:
    """(w, μ, ξ, objective) of min Σw + C ξ, w ≥ 0, ξ ≥ 0, gains w ≥ wrong - ξ. gains: (planes, bits)."""
    n_bits = gains.shape[1]
    cost = np.append(np.ones(n_bits), price)
    limits = -np.hstack([gains, np.ones((len(gains), 1))])
    found = linprog(cost, A_ub=limits, b_ub=-wrong, bounds=(0, None), method="highs-ds")
    return found.x[:n_bits], -found.ineqlin.marginals, float(found.x[-1]), float(found.fun)
