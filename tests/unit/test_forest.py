"""Trees scored by ruling leaves out, against walking down each sample by itself."""

import numpy as np
import pytest

from hbmp.functions import Trees
from hbmp.functions._shared.forest import leaf_of, splits_and_leaves


@pytest.mark.parametrize("leaves", [2, 31, 64, 100])
def test_samples_end_where_walking_down_ends(leaves):
    rng = np.random.default_rng(leaves)
    X = rng.integers(0, 50, (3000, 6)).astype(np.float32)  # whole numbers: some lie on a threshold
    targets = np.where(rng.random((3000, 2)) < 0.5, 1, -1)
    model = Trees(n_trees=3, max_leaf_nodes=leaves, max_features=1.0).fit(X, targets, random_state=0)
    assert (model.feature_.shape[1] + 1) // 2 == leaves
    new = rng.integers(0, 50, (200, 6)).astype(np.float32)
    expected = np.tile(model.base_, (200, 1))
    for row, sample in enumerate(new):
        for tree, bit in enumerate(model.bit_of_tree_):
            node = 0
            while model.feature_[tree, node] >= 0:
                goes_left = sample[model.feature_[tree, node]] <= model.threshold_[tree, node]
                node = (model.left_ if goes_left else model.right_)[tree, node]
            expected[row, bit] += model.value_[tree, node]
    np.testing.assert_array_equal(model.project(new), expected)


def test_a_tree_of_one_leaf_and_one_of_sixty_four():
    alone = splits_and_leaves(np.array([-1]), np.array([0]), np.array([0]))
    np.testing.assert_array_equal(leaf_of(np.zeros((1, 3)), np.array([-1]), np.zeros(1), *alone), [0, 0, 0])
    # A chain: node 2k splits at k, its left child 2k + 1 is a leaf, its right child the next split.
    nodes = np.arange(127)
    feature = np.where((nodes % 2 == 0) & (nodes < 126), 0, -1)
    chain = splits_and_leaves(feature, nodes + 1, nodes + 2)
    found = leaf_of(np.arange(70.0)[None], feature, nodes / 2, *chain)
    np.testing.assert_array_equal(found, [min(2 * k + 1, 126) if k < 63 else 126 for k in range(70)])
