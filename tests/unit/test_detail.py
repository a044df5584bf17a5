"""Detail bits as a part of a model: saved, deterministic, robust to odd features."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from hbmp import hamming, metrics
from hbmp._core import storage
from hbmp.methods.hbmp.detail import DetailBits, join_weights, unit_rows


@pytest.fixture(scope="module")
def digits():
    """Features, classes and label scores that give every class one code of 8 bits."""
    X, y = load_digits(return_X_y=True)
    targets = np.random.default_rng(0).permutation(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1))[:10]
    return X.astype(np.float32), y, 5.0 * (2.0 * targets[y] - 1)


def test_details_find_neighbours_that_class_codes_cannot(digits):
    X, y, scores = digits
    detail = DetailBits().fit(X[300:], scores[300:], 24, random_state=0)
    fine = detail.project(X, scores)
    weights = join_weights(np.ones(8), detail.weights_, 0.9)
    codes = hamming.signs(np.hstack([scores, fine]))
    task = {"query_labels": y[:300], "database_labels": y[300:]}

    def recall(table, bit_weights, queries=None):
        queries = table[:300] if queries is None else queries
        return metrics.neighbour_recall(queries, table[300:], X[:300], X[300:], bit_weights=bit_weights, **task)

    alone = recall(codes[:, :8], None)
    assert alone < 0.12
    assert recall(codes, weights) > 4 * alone
    assert recall(codes, weights, np.hstack([scores, fine])[:300]) > recall(codes, weights)
    assert metrics.mean_average_precision(codes[:300], codes[300:], y[:300], y[300:], bit_weights=weights) == 1
    assert metrics.self_first_share(codes[300:]) > 0.9


def test_same_seed_same_bits_and_a_saved_one_scores_the_same(digits, tmp_path):
    X, _, scores = digits
    detail = DetailBits(n_iter=2).fit(X, scores, 12, random_state=3)
    again = clone(detail).fit(X, scores, 12, random_state=3)
    np.testing.assert_array_equal(detail.project(X, scores), again.project(X, scores))
    storage.save(detail, tmp_path / "detail")
    loaded = storage.load(tmp_path / "detail")
    np.testing.assert_array_equal(detail.project(X, scores), loaded.project(X, scores))
    np.testing.assert_array_equal(detail.weights_, loaded.weights_)


def test_scores_are_as_large_as_label_scores(digits):
    X, _, scores = digits
    fine = DetailBits(n_iter=2).fit(X, scores, 12, random_state=3).project(X, scores)
    assert np.abs(fine).mean() == pytest.approx(np.abs(scores).mean(), rel=1e-4)
    assert fine.dtype == np.float32


def test_length_of_features_does_not_matter(digits):
    X, _, scores = digits
    detail = DetailBits(n_iter=2).fit(X, scores, 8, random_state=0)
    longer = X * np.linspace(0.5, 2, len(X), dtype=np.float32)[:, None]
    assert (hamming.signs(detail.project(longer, scores)) == hamming.signs(detail.project(X, scores))).mean() > 0.999


def test_more_bits_than_dimensions_and_rows_of_zeros():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 5)).astype(np.float32)
    X[:3] = 0
    detail = DetailBits(n_iter=2).fit(X, X[:, :2] + 0.1, 16, random_state=0)
    assert np.isfinite(detail.project(X, X[:, :2] + 0.1)).all()
    np.testing.assert_array_equal(unit_rows(X)[:3], 0)


def test_label_bits_that_never_change_or_repeat_are_no_obstacle(digits):
    X, _, scores = digits
    odd = np.hstack([scores, scores, np.ones((len(X), 2))])
    detail = DetailBits(n_iter=2).fit(X, odd, 8, random_state=0)
    assert np.isfinite(detail.project(X, odd)).all()
    plain = DetailBits(n_iter=2).fit(X, scores, 8, random_state=0)
    assert detail.unexplained_[1] == pytest.approx(plain.unexplained_[1], abs=1e-3)


def test_joined_weights_sum_as_told():
    weights = join_weights(np.array([2.0, 4.0]), np.array([1.0, 3.0]), 0.5)
    np.testing.assert_allclose(weights, [2, 4, 0.375, 1.125])
