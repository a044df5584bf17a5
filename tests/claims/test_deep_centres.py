"""What methods with centres promise: DPN, CSQ and OrthoHash against plain loops, and their claims."""

import math

import numpy as np
import pytest
import torch
from deep_batch import SEEDS, assert_same_loss, cosine, number, problem, quick
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

import hbmp
from hbmp.functions import Kernel, Linear
from hbmp.methods import csq, dpn, orthohash
from hbmp.methods._shared import centres as centre_sets
from hbmp.methods._shared.cosines import cosine_cross_entropy

# Centres


@pytest.mark.parametrize("order", [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 48, 64, 128])
def test_hadamard_rows_are_orthogonal(order):
    matrix = centre_sets.hadamard(order).astype(int)
    assert set(np.unique(matrix)) <= {-1, 1}
    np.testing.assert_array_equal(matrix @ matrix.T, order * np.eye(order, dtype=int))


@pytest.mark.parametrize("order", [3, 6, 10, 14, 30])
def test_there_is_no_hadamard_matrix_of_other_orders(order):
    assert centre_sets.hadamard(order) is None


@quick
@given(SEEDS, st.sampled_from([4, 12, 16, 32]), st.data())
def test_hadamard_centres_differ_in_half_of_their_bits_or_in_all(seed, n_bits, data):
    n_centres = data.draw(st.integers(2, 2 * n_bits))
    centres = centre_sets.make_centres("hadamard", n_centres, n_bits, np.random.default_rng(seed))
    distances = (n_bits - centres @ centres.T) / 2
    assert set(distances[~np.eye(n_centres, dtype=bool)]) <= {n_bits / 2, n_bits}
    assert (distances == n_bits).sum() // 2 == max(0, n_centres - n_bits)  # negatives only where rows run out


@pytest.mark.parametrize(("n_centres", "n_bits"), [(10, 12), (10, 16), (10, 32), (10, 48), (40, 32)])
def test_no_bit_of_hadamard_centres_is_the_same_for_all(n_centres, n_bits):
    """Orthogonal centres cannot all be balanced: the squared column sums add up to n_centres · n_bits, or less."""
    centres = centre_sets.make_centres("hadamard", n_centres, n_bits, np.random.default_rng(0))
    sums = np.abs(centres.sum(axis=0))
    assert sums.max() <= 0.6 * n_centres
    if n_centres <= n_bits:
        assert (sums**2).sum() == n_centres * n_bits


@quick
@given(SEEDS, st.integers(2, 60), st.integers(1, 40))
def test_any_drawn_centres_are_half_of_the_bits_apart_on_average(seed, n_centres, n_bits):
    """CSQ's definition of hash centres, for every draw."""
    centres = centre_sets.bernoulli_centres(n_centres, n_bits, np.random.default_rng(seed)).astype(int)
    distances = (n_bits - centres @ centres.T) / 2
    assert distances[~np.eye(n_centres, dtype=bool)].mean() >= n_bits / 2 - 1e-9


@quick
@given(SEEDS, st.integers(2, 30), st.integers(1, 20))
def test_nearest_is_the_smallest_distance_of_two(seed, n_centres, n_bits):
    centres = np.random.default_rng(seed).choice([-1, 1], (n_centres, n_bits))
    slow = min((centres[i] != centres[j]).sum() for i in range(n_centres) for j in range(i))
    assert centre_sets.nearest(centres) == slow


def test_several_draws_keep_the_one_with_the_farthest_nearest_centres():
    kept = [centre_sets.nearest(centre_sets.bernoulli_centres(20, 32, np.random.default_rng(s))) for s in range(10)]
    single = [centre_sets.nearest(centre_sets._balanced(20, 32, np.random.default_rng(s))) for s in range(10)]
    assert min(kept) >= max(single) - 1
    assert np.mean(kept) > np.mean(single) + 1


def test_auto_takes_hadamard_centres_where_they_hold_all_classes():
    rng = np.random.default_rng(0)
    assert centre_sets.nearest(centre_sets.make_centres("auto", 64, 32, rng)) == 16
    assert centre_sets.nearest(centre_sets.make_centres("auto", 65, 32, rng)) < 16


