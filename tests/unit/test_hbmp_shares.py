"""The shares that carry HBMP past the paper: what each does, and how they are chosen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from small_models import affinity_behind, small

import hbmp
from hbmp.affinities import Centred, MeanFeatures, SameClass, SharedLabels
from hbmp.methods import hbmp as hbmp_file
from hbmp.methods.hbmp import candidates, held_out


def test_features_speak_in_an_auto_affinity(blobs, label_rows):
    X, y = blobs
    for labels, base in ((y, SameClass()), (label_rows, SharedLabels()), (sparse.csr_matrix(label_rows), None)):
        mixed = affinity_behind(small(feature_share=0.3).fit(X, labels))
        expected = MeanFeatures(base or SharedLabels(), share=0.3).fit(X, labels)
        np.testing.assert_allclose(mixed.matrix(), expected.matrix(), atol=1e-6)


def test_labels_vote_with_the_codes_of_their_items(blobs):
    """Log-odds are a mean of two: the function's own, and those of the code that its label scores expect."""
    X, y = blobs
    model = small(12, label_share=0.4).fit(X, y)
    outputs = model.function_.project(X)
    assert outputs.shape == (90, 12 + 4)
    for row, score in zip(outputs[:9].astype(float), model._odds(X[:9])[0], strict=True):
        odds = np.exp(row[12:])
        expected = sum(p * code for p, code in zip(odds / odds.sum(), model.codebook_.codes.astype(float), strict=True))
        votes = np.log((1 + expected) / (1 - expected)).clip(-np.log(1999), np.log(1999))
        np.testing.assert_allclose(score, 0.6 * row[:12] + 0.4 * votes, atol=1e-4)


def test_label_sets_vote_as_often_as_they_occur(blobs, label_rows):
    X, _ = blobs
    model = small(12, label_share=1).fit(X, label_rows)
    sets, counts = np.unique(label_rows, axis=0, return_counts=True)
    for row, score in zip(model.function_.project(X[:9])[:, 12:].astype(float), model._odds(X[:9])[0], strict=True):
        likelihoods = [
            np.prod([1 / (1 + np.exp(-z if on else z)) for z, on in zip(row, labels, strict=True)]) * count**0.5
            for labels, count in zip(sets, counts, strict=True)
        ]
        expected = likelihoods @ model.codes_for(sets).astype(float) / np.sum(likelihoods)
        np.testing.assert_allclose(np.tanh(score / 2), expected.clip(-0.999, 0.999), atol=1e-4)


def test_no_votes_where_they_are_not_wanted_or_not_possible(blobs, monkeypatch):
    X, y = blobs
    monkeypatch.setattr(held_out, "MOST_LABELS", 3)
    for model in (small(), small(label_share=0), small(function=hbmp.functions.Trees(n_trees=2))):
        model.fit(X, y)
        assert model.label_share_ == 0
        assert model.function_.project(X).shape == (90, 8)


def test_shares_are_chosen_on_instances_held_out(monkeypatch):
    X, y = make_blobs(400, n_features=5, centers=6, cluster_std=4.0, random_state=2)
    X, seen = X.astype(np.float32), []
    teach = hbmp_file.teach

    def watched(function, rows, lessons, *rest, **named):
        seen.append((len(rows), sum(lesson.codes.shape[1] for lesson in lessons)))
        teach(function, rows, lessons, *rest, **named)

    monkeypatch.setattr(hbmp_file, "teach", watched)
    model = small(12).fit(X, y)
    assert seen == [(320, 4 * 12), (400, 12)]  # the bits of four code books, then those of the best
    assert model.feature_share_ in (0.3, 0.5, 0.7, 0.85)
    assert model.label_share_ in (0, 0.25, 0.5, 0.75)
    assert model.weight_share_ in (0, 0.5, 1)
    seen.clear()
    model = small(12, feature_share=0.6, label_share=0.25, weight_share=1).fit(X, y)
    assert seen == [(400, 12)]
    assert (model.feature_share_, model.label_share_, model.weight_share_) == (0.6, 0.25, 1)
    label_sets = np.eye(6, dtype=int)[y]
    seen.clear()
    model = small(12).fit(X, label_sets)
    assert seen == [(320, 2 * 3 * 12), (400, 12)]  # of two feature shares, and three plans each
    assert (model.feature_share_, model.centre_share_) in itertools.product((0.5, 0.7), (0, 0.25))
    seen.clear()
    assert small(16).fit(X, label_sets).feature_share_ == 0.5
    assert seen == [(320, 3 * 16), (400, 16)]  # of three plans
    seen.clear()
    monkeypatch.setattr(candidates, "MOST_ITEMS", 5)
    assert small(16).fit(X, label_sets).centre_share_ == 0
    assert seen == [(320, 16), (400, 16)]


