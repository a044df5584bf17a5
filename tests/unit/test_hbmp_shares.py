"""The shares that carry HBMP past the paper: what each does, and how they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from small_models import affinity_behind, small

import hbmp
from hbmp.affinities import MeanFeatures, SameClass, SharedLabels
from hbmp.methods.hbmp import plan as plans
from hbmp.methods.hbmp.targets import shrink


def test_features_speak_in_an_auto_affinity(blobs, label_rows):
    X, y = blobs
    for labels, base in ((y, SameClass()), (label_rows, SharedLabels()), (sparse.csr_matrix(label_rows), None)):
        mixed = affinity_behind(small(feature_share=0.3).fit(X, labels))
        expected = MeanFeatures(base or SharedLabels(), share=0.3).fit(X, labels)
        np.testing.assert_allclose(mixed.matrix(), expected.matrix(), atol=1e-6)


def test_labels_vote_with_the_codes_of_their_items(blobs):
    """Log-odds are a mean of two: the function's own, and those of the code that its label scores expect, common
    classes held back."""
    X, y = blobs
    model = small(12, label_share=0.4).fit(X, y)
    outputs = model.function_.project(X)
    assert outputs.shape == (90, 12 + 4)
    for row, score in zip(outputs[:9].astype(float), model.encoder_.odds(X[:9]), strict=True):
        odds = np.exp(row[12:]) / np.sqrt(np.bincount(y))
        expected = sum(p * code for p, code in zip(odds / odds.sum(), model.codebook_.codes.astype(float), strict=True))
        expected = expected.clip(-0.999, 0.999)
        votes = np.log((1 + expected) / (1 - expected))
        np.testing.assert_allclose(score, 0.6 * row[:12] + 0.4 * votes, atol=1e-4)


def test_label_sets_vote_as_often_as_they_occur(blobs, label_rows):
    X, _ = blobs
    model = small(12, label_share=1).fit(X, label_rows)
    sets, counts = np.unique(label_rows, axis=0, return_counts=True)
    for row, score in zip(
        model.function_.project(X[:9])[:, 12:].astype(float), model.encoder_.odds(X[:9]), strict=True
    ):
        likelihoods = [
            np.prod([1 / (1 + np.exp(-z if on else z)) for z, on in zip(row, labels, strict=True)]) * count**0.5
            for labels, count in zip(sets, counts, strict=True)
        ]
        expected = likelihoods @ model.codes_for(sets).astype(float) / np.sum(likelihoods)
        np.testing.assert_allclose(np.tanh(score / 2), expected.clip(-0.999, 0.999), atol=1e-4)


def test_no_votes_where_they_are_not_wanted_or_not_possible(blobs, monkeypatch):
    X, y = blobs
    monkeypatch.setattr(plans, "MOST_LABELS", 3)
    for model in (small(), small(label_share=0), small(function=hbmp.functions.Trees(n_trees=2))):
        model.fit(X, y)
        assert model.plan_.label_share == 0
        assert model.function_.project(X).shape == (90, 8)


def test_a_constant_is_free_where_it_is_asked_for(label_rows, blobs):
    X, _ = blobs
    assert small(intercept=True).fit(X, label_rows).codebook_.intercept != 0
    assert small(intercept=True, feature_share=0).fit(X, label_rows).codebook_.intercept != 0
    for settings in ({"intercept": False}, {"scheme": "constant"}):
        assert small(**settings).fit(X, label_rows).codebook_.intercept == 0


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("n_rows", [150, 300])
def test_classes_as_rows_of_labels_are_as_good_as_classes(n_classes, n_rows):
    """No two rows share a label, so a constant alone would explain the affinity; it must not be what is chosen."""
    X, y = make_blobs(n_rows, n_features=8, centers=n_classes, cluster_std=0.5, random_state=4)
    X, rows = X.astype(np.float32), np.eye(n_classes, dtype=int)[y]
    model = small(12).fit(X, rows)
    assert (model.bit_weights_ > 1e-3).any()
    codes = model.transform(X)
    found = hbmp.metrics.mean_average_precision(codes, codes, y, y, bit_weights=model.bit_weights_, ties="average")
    assert found > 0.95


def test_equal_weights_are_never_negative():
    np.testing.assert_allclose(shrink(np.array([2, -3, 0.5]), 0), 5.5 / 3)
    np.testing.assert_allclose(shrink(np.zeros(3), 0), 1)
    np.testing.assert_allclose(shrink(np.array([1.0, 3.0]), 0.5), [1.5, 2.5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dither": "much"}, "dither must be 'auto' or lie between 0 and 1, found 'much'"),
        ({"label_share": 2}, "label_share must be 'auto' or lie between 0 and 1, found 2"),
        ({"intercept": "yes"}, "intercept must be 'auto', True or False, found 'yes'"),
    ],
)
def test_shares_that_are_none_are_refused(settings, message, blobs):
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(*blobs)


def test_weights_lie_between_equal_ones_and_the_pursuits(blobs):
    X, y = blobs
    found = small(16, weight_share=1).fit(X, y).bit_weights_
    np.testing.assert_allclose(found, small(16, weight_share=1).fit(X, y).codebook_.weights)
    np.testing.assert_allclose(small(16, weight_share=0).fit(X, y).bit_weights_, found.mean())
    half = small(16, weight_share=0.5).fit(X, y)
    np.testing.assert_allclose(half.bit_weights_, (found + found.mean()) / 2)
    prefix = half.codebook_.weights_for(5)
    np.testing.assert_allclose(half.weights_for(5), (prefix + prefix.mean()) / 2)