def test_centres_that_do_not_exist_are_refused_in_words():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="5 Hadamard centres of 30 bits"):
        centre_sets.make_centres("hadamard", 5, 30, rng)
    with pytest.raises(ValueError, match="'auto', 'hadamard', 'bernoulli'; found 'paley'"):
        centre_sets.make_centres("paley", 5, 32, rng)


@quick
@given(SEEDS)
def test_the_centre_of_a_label_set_is_the_majority_of_its_labels(seed):
    rng = np.random.default_rng(seed)
    _, labels, _ = problem(seed)
    centres, ties = (torch.from_numpy(rng.choice([-1.0, 1.0], size).astype(np.float32)) for size in ((5, 8), 8))
    found = centre_sets.majority(labels, centres, ties)
    for i, row in enumerate(labels):
        for k in range(8):
            votes = sum(float(centres[c, k]) for c in range(5) if row[c])
            assert found[i, k] == (ties[k] if votes == 0 else math.copysign(1, votes))


# DPN


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([0.5, 1.0, 2.0]))
def test_polarisation_is_a_hinge_for_every_label_and_bit(seed, margin):
    scores, labels, rows = problem(seed)
    centres = np.random.default_rng(seed).choice([-1, 1], (5, 8)).astype(np.float32)

    def plain(u):
        terms = [
            max(0.0, margin - float(u[i, k]) * float(centres[c, k]))
            for i in range(len(u))
            for c in range(5)
            for k in range(8)
            if labels[i, c]
        ]
        return sum(terms) / len(u)

    loss = dpn._PolarisationLoss(centres, margin, adapt=False)
    away = torch.minimum((scores.detach() - margin).abs(), (scores.detach() + margin).abs()).min() > 2e-3
    assert_same_loss(loss, plain, scores, labels, rows, differences=bool(away))  # a hinge has no gradient at its corner


@quick
@given(SEEDS, st.floats(0.1, 5))
def test_polarisation_over_the_margin_bounds_the_wrong_bits(seed, margin):
    """The paper's bound: no more wrong bits than L / m, and two of a class differ in no more than both together."""
    scores, labels, _ = problem(seed, sets=False)
    centres = torch.from_numpy(np.random.default_rng(seed).choice([-1, 1], (5, 8)).astype(np.float32))
    bound = dpn.polarisation(scores, labels, centres, margin).detach() / margin
    codes = torch.where(scores >= 0, 1, -1)
    wrong = (codes != labels @ centres).sum(dim=1)
    assert (wrong <= bound + 1e-4).all()
    for i in range(7):
        for j in range(7):
            if (labels[i] == labels[j]).all():
                assert (codes[i] != codes[j]).sum() <= bound[i] + bound[j] + 1e-4


def test_adapted_targets_are_the_majority_of_their_samples_once_an_epoch():
    centres = np.ones((2, 3), dtype=np.float32)
    loss = dpn._PolarisationLoss(centres, 1.0, adapt=True)
    rows, first, second = torch.arange(2), torch.tensor([[1.0, 0.0]] * 2), torch.tensor([[0.0, 1.0]] * 2)
    loss(torch.tensor([[-1.0, 2.0, -3.0], [-1.0, 1.0, 3.0]]), first, rows)
    assert (loss.centres == 1).all()  # the epoch is not over
    loss(torch.tensor([[1.0, -2.0, -3.0], [1.0, -1.0, -3.0]]), second, rows)
    loss.after_epoch()
    assert loss.centres.tolist() == [[-1, 1, 1], [1, -1, -1]]  # where votes are equal the target stays
    assert not loss.votes.any()
    loss.after_epoch()
    assert loss.centres.tolist() == [[-1, 1, 1], [1, -1, -1]]  # nobody voted


