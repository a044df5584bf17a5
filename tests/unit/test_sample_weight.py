"""Weights of instances: zero leaves a row out, whole numbers repeat it, and only their ratios matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from small_models import affinity_behind, small

import hbmp
from hbmp._training.losses import code_loss
from hbmp.affinities import Centred, LabelOverlap, MeanFeatures
from hbmp.functions import HashFunction, Linear, Trees
from hbmp.methods._shared.weights import read_weights
from hbmp.methods.hbmp.objective import Objective
from hbmp.methods.hbmp.plan import Plan

RNG = np.random.default_rng(3)
WEIGHTS = RNG.integers(0, 4, 90).astype(float)


@pytest.mark.parametrize("labels", ["classes", "sets", "none"])
def test_weight_zero_is_leaving_the_row_out(labels, blobs, label_rows):
    X, y = blobs
    y = {"classes": y, "sets": label_rows, "none": None}[labels]
    kept = WEIGHTS > 0
    without, zero = small(), small()
    if y is None:
        without.fit(X[kept])
        zero.fit(X, sample_weight=kept.astype(float))
    else:
        without.fit(X[kept], y[kept], sample_weight=WEIGHTS[kept])
        zero.fit(X, y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(zero.project(X), without.project(X))
    np.testing.assert_array_equal(zero.bit_weights_, without.bit_weights_)


def test_equal_weights_are_no_weights_and_only_ratios_matter(blobs):
    X, y = blobs
    weighted = RNG.random(90) + 0.1
    np.testing.assert_array_equal(
        small().fit(X, y, sample_weight=np.full(90, 7.0)).project(X), small().fit(X, y).project(X)
    )
    once, eightfold = (small().fit(X, y, sample_weight=factor * weighted).project(X) for factor in (1, 8))
    np.testing.assert_array_equal(once, eightfold)
    assert np.abs(once - small().fit(X, y).project(X)).max() > 1e-3


@pytest.mark.parametrize(
    "affinity", [MeanFeatures(), Centred(), LabelOverlap(), MeanFeatures(Centred("label_overlap"))]
)
def test_a_whole_weight_is_that_many_rows_in_an_affinity(affinity, blobs, label_rows):
    X = blobs[0]
    kept = np.flatnonzero(WEIGHTS)
    repeated = np.repeat(np.arange(90), WEIGHTS.astype(int))
    weighted = clone(affinity).fit(X[kept], label_rows[kept], sample_weight=WEIGHTS[kept])
    expected = clone(affinity).fit(X[repeated], label_rows[repeated])
    np.testing.assert_allclose(weighted.counts_, expected.counts_)
    np.testing.assert_allclose(weighted.matrix(), expected.matrix(), atol=1e-5)


def test_label_sets_weigh_by_the_weights_of_their_rows(blobs, label_rows):
    X, _ = blobs
    model = small(feature_share=0).fit(X, label_rows, sample_weight=WEIGHTS)
    kept = WEIGHTS > 0
    rows, item_of = np.unique(label_rows[kept], axis=0, return_inverse=True)
    sums = np.bincount(item_of.reshape(-1), WEIGHTS[kept])
    found = affinity_behind(model)
    order = np.lexsort(found.features_.T[::-1])
    np.testing.assert_array_equal(found.features_[order], rows)
    np.testing.assert_allclose(model.codebook_.item_weights[order], sums / sums.mean())


@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_the_loss_is_the_weighted_mean_of_the_rows_losses(certain, several):
    book = np.where(RNG.random((4, 6)) < 0.5, -1, 1).astype(np.int8)
    items = np.array([0, 3, 1, 1, 2])
    labels = (RNG.random((5, 3)) < 0.5).astype(np.float32) if several else np.array([2, 0, 1, 1, 0])
    plan = Plan(contrast_share=0.4)
    loss = Objective(plan, 6, book if certain else None, code_loss("smooth"))
    parts = [torch.from_numpy(part) for part in (book[items], items, labels)]
    scores = torch.from_numpy(RNG.normal(size=(5, 9)))

    def weighted(weights):
        return float(loss(scores, *parts, torch.from_numpy(np.asarray(weights, dtype=np.float64))))

    assert weighted(np.ones(5)) == pytest.approx(float(loss(scores, *parts)), rel=1e-6)
    weights = np.array([0.5, 2, 0, 1, 1.5])
    of_rows = [weighted(row) for row in np.eye(5)]
    assert len({round(value, 9) for value in of_rows}) == 5
    assert weighted(weights) == pytest.approx(weights @ of_rows, rel=1e-6)


@pytest.mark.parametrize("function", [Linear(epochs=40, lr=1e-2), Trees(n_trees=5)])
def test_heavy_rows_are_learned_better(function):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)).astype(np.float32)
    y = (X[:, 0] + 1.5 * rng.normal(size=400) > 0).astype(int)
    heavy = np.where(y == 1, 20.0, 1.0)
    equal, weighted = (
        hbmp.HBMP(4, function=function, label_share=0, random_state=0).fit(X, y, sample_weight=weights)
        for weights in (None, heavy)
    )
    misses = [(model.transform(X) != model.codes_for(y)).mean(axis=1) for model in (equal, weighted)]
    assert misses[1][y == 1].mean() < 0.5 * misses[0][y == 1].mean()
    assert misses[1][y == 0].mean() > misses[0][y == 0].mean()


class _TakesNoWeights(HashFunction):
    def fit(self, X, targets, *, bit_weights=None, random_state=None):
        self.n_bits_ = targets.shape[1]
        return self

    def project(self, X):
        return np.ones((len(X), self.n_bits_), np.float32)


def test_parts_that_cannot_weigh_say_so(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="_TakesNoWeights cannot weight instances: its fit takes no sample_weight"):
        small(function=_TakesNoWeights()).fit(X, y, sample_weight=WEIGHTS)
    small(function=_TakesNoWeights()).fit(X, y, sample_weight=(WEIGHTS > 0) * 2)  # no more than rows left out
    with pytest.raises(ValueError, match="Without labels all rows have equal weight"):
        hbmp.HBMP(4).fit(X, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match="ITQ cannot weight instances: found sample_weight"):
        hbmp.methods.ITQ(4).fit(X, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match=r"ITQ\.fit takes X and y, found weights"):
        hbmp.methods.ITQ(4).fit(X, weights=WEIGHTS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones(3), r"one number for each of 90 rows, found shape \(3,\)"),
        (np.ones((90, 1)), r"found shape \(90, 1\)"),
        (np.full(90, -1.0), "finite and not negative"),
        (np.full(90, np.nan), "finite and not negative"),
        (np.zeros(90), "zero for every row"),
    ],
)
def test_weights_that_are_none_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        read_weights(given, 90)


def test_a_fit_that_fails_leaves_the_model_as_it_was(blobs):
    X, y = blobs
    model = small().fit(X, y)
    codes, settings = model.transform(X), dict(vars(model))
    with pytest.raises(ValueError, match="one class"):
        model.fit(X[:, :3], np.zeros(90, int))
    assert vars(model) == settings
    np.testing.assert_array_equal(model.transform(X), codes)
    new = small()
    with pytest.raises(ValueError, match="one class"):
        new.fit(X, np.zeros(90, int))
    with pytest.raises(Exception, match="not fitted"):
        new.transform(X)
