"""Gradient-boosted trees, one ensemble per bit (scikit-learn's histogram trees), for features of mixed kinds.

After training, the trees are stored as plain arrays with one row of nodes per tree. A model is then saved without
pickle, and its output does not depend on the version of scikit-learn.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from hbmp._core.progress import tracked
from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp.functions._shared.base import HashFunction
from hbmp.functions._shared.forest import MOST_LEAVES, leaf_of, splits_and_leaves

_LEAF = -1
_ROWS = 8192


class Trees(HashFunction):
    """Gradient-boosted trees on the raw features.

    Parameters
    ----------
    n_trees : int, default=100
        Trees per bit.
    learning_rate : float, default=0.1
        Shrinkage of each tree.
    max_leaf_nodes : int, default=31
        The most leaves per tree.
    l2 : float, default=1.0
        L2 regularisation of leaf values.
    max_features : float, default=0.3
        Fraction of features considered in each split.
    verbose : bool, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    bit_of_tree_ : ndarray of shape (n_trees,)
        The bit each tree belongs to.
    base_ : ndarray of shape (n_bits,), float32
        Score of each bit before its trees.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.functions import Trees
    >>> X = np.random.default_rng(0).standard_normal((200, 3)).astype(np.float32)
    >>> targets = np.where(np.abs(X[:, :2]) > 0.7, 1, -1).astype(np.int8)
    >>> Trees(n_trees=20, max_features=1.0).fit(X, targets, random_state=0).bit_error(X, targets) < 0.05
    True
    """

    smoke = {"n_trees": 2}

    def __init__(
        self,
        *,
        n_trees: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 31,
        l2: float = 1.0,
        max_features: float = 0.3,
        verbose: bool = False,
    ):
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.l2 = l2
        self.max_features = max_features
        self.verbose = verbose

    def fit(
        self,
        X: np.ndarray,
        targets: np.ndarray,
        *,
        bit_weights: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        random_state: RandomState = None,
    ) -> Self:
        """Grow an ensemble for each bit. The weights of the bits are not used."""
        from threadpoolctl import threadpool_limits

        rng = as_generator(random_state)
        trees, bit_of_tree = [], []
        self.base_ = np.zeros(targets.shape[1], dtype=np.float32)
        bits = range(targets.shape[1])
        for bit in tracked("trees", bits, show=self.verbose):
            if (targets[:, bit] == targets[0, bit]).all():
                self.base_[bit] = targets[0, bit]  # a constant bit needs no trees
                continue
            booster = self._booster(draw_seed(rng))
            with threadpool_limits(1 if X.size < 1e6 else None):  # threads cost more than they save on small data
                booster.fit(X, targets[:, bit] > 0, sample_weight=sample_weight)
            self.base_[bit] = booster._baseline_prediction.item()
            grown = [stage[0].nodes for stage in booster._predictors]
            trees += grown
            bit_of_tree += [bit] * len(grown)
        self.bit_of_tree_ = np.array(bit_of_tree, dtype=np.int32)
        self._keep(trees)
        return self

    def _booster(self, seed: int) -> Any:
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

    def _keep(self, trees: list[np.ndarray]) -> None:
        """Store the nodes of all trees as arrays (trees, nodes), padded with leaves of value 0."""
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

    def project(self, X: np.ndarray) -> NDArray[np.float32]:
        """Sum of the leaves that each sample falls into, per bit; blocks of samples, one thread per core."""
        X = np.asarray(X, dtype=np.float32)
        scores: NDArray[np.float32] = np.tile(self.base_, (len(X), 1))
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