# CSQ


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.5]))
def test_central_similarity_is_cross_entropy_of_every_bit_with_the_centre(seed, weight):
    scores, labels, rows = problem(seed)
    rng = np.random.default_rng(seed)
    centres, ties = (rng.choice([-1, 1], size).astype(np.float32) for size in ((5, 8), 8))
    targets = centre_sets.majority(labels, torch.from_numpy(centres), torch.from_numpy(ties))

    def plain(u):
        total = 0.0
        for i in range(len(u)):
            for k in range(8):
                h, c = 0.5 * (math.tanh(u[i, k]) + 1), 0.5 * (float(targets[i, k]) + 1)
                total -= c * math.log(h) + (1 - c) * math.log(1 - h)
                total += weight * math.log(math.cosh(abs(2 * h - 1) - 1))
        return total / u.numel()

    assert_same_loss(csq._CentralSimilarityLoss(centres, ties, weight), plain, scores, labels, rows)


def test_samples_without_labels_have_no_centre():
    scores, labels, rows = problem(0)
    loss = csq._CentralSimilarityLoss(np.ones((5, 8), np.float32), np.ones(8, np.float32), 0.1)
    labelled = number(loss(scores[:5], labels[:5], rows[:5]))
    labels[5:] = 0
    value = loss(scores, labels, rows)
    assert number(value) == pytest.approx(labelled, rel=1e-5)
    value.backward()
    assert not scores.grad[5:].any()
    assert scores.grad[:5].any()


def test_a_sure_score_does_not_overflow():
    loss = csq._CentralSimilarityLoss(np.ones((1, 2), np.float32), np.ones(2, np.float32), 1e-4)
    value = loss(torch.tensor([[1e4, -1e4]]), torch.ones(1, 1), torch.arange(1))
    assert number(value) == pytest.approx(1e4, rel=1e-3)


# OrthoHash


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_orthohash_is_softmax_over_cosines_with_a_margin(seed):
    scores, labels, rows = problem(seed)
    centres = np.random.default_rng(seed).choice([-1, 1], (5, 8)).astype(np.float32)
    codes = torch.from_numpy(centres).double()

    def plain(u):
        v = (u - u.mean(dim=0)) / torch.sqrt(u.var(dim=0, unbiased=False) + 1e-5)
        total = 0.0
        for i in range(len(u)):
            logits = [8.0 * (cosine(v[i], codes[c]) - 0.2 * float(labels[i, c])) for c in range(5)]
            partition = math.log(sum(map(math.exp, logits)))
            mine = [c for c in range(5) if labels[i, c]]
            total -= sum(logits[c] - partition for c in mine) / len(mine)
        return total / len(u)

    assert_same_loss(orthohash._OrthogonalLoss(centres, 8.0, 0.2), plain, scores, labels, rows)


@quick
@given(SEEDS, st.floats(0.1, 10))
def test_orthohash_does_not_see_the_size_of_normalised_scores(seed, factor):
    scores, labels, _ = problem(seed)
    centres = torch.from_numpy(np.random.default_rng(seed).choice([-1, 1], (5, 8)).astype(np.float32))
    once = cosine_cross_entropy(scores, labels, centres, 8.0, 0.2)
    torch.testing.assert_close(cosine_cross_entropy(factor * scores, labels, centres, 8.0, 0.2), once)


@pytest.mark.parametrize("function", [Linear(epochs=3), Kernel(n_anchors=20, linear=Linear(epochs=3))])
def test_the_normalisation_is_part_of_the_scores(function, monkeypatch):
    X, y = make_blobs(90, n_features=6, centers=3, random_state=0)
    kept = {}
    monkeypatch.setattr(type(function), "rescale", lambda self, *affine: kept.setdefault("affine", affine))
    before = hbmp.get_method("orthohash")(8, function=function, random_state=0).fit(X, y).project(X)
    monkeypatch.undo()
    model = hbmp.get_method("orthohash")(8, function=function, random_state=0).fit(X, y)
    factor, shift = kept["affine"]
    np.testing.assert_allclose(model.project(X), factor * before + shift, rtol=1e-3, atol=1e-3)
    assert np.abs(shift).max() > 0.05  # there was something to fold


def test_orthohash_takes_a_last_batch_of_one():
    X, y = make_blobs(33, n_features=4, centers=2, random_state=0)
    model = hbmp.get_method("orthohash")(4, function=Linear(epochs=2, batch_size=8), random_state=0)
    assert np.isfinite(model.fit(X, y).project(X)).all()
