"""What DCH and ADSH promise: Cauchy pairs against a plain loop, and free codes that never raise the loss."""

import math

import numpy as np
import pytest
import torch
from deep_batch import SEEDS, assert_same_loss, cosine, number, problem, quick
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples

import hbmp
from hbmp.functions import Linear, Network
from hbmp.methods import adsh, dch

# DCH


@settings(max_examples=6, deadline=None)
@given(SEEDS, st.sampled_from([5.0, 20.0]))
def test_dch_is_a_weighted_cauchy_likelihood(seed, gamma):
    scores, labels, rows = problem(seed)
    loss = dch._CauchyLoss(gamma, 0.3)

    def plain(u):
        z = torch.tanh(u)
        sums, counts = {True: 0.0, False: 0.0}, {True: 0, False: 0}
        for i in range(7):
            for j in range(7):
                if i == j:
                    continue
                alike = bool((labels[i] * labels[j]).any())
                distance = 4 * (1 - cosine(z[i], z[j]))
                chance = gamma / (gamma + distance)
                sums[alike] -= math.log(chance if alike else 1 - chance)
                counts[alike] += 1
        total = sum(sums[kind] / max(1, counts[kind]) for kind in sums)
        ones = torch.ones(8, dtype=torch.float64)
        own = [math.log1p(4 * (1 - cosine(row.abs(), ones)) / gamma) for row in z]
        return total + 0.3 * sum(own) / 7

    assert_same_loss(loss, plain, scores, labels, rows)


@quick
@given(st.floats(0.5, 40), st.floats(2, 60))
def test_the_loss_rises_with_the_distance_of_similar_and_falls_for_dissimilar_samples(gamma, distance):
    near, far = torch.tensor([distance]), torch.tensor([distance + 1])
    alike, unlike = torch.tensor([True]), torch.tensor([False])
    assert dch.cauchy_pairs(near, alike, gamma) < dch.cauchy_pairs(far, alike, gamma)
    assert dch.cauchy_pairs(near, unlike, gamma) > dch.cauchy_pairs(far, unlike, gamma)


def test_equal_scores_of_dissimilar_samples_have_a_finite_gradient():
    scores = torch.ones(2, 8, requires_grad=True)
    loss = dch._CauchyLoss(20.0, 0.1)(scores, torch.eye(2), torch.arange(2))
    loss.backward()
    assert torch.isfinite(scores.grad).all()
    assert math.isfinite(number(loss))


def test_a_gamma_that_is_not_positive_is_refused():
    X, y = labelled_samples("classes")
    with pytest.raises(ValueError, match="gamma must be a number above 0, found 0"):
        dch.DCH(8, gamma=0).fit(X, y)


# ADSH


def full_similarity(labels):
    alike = labels @ labels.T > 0
    return np.where(alike, 1.0, -alike.sum() / (~alike).sum())


@settings(max_examples=6, deadline=None)
@given(SEEDS)
def test_adsh_compares_the_batch_with_every_free_code(seed):
    rng = np.random.default_rng(seed)
    scores, labels, rows = problem(seed)
    everything = np.concatenate([labels.numpy(), (rng.random((5, 5)) < 0.4).astype(np.float32)])
    codes = rng.choice([-1.0, 1.0], (12, 8)).astype(np.float32)
    similarity = full_similarity(everything)
    loss = adsh._AsymmetricLoss(everything, codes, 3.0)

    def plain(scores):
        u = torch.tanh(scores)
        total = 0.0
        for i in range(7):
            for j in range(12):
                total += (float(u[i] @ torch.from_numpy(codes[j]).double()) - 8 * similarity[i, j]) ** 2
            total += 3.0 * float((torch.from_numpy(codes[i]) - u[i]).square().sum())
        return total / 7 / (12 * 8)

    assert_same_loss(loss, plain, scores, labels, rows)


@quick
@given(SEEDS, st.sampled_from([0.0, 3.0, 200.0]))
def test_solving_the_codes_never_raises_the_loss_and_no_single_column_entry_would_lower_it(seed, gamma):
    rng = np.random.default_rng(seed)
    labels = (rng.random((20, 5)) < 0.4).astype(np.float32)
    similarity = full_similarity(labels)
    relaxed = torch.from_numpy(np.tanh(rng.standard_normal((20, 6))).astype(np.float32))
    codes = torch.from_numpy(rng.choice([-1.0, 1.0], (20, 6)).astype(np.float32))

    def value(v):
        pairs = relaxed.double().numpy() @ v.double().numpy().T - 6 * similarity
        return (pairs**2).sum() + gamma * ((v - relaxed).double() ** 2).sum().item()

    products = torch.from_numpy((similarity @ relaxed.double().numpy()).astype(np.float32))
    solved = adsh.solve_codes(codes, relaxed, products, gamma)
    assert value(solved) <= value(codes) + 1e-3
    last = value(solved)
    for i in range(20):  # the last column was solved with the others as they are now
        other = solved.clone()
        other[i, -1] *= -1
        assert value(other) >= last - 1e-3


def test_the_step_between_epochs_solves_the_whole_similarity():
    rng = np.random.default_rng(1)
    labels = (rng.random((20, 5)) < 0.4).astype(np.float32)
    codes = rng.choice([-1.0, 1.0], (20, 6)).astype(np.float32)
    loss = adsh._AsymmetricLoss(labels, codes, 2.0)
    scores = torch.from_numpy(rng.standard_normal((20, 6)).astype(np.float32))
    loss(scores, torch.from_numpy(labels), torch.arange(20))
    loss.after_epoch()
    relaxed = torch.tanh(scores)
    products = torch.from_numpy((full_similarity(labels) @ relaxed.numpy()).astype(np.float32))
    expected = adsh.solve_codes(torch.from_numpy(codes), relaxed, products, 2.0)
    torch.testing.assert_close(loss.codes, expected)


def test_free_codes_are_kept_and_the_function_learns_them():
    X, y = labelled_samples("classes")
    model = adsh.ADSH(16, function=Linear(epochs=60), random_state=0).fit(X, y)
    assert model.codes_.dtype == np.int8
    assert (model.transform(X) == model.codes_).mean() > 0.97


@pytest.mark.parametrize("kind", ["classes", "label sets"])
@pytest.mark.parametrize("name", ["adsh", "dch"])
def test_new_samples_find_those_they_share_a_label_with(name, kind):
    X, y = labelled_samples(kind)
    model = hbmp.get_method(name)(16, function=Linear(epochs=60), random_state=0).fit(X[:200], y[:200])
    codes = model.transform(X)
    found = hbmp.metrics.mean_average_precision(codes[200:], codes[:200], y[200:], y[:200])
    assert found > (0.95 if kind == "classes" else 0.85)


@pytest.mark.parametrize("name", ["adsh", "dch"])
def test_networks_on_images_take_them(name):
    images = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    model = hbmp.get_method(name)(8, function=Network(**Network.smoke), random_state=0).fit(images, np.arange(12) % 3)
    assert model.transform(images).shape == (12, 8)
