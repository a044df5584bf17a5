"""StructHash: hash functions and bit weights that optimise the ranking itself, by column generation.

Bit weights are learned so that the right ranking of every query beats each wrong one by that one's loss, 1 - NDCG. The
duals of this problem weigh pairs of samples; the next bit is the hash function of largest gain on these pairs, and all
weights are then learned again.

    h_k        bits           (n,)       signs of V_k on kernel features
    φ(x)       kernel_        (anchors,) RBF features, see `anchors`
    V          directions_    (anchors, b)
    w          bit_weights_   (b,)       not negative
    μ          duals          (planes,)  see `ranking_planes`
    Λ          matrix         (n, n)     sparse: pair weights of all planes, each times its dual
    loss_                                value of the problem in w, Σw + C ξ, after each bit

Reference: Lin, Shen & Wu, Optimizing Ranking Measures for Compact Binary Code Learning, ECCV 2014; with stage-wise
training Lin et al., Structured Learning of Binary Codes with Column Generation, IJCV 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.sparse import csr_array

from hbmp import hamming
from hbmp._core.seeds import RandomState, as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.anchors import AnchorKernel
from hbmp.methods._shared.bqp_losses import sampled_rows, similar_pairs
from hbmp.methods._shared.bqp_spectral import spectral_signs
from hbmp.methods._shared.checks import need_counts, need_positive
from hbmp.methods._shared.graph_cut import block_graph_cut, similar_blocks
from hbmp.methods._shared.label_rows import label_rows
from hbmp.methods._shared.products import gram
from hbmp.methods._shared.ranking_planes import most_violated, solve_weights

_PLANES = 20  # most planes added for one bit


def draw_lists(
    similar: np.ndarray, sizes: tuple[int, int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(queries (m,), items (m, p+s)): positives first, then negatives; drawn again where a query has too few.

    sizes: how many queries, positives and negatives. A query without another positive is its own.
    """
    most, n_positive, n_negative = sizes
    queries = rng.permutation(np.flatnonzero(~similar.all(axis=1)))[:most]
    if len(queries) == 0:
        raise ValueError("Every two samples share a label: a ranking needs samples that share none.")
    items = np.empty((len(queries), n_positive + n_negative), dtype=np.int64)
    for row, query in enumerate(queries):
        near, far = np.flatnonzero(similar[query]), np.flatnonzero(~similar[query])
        near = near[near != query] if len(near) > 1 else near
        items[row, :n_positive] = rng.choice(near, n_positive, replace=len(near) < n_positive)
        items[row, n_positive:] = rng.choice(far, n_negative, replace=len(far) < n_negative)
    return queries, items


def pair_matrix(queries: np.ndarray, items: np.ndarray, weights: np.ndarray, n_items: int) -> csr_array:
    """Λ from pair weights (m, p+s), symmetric, zero diagonal: a bit gains -hᵀΛh / 2 plus a constant."""
    tails, heads = np.repeat(queries, items.shape[1]), items.ravel()
    values = np.where(tails == heads, 0, weights.ravel() / 2).astype(np.float32)
    return csr_array((np.r_[values, values], (np.r_[tails, heads], np.r_[heads, tails])), shape=(n_items, n_items))


def refine_direction(features: np.ndarray, matrix: Any, start: np.ndarray, ridge: float, max_iter: int) -> np.ndarray:
    """v that lowers sᵀΛs + ridge ‖v‖² for the smooth bits s = tanh(features v), searched from a start."""
    size = max(float(abs(matrix).sum()), 1e-30)

    def value_and_slope(v: np.ndarray) -> tuple[float, np.ndarray]:
        smooth = np.tanh(features @ v.astype(np.float32))
        field = matrix @ smooth
        slope = features.T @ (2 * field * (1 - smooth**2)) / size
        return float(smooth @ field) / size + ridge * float(v @ v), slope.astype(np.float64) + 2 * ridge * v

    found = minimize(
        value_and_slope, start.astype(np.float64), jac=True, method="L-BFGS-B", options={"maxiter": max_iter}
    )
    return found.x.astype(np.float32)


class _Master:
    """The problem in w: its planes, its bits, and the best weights."""

    def __init__(self, queries: np.ndarray, items: np.ndarray, n_positive: int, price: float, tolerance: float) -> None:
        self.queries, self.items = queries, items
        self.n_positive, self.price, self.tolerance = n_positive, price, tolerance
        self.differ = np.empty((0, *items.shape), dtype=bool)  # of each bit, for each query and item
        self.weights = np.zeros(0)
        plane, wrong = most_violated(np.zeros(items.shape), n_positive)
        self.planes, self.wrong, self.duals = [plane], [wrong], np.array([price])
        self.value = price * wrong

    def pulls(self) -> np.ndarray:
        """Pair weights of all planes, each times its dual, (m, p+s)."""
        return sum(dual * plane for dual, plane in zip(self.duals, self.planes, strict=True) if dual > 0)

    def add(self, signs: np.ndarray) -> None:
        """One more bit (n,): learn all weights again, adding planes until none is violated."""
        differs = signs[self.queries][:, None] != signs[self.items]
        self.differ = np.concatenate([self.differ, differs[None]])
        self.weights = np.append(self.weights, 0.0)
        for _ in range(_PLANES):
            weights, duals, slack, _ = solve_weights(self._gains(), np.array(self.wrong), self.price)
            distances = np.tensordot(weights, self.differ, axes=1)
            plane, wrong = most_violated(distances, self.n_positive)
            needed = max(0.0, wrong - float((plane * distances).sum()) / len(plane))
            value = weights.sum() + self.price * needed
            if value < self.value:
                self.value, self.weights = value, weights
            self.duals = np.append(duals, 0.0)
            self.planes.append(plane)
            self.wrong.append(wrong)
            if needed <= slack + self.tolerance:
                break
        kept = np.flatnonzero(self.duals > 0)  # planes without a dual do not bind
        self.planes, self.wrong = [self.planes[k] for k in kept], [self.wrong[k] for k in kept]
        self.duals = self.duals[kept]

    def _gains(self) -> np.ndarray:
        """Gain of each plane by each bit, (planes, bits)."""
        flat = self.differ.reshape(len(self.differ), -1).astype(np.float32)
        return np.stack([flat @ plane.ravel() for plane in self.planes]).astype(np.float64) / len(self.queries)


