"""Gradient-boosted trees, one ensemble a bit (scikit-learn's histogram trees), for features of mixed kinds.

After training the trees are kept as plain arrays, one row of nodes a tree, so that a model is saved without pickle
and its answers do not depend on the version of the library that grew it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import cpu_count

from hbmp._core.seeds import as_generator, draw_seed
from hbmp.functions._shared.base import HashFunction
from hbmp.functions._shared.forest import MOST_LEAVES, leaf_of, splits_and_leaves

_LEAF = -1
_ROWS = 8192


class Trees(HashFunction):
    """Boosted trees on the raw features.

    Parameters
    ----------
    n_trees, learning_rate, max_leaf_nodes, l2 : of each ensemble
    max_features : share of features each split looks at
    """

    smoke = {"n_trees": 2}

    def __init__(self, *, n_trees=100, learning_rate=0.1, max_leaf_nodes=31, l2=1.0, max_features=0.3, verbose=False):
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.l2 = l2
        self.max_features = max_features
        self.verbose = verbose

    def fit(self, X, targets, *, bit_weights=None, random_state=None):
        """Grow an ensemble for each bit."""
        from threadpoolctl import threadpool_limits
        from tqdm import tqdm

        rng = as_generator(random_state)
        trees, bit_of_tree = [], []
        self.base_ = np.zeros(targets.shape[1], dtype=np.float32)
        bits = range(targets.shape[1])
        for bit in tqdm(bits, desc="trees", unit="bit", disable=None if self.verbose else True, leave=False):
            if (targets[:, bit] == targets[0, bit]).all():
                self.base_[bit] = targets[0, bit]  # nothing to tell apart: a constant bit
                continue
            booster = self._booster(draw_seed(rng))
            with threadpool_limits(1 if X.size < 1e6 else None):  # threads cost more than they bring on little data
                booster.fit(X, targets[:, bit] > 0)
            self.base_[bit] = booster._baseline_prediction.item()
            grown = [stage[0].nodes for stage in booster._predictors]
            trees += grown
            bit_of_tree += [bit] * len(grown)
        self.bit_of_tree_ = np.array(bit_of_tree, dtype=np.int32)
        self._keep(trees)
        return self

    def _booster(self, seed: int):
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=self.n_trees,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            l2_regularization=self.l2,
            max_features=self.max_features,
            early_stopping=False,
            random_state=seed,
        )

    def _keep(self, trees) -> None:
        """The nodes of all trees as arrays (trees, nodes), padded with leaves of value 0."""
        shape = (len(trees), max((len(nodes) for nodes in trees), default=1))
        self.feature_ = np.full(shape, _LEAF, dtype=np.int32)
        self.threshold_, self.value_ = np.zeros(shape), np.zeros(shape, dtype=np.float32)
        self.left_, self.right_ = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
        self.depth_ = max((int(nodes["depth"].max()) for nodes in trees), default=0)
        for row, nodes in enumerate(trees):
            inner, size = nodes["is_leaf"] == 0, len(nodes)
            self.feature_[row, :size] = np.where(inner, nodes["feature_idx"], _LEAF)
            self.threshold_[row, :size] = nodes["num_threshold"]
            self.left_[row, :size], self.right_[row, :size] = nodes["left"], nodes["right"]
            self.value_[row, :size] = nodes["value"]

    def project(self, X):
        """Sum of the leaves each sample falls into, bit by bit; blocks of samples, a thread a core."""
        X = np.asarray(X, dtype=np.float32)
        scores = np.tile(self.base_, (len(X), 1))
        few = self.feature_.shape[1] < 2 * MOST_LEAVES  # a tree of m leaves has 2m - 1 nodes
        trees = zip(self.feature_, self.left_, self.right_, strict=True)
        paths = [splits_and_leaves(*tree) for tree in trees] if few else []

        def add_leaves(start: int) -> None:
            columns = np.ascontiguousarray(X[start : start + _ROWS].T)
            part = scores[start : start + _ROWS]
            for tree, bit in enumerate(self.bit_of_tree_):
                if few:
                    at = leaf_of(columns, self.feature_[tree], self.threshold_[tree], *paths[tree])
                else:
                    at = self._walk(tree, columns)
                part[:, bit] += self.value_[tree][at]

        with ThreadPoolExecutor(cpu_count()) as threads:
            list(threads.map(add_leaves, range(0, len(X), _ROWS)))
        return scores

    def _walk(self, tree: int, columns: np.ndarray) -> np.ndarray:
        """The node at which each sample ends, all samples one level at a time."""
        feature, threshold = self.feature_[tree], self.threshold_[tree]
        left, right = self.left_[tree], self.right_[tree]
        at, rows = np.zeros(columns.shape[1], dtype=np.int32), np.arange(columns.shape[1])
        for _ in range(self.depth_):
            split = feature[at]
            going_left = columns[split, rows] <= threshold[at]
            at = np.where(split == _LEAF, at, np.where(going_left, left[at], right[at]))
        return at