def test_a_constant_is_free_where_it_is_asked_for(label_rows, blobs):
    X, _ = blobs
    assert small(intercept=True).fit(X, label_rows).codebook_.intercept != 0
    assert small(intercept=True, feature_share=0).fit(X, label_rows).codebook_.intercept != 0
    for settings in ({}, {"intercept": False}, {"feature_share": 0}, {"scheme": "constant"}):  # too few to choose by
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
    np.testing.assert_allclose(held_out.shrink(np.array([2, -3, 0.5]), 0), 5.5 / 3)
    np.testing.assert_allclose(held_out.shrink(np.zeros(3), 0), 1)
    np.testing.assert_allclose(held_out.shrink(np.array([1.0, 3.0]), 0.5), [1.5, 2.5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"centre_share": "much"}, "centre_share must be 'auto' or lie between 0 and 1, found 'much'"),
        ({"label_share": 2}, "label_share must be 'auto' or lie between 0 and 1, found 2"),
        ({"intercept": "yes"}, "intercept must be 'auto', True or False, found 'yes'"),
    ],
)
def test_shares_that_are_none_are_refused(settings, message, blobs):
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(*blobs)


def test_a_centre_share_is_taken_off_the_labels_part(blobs, label_rows):
    X, _ = blobs
    model = small(feature_share=0.3, centre_share=0.6).fit(X, label_rows)
    expected = MeanFeatures(Centred(share=0.6), share=0.3).fit(X, label_rows)
    np.testing.assert_allclose(affinity_behind(model).matrix(), expected.matrix(), atol=1e-6)
    assert (model.feature_share_, model.centre_share_) == (0.3, 0.6)
    model = small(feature_share=0, centre_share=0.6).fit(X, label_rows)
    np.testing.assert_allclose(
        affinity_behind(model).matrix(), Centred(share=0.6).fit(X, label_rows).matrix(), atol=1e-6
    )
    assert (model.feature_share_, model.centre_share_) == (0, 0.6)


def test_the_best_of_a_trial_is_what_retrieves_best():
    """Votes that are right beat bits that are noise; weights that silence a broken bit are taken, others are not."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 300)
    codes = np.array([[1, 1, 1], [1, -1, 1], [-1, 1, 1], [-1, -1, 1]])[labels].astype(float)
    noise = rng.standard_normal((300, 3))
    good, bad = (3 * noise, 0.9 * codes), (codes * 9, noise)
    parts = (labels[:150], labels[150:])
    trials = {}
    for name, (bits, votes) in {"votes": good, "bits": bad}.items():
        trials[name] = held_out.Trial((bits[:150], votes[:150]), (bits[150:], votes[150:]), *parts)
    assert trials["votes"].best(np.ones(3))[1:] == (0.75, 0)
    assert trials["bits"].best(np.ones(3))[1] == 0
    books = [trials["votes"], trials["bits"]]
    assert held_out.choose(books, [np.ones(3)] * 2, label_shares=(0.0,)) == held_out.Shares(1, 0.0, 0.0)
    broken = codes.copy()
    broken[:, 2] = noise[:, 2]
    trial = held_out.Trial((broken[:150], broken[:150]), (broken[150:], broken[150:]), *parts)
    assert trial.best(np.array([1, 1, 0.1]))[2] > 0
    assert trial.best(np.array([0.1, 1, 1]))[2] == 0


def test_weights_lie_between_equal_ones_and_the_pursuits(blobs):
    X, y = blobs
    found = small(16, weight_share=1).fit(X, y).bit_weights_
    np.testing.assert_allclose(found, small(16, weight_share=1).fit(X, y).codebook_.weights)
    np.testing.assert_allclose(small(16, weight_share=0).fit(X, y).bit_weights_, found.mean())
    half = small(16, weight_share=0.5).fit(X, y)
    np.testing.assert_allclose(half.bit_weights_, (found + found.mean()) / 2)
    prefix = half.codebook_.weights_for(5)
    np.testing.assert_allclose(half.weights_for(5), (prefix + prefix.mean()) / 2)


def test_weights_must_earn_their_price(monkeypatch):
    """Half and whole weights gain these over none, among new instances and among learned ones."""
    trial = held_out.Trial(None, None, None, None)

    def chosen(half, whole):
        gains = {0.0: (0, 0), 0.5: half, 1.0: whole}
        weights = np.array([1.0, 3.0])  # whole: 1 and 3; half: 1.5 and 2.5

        def retrieval(label_share, found=None):
            share = 0.0 if found is None else 2.0 - found[0]
            return np.array([0.8, 0.9]) + gains[share]

        monkeypatch.setattr(trial, "retrieval", retrieval)
        return trial.best(weights, label_shares=(0.0,))[2]

    assert chosen((0.0009, 0.0009), (0.0019, 0.0019)) == 0
    assert chosen((0.002, 0.002), (0.0015, 0.0015)) == 0.5
    assert chosen((0.002, 0.002), (0.0025, 0.0025)) == 0.5  # half a tenth of a point more is not worth it
    assert chosen((0.002, 0.002), (0.0040, 0.0040)) == 1
    assert chosen((0.002, -0.002), (0.02, -0.0001)) == 0  # both must gain