class StructHash(Hasher):
    """Weighted bits that rank samples with a common label first, learned on NDCG.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    n_queries : int, default=2000
        Queries in the training rankings.
    n_positive : int, default=20
        Items per query that share a label with it.
    n_negative : int, default=50
        Items per query that share none.
    price : float, default=10.0
        C, the cost of a violated ranking relative to the size of the weights.
    tolerance : float, default=0.005
        Violations below this add no plane.
    n_anchors : int, default=1000
        Anchors of the kernel features.
    width : float, default=0.5
        σ of the kernel as a multiple of the root mean squared distance.
    ridge : float, default=1e-5
        Penalty on the norm of a direction, per sample.
    steps : int, default=0
        Steps of the smooth search for a direction. With 0 it is regressed on the signs that solve the quadratic
        problem of the bit.
    max_samples : int, default=5000
        The most samples to train on. Larger data is sampled.
    random_state : int, Generator, RandomState or None, default=None
        Seed. The same seed gives the same model.

    Attributes
    ----------
    directions_ : ndarray of shape (n_anchors, n_bits)
        Hyperplane of each bit on the kernel features.
    bit_weights_ : ndarray of shape (n_bits,)
        Learned weights, non-negative.
    loss_ : list of float
        Objective after each bit.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import StructHash
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = StructHash(8, n_queries=30, n_positive=4, n_negative=8, n_anchors=30, random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Lin, Shen & Wu, ECCV 2014"
    supervised = True
    smoke = {"n_queries": 20, "n_positive": 4, "n_negative": 6, "n_anchors": 8, "steps": 3}
    search = {"price": [3.0, 10.0, 30.0], "width": [0.5, 0.7]}
    never_rises = "loss_"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_queries: int = 2000,
        n_positive: int = 20,
        n_negative: int = 50,
        price: float = 10.0,
        tolerance: float = 0.005,
        n_anchors: int = 1000,
        width: float = 0.5,
        ridge: float = 1e-5,
        steps: int = 0,
        max_samples: int = 5000,
        random_state: RandomState = None,
    ):
        self.n_bits = n_bits
        self.n_queries = n_queries
        self.n_positive = n_positive
        self.n_negative = n_negative
        self.price = price
        self.tolerance = tolerance
        self.n_anchors = n_anchors
        self.width = width
        self.ridge = ridge
        self.steps = steps
        self.max_samples = max_samples
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        need_counts(n_queries=self.n_queries, n_positive=self.n_positive, n_negative=self.n_negative)
        need_counts(n_anchors=self.n_anchors, max_samples=self.max_samples)
        need_positive(price=self.price, tolerance=self.tolerance, width=self.width, ridge=self.ridge)
        rng = as_generator(self.random_state)
        labels = label_rows(y)
        rows = sampled_rows(len(X), self.max_samples, rng)
        X, similar = X[rows], similar_pairs(labels[rows])
        self.kernel_ = AnchorKernel(n_anchors=self.n_anchors, width=self.width).fit(X, rng)
        features = self._features(X)
        queries, items = draw_lists(similar, (self.n_queries, self.n_positive, self.n_negative), rng)
        blocks = similar_blocks(similar, rng, 500)
        squares = gram(features, features)
        squares[np.diag_indices_from(squares)] += self.ridge * len(X)
        factor = cho_factor(squares)
        master = _Master(queries, items, self.n_positive, self.price, self.tolerance)
        directions, self.loss_ = [], []
        for _ in range(self.n_bits):
            matrix = pair_matrix(queries, items, master.pulls(), len(X))
            target = block_graph_cut(matrix, spectral_signs(matrix, rng), blocks, 1)
            direction = cho_solve(factor, features.T @ target.astype(np.float32)).astype(np.float32)
            if self.steps:
                direction = refine_direction(features, matrix, direction, self.ridge, self.steps)
            master.add(hamming.signs(features @ direction))
            directions.append(direction)
            self.loss_.append(float(master.value))
        self.directions_ = np.stack(directions, axis=1)
        self.bit_weights_ = master.weights.copy()

    def _features(self, X: Any) -> np.ndarray:
        return np.hstack([self.kernel_.transform(X), np.ones((len(X), 1), dtype=np.float32)])

    def _project(self, X: Any) -> np.ndarray:
        return self._features(X) @ self.directions_
