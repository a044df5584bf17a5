"""Scores that ask for labels: against loops, with the signs of the bits, and what they bring."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.datasets import make_multilabel_classification

import hbmp
from hbmp.methods.hbmp.dither import LEAST, with_signs_of
from hbmp.methods.hbmp.label_queries import LabelQueries, make_queries


def example(exclusive=False):
    rng = np.random.default_rng(0)
    codes = np.where(rng.random((40, 5)) < 0.5, -1, 1).astype(np.int8)
    return codes, rng.integers(4, size=40) if exclusive else (rng.random((40, 4)) < 0.5).astype(np.float32)


@pytest.mark.parametrize("exclusive", [True, False])
def test_label_vectors_are_the_regression_of_labels_on_codes(exclusive):
    codes, labels = example(exclusive)
    found = make_queries(codes, labels, 6 if exclusive else 4)
    assert found.exclusive is exclusive
    X = codes - codes.mean(axis=0)
    ridge = 0.01 * X.var(axis=0).mean() * len(X)
    for label, vector in enumerate(found.vectors[:4]):
        y = (labels == label).astype(float) if exclusive else labels[:, label]
        best = np.linalg.solve(X.T @ X + ridge * np.eye(5), X.T @ (y - y.mean()))
        np.testing.assert_allclose(vector, best, atol=1e-5)
    assert not found.vectors[4:].any()  # of classes that nobody here has


@pytest.mark.parametrize("exclusive", [True, False])
def test_scores_are_those_of_a_loop(exclusive):
    queries = make_queries(*example(exclusive), 4)
    rng = np.random.default_rng(1)
    odds, label_scores = rng.normal(size=(6, 5)), rng.normal(size=(6, 4))
    scores = with_signs_of(odds + queries.wanted(label_scores), odds)
    for i in range(6):
        p = np.exp(label_scores[i])
        p = p / p.sum() if exclusive else p / (1 + p)
        for bit in range(5):
            both = odds[i, bit] + sum(p[label] * queries.vectors[label, bit] for label in range(len(p)))
            kept = both if both * odds[i, bit] > 0 else 0
            strongest = max(abs(kept), LEAST * abs(odds[i, bit]))
            assert scores[i, bit] == pytest.approx(strongest * np.sign(odds[i, bit]), abs=1e-6)


FINITE = st.floats(-50, 50, width=32)


@given(arrays.arrays(np.float32, (3, 4), elements=FINITE), arrays.arrays(np.float32, (3, 2), elements=FINITE))
def test_signs_are_those_of_the_bits(odds, label_scores):
    odds = np.where(np.abs(odds) < 1e-30, 0, odds)
    vectors = np.array([[5, -5, 0, 1], [-3, 2, 100, -100]], np.float32)
    for exclusive in (True, False):
        scores = with_signs_of(odds + LabelQueries(vectors, exclusive).wanted(label_scores), odds)
        np.testing.assert_array_equal(np.sign(scores), np.sign(odds))


def test_both_parts_are_levelled_and_nothing_breaks_where_labels_say_nothing():
    codes, labels = example()
    queries = make_queries(codes, labels, 4)
    odds, label_scores = 3 * np.ones((2, 5)), np.zeros((2, 4))
    queries = queries.levelled(odds, label_scores)
    assert np.abs(0.5 * queries.vectors.sum(axis=0)).mean() == pytest.approx(3, rel=1e-5)
    same = make_queries(np.ones_like(codes), labels, 4)  # codes that tell nothing apart
    same = same.levelled(odds, label_scores)
    np.testing.assert_allclose(with_signs_of(odds + same.wanted(label_scores), odds), odds)


def test_real_valued_queries_of_label_sets_retrieve_better():
    X, y = make_multilabel_classification(1500, 20, n_classes=12, n_labels=2, random_state=3)
    X, y = X[y.any(axis=1)].astype(np.float32), y[y.any(axis=1)]
    model = hbmp.HBMP(12, random_state=0).fit(X[:700], y[:700])
    codes = model.transform(X[:700])

    def retrieve(queries):
        return hbmp.metrics.mean_average_precision(queries, codes, y[700:], y[:700])

    odds = model.encoder_.odds(X[700:])
    np.testing.assert_array_equal(model.transform(X[700:]), np.where(odds >= 0, 1, -1))
    assert retrieve(model.project(X[700:])) > retrieve(odds) > retrieve(np.sign(odds))


def test_label_queries_leave_the_codes_as_they_are(blobs):
    X, y = blobs
    plain, aware = (hbmp.HBMP(8, label_queries=wanted, random_state=0).fit(X, y) for wanted in (False, True))
    assert plain.encoder_.queries is None
    np.testing.assert_array_equal(plain.project(X), plain.encoder_.odds(X))
    np.testing.assert_array_equal(aware.transform(X), plain.transform(X))
    assert not np.array_equal(aware.project(X), plain.project(X))


def test_codes_are_computed_without_label_queries(blobs, monkeypatch):
    X, y = blobs
    model = hbmp.HBMP(8, label_queries=True, random_state=0).fit(X, y)
    expected = model.transform(X)
    monkeypatch.setattr(LabelQueries, "wanted", None)
    np.testing.assert_array_equal(model.transform(X), expected)


def test_without_label_scores_a_score_is_its_bits_log_odds():
    X, y = make_multilabel_classification(200, 10, n_classes=4, random_state=0)
    for labels, settings in ((y, {"label_share": 0}), (None, {})):
        model = hbmp.HBMP(8, random_state=0, **settings).fit(X.astype(np.float32), labels)
        assert model.encoder_.queries is None
        own = model.function_.queries(X) if labels is None else model.function_.project(X)[:, :8]
        np.testing.assert_array_equal(model.project(X), own)
