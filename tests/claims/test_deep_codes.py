"""What GreedyHash, HyP² and Bi-half promise, and what they have in common with the methods of centres."""

import math

import numpy as np
import pytest
import torch
from deep_batch import SEEDS, assert_same_loss, cosine, gradient_by_differences, number, problem, quick
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

import hbmp
from hbmp.functions import Kernel, Linear, Network
from hbmp.methods import bihalf, greedyhash, hyp2
from hbmp.methods._shared.straight_through import straight_through

NAMES = ["dpn", "csq", "orthohash", "greedyhash", "hyp2", "bihalf"]
SUPERVISED = NAMES[:-1]

# GreedyHash


def test_straight_through_is_the_sign_forward_and_nothing_backward():
    scores = torch.tensor([[-2.0, 0.0, 3.0]], requires_grad=True)
    codes = straight_through(scores)
    assert codes.tolist() == [[-1, 1, 1]]  # sign(0) is +1
    (codes * torch.tensor([5.0, 7.0, -1.0])).sum().backward()
    assert scores.grad.tolist() == [[5, 7, -1]]


@quick
@given(SEEDS, st.booleans())
def test_greedyhash_classifies_signs_and_keeps_scores_near_them(seed, sets):
    scores, labels, rows = problem(seed, sets=sets)
    with torch.random.fork_rng():
        torch.manual_seed(seed % 2**31)
        loss = greedyhash._GreedyLoss(8, 5, 0.1, 0.3)
    weights, bias = loss.classifier.weight.detach(), loss.classifier.bias.detach()
    total = 0.0
    for i in range(7):
        codes = [1.0 if score >= 0 else -1.0 for score in scores[i]]
        logits = [
            sum(w * b for w, b in zip(weights[c].tolist(), codes, strict=True)) + float(bias[c]) for c in range(5)
        ]
        mine = [c for c in range(5) if labels[i, c]]
        total += math.log(sum(map(math.exp, logits))) - sum(logits[c] for c in mine) / len(mine)
    total /= 7
    total += 0.1 * sum(abs(abs(score) - 1) ** 3 for score in scores.detach().reshape(-1).tolist()) / scores.numel()
    total += 0.5 * 0.3 * float((weights**2).sum())
    assert number(loss(scores, labels, rows)) == pytest.approx(total, rel=1e-4)


def test_greedyhash_hands_the_gradient_of_the_codes_to_the_scores():
    scores, labels, rows = problem(1, sets=False)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        loss = greedyhash._GreedyLoss(8, 5, 0.0, 0.0)
    loss(scores, labels, rows).backward()
    codes = torch.where(scores.detach() >= 0, 1.0, -1.0)
    chances = torch.softmax(codes @ loss.classifier.weight.T + loss.classifier.bias, dim=1)
    torch.testing.assert_close(scores.grad, (chances - labels) @ loss.classifier.weight.detach() / 7)


def test_greedyhash_leaves_samples_without_labels_to_the_penalty():
    scores, labels, rows = problem(2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        loss = greedyhash._GreedyLoss(8, 5, 0.0, 0.0)
    labelled = number(loss(scores[:5], labels[:5], rows[:5]))
    labels[5:] = 0
    value = loss(scores, labels, rows)
    value.backward()
    assert number(value) == pytest.approx(labelled, rel=1e-5)
    assert not scores.grad[5:].any()


@quick
@given(SEEDS)
def test_the_cubic_penalty_leaves_codes_alone(seed):
    scores, _, _ = problem(seed)
    codes = torch.where(scores.detach() >= 0, 1.0, -1.0)
    assert number(greedyhash.cubic_penalty(codes)) == 0
    assert number(greedyhash.cubic_penalty(scores)) > 0


# HyP²


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3]))
def test_hyp2_is_proxies_and_irrelevant_pairs(seed, threshold):
    scores, labels, rows = problem(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed % 2**31)
        loss = hyp2._HybridLoss(8, 5, threshold, 0.5)
    proxies = loss.proxies.detach().double()

    def plain(u):
        near = [1 - cosine(u[i], proxies[c]) for i in range(7) for c in range(5) if labels[i, c]]
        far = [max(0, cosine(u[i], proxies[c]) - threshold) for i in range(7) for c in range(5) if not labels[i, c]]
        pairs = [
            max(0, cosine(u[i], u[j]) - threshold)
            for i in range(7)
            for j in range(7)
            if labels[i].sum() > 1 and labels[j].sum() > 1 and not (labels[i] * labels[j]).any()
        ]
        return sum(near) / len(near) + sum(far) / len(far) + 0.5 * sum(pairs) / max(1, len(pairs))

    assert_same_loss(loss, plain, scores, labels, rows, differences=False)
    loss(scores, labels, rows).backward()
    slow = gradient_by_differences(plain, scores, step=1e-5)
    assert (torch.isclose(scores.grad, slow, rtol=2e-2, atol=2e-3)).float().mean() > 0.9  # corners of hinges aside


@pytest.mark.parametrize(
    ("n_codes", "n_bits", "distance"),
    [(32, 16, 8), (16, 15, 8), (16, 7, 3), (32, 32, 16), (64, 32, 16), (128, 64, 32), (20, 24, 12), (4096, 24, 8)],
)
def test_the_distance_that_all_labels_can_keep_is_that_of_the_best_linear_code(n_codes, n_bits, distance):
    """Simplex, Hamming, Reed–Muller and Golay codes meet the bound (the last but for one)."""
    assert hyp2.farthest_distance(n_codes, n_bits) - distance in (0, 1)
    assert hyp2.farthest_distance(n_codes, n_bits) == distance or n_codes == 4096


@quick
@given(SEEDS, st.integers(2, 5), st.integers(4, 12))
def test_no_linear_code_keeps_more_than_the_threshold_asks(seed, dimension, n_bits):
    generator = np.random.default_rng(seed).integers(0, 2, (dimension, n_bits))
    words = [np.array(bits) @ generator % 2 for bits in np.ndindex(*(2,) * dimension) if any(bits)]
    assert min(word.sum() for word in words) <= hyp2.farthest_distance(2**dimension, n_bits)


# Bi-half


@quick
@given(SEEDS, st.integers(1, 12), st.integers(1, 5))
def test_half_of_every_column_is_positive_and_it_is_the_larger_half(seed, n, n_bits):
    scores = torch.from_numpy(np.random.default_rng(seed).integers(-2, 3, (n, n_bits)).astype(np.float32))
    codes = bihalf.half_half(scores)
    assert ((codes > 0).sum(dim=0) == (n + 1) // 2).all()
    for k in range(n_bits):
        if n > 1:
            assert scores[codes[:, k] > 0, k].min() >= scores[codes[:, k] < 0, k].max()


@quick
@given(SEEDS)
def test_sorting_is_the_cheapest_transport_to_half_half_codes(seed):
    """No other code with as many +1 in every column is nearer to the scores."""
    rng = np.random.default_rng(seed)
    scores = torch.from_numpy(rng.normal(size=(8, 3)).astype(np.float32))
    best = (scores - bihalf.half_half(scores)).square().sum()
    for _ in range(20):
        other = torch.from_numpy(rng.permuted(np.repeat([[1.0], [-1.0]], [4, 4], axis=0).repeat(3, 1), axis=0))
        assert best <= (scores - other).square().sum() + 1e-4


@quick
@given(SEEDS)
def test_bihalf_adds_its_pull_to_the_gradient_of_the_codes(seed):
    scores, _, _ = problem(seed)
    codes = bihalf.half_half(scores.detach())
    wanted = torch.from_numpy(np.random.default_rng(seed).normal(size=(7, 8)).astype(np.float32))
    (bihalf._BiHalf.apply(scores, 6.0) * wanted).sum().backward()
    torch.testing.assert_close(scores.grad, wanted + 6.0 * (scores.detach() - codes) / 56)


@quick
@given(SEEDS)
def test_bihalf_keeps_the_cosines_of_different_samples(seed):
    scores, _, _ = problem(seed)
    features = torch.from_numpy(np.random.default_rng(seed).normal(size=(7, 4)).astype(np.float32))
    codes = bihalf.half_half(scores.detach())
    pairs = [
        (float(codes[i] @ codes[j]) / 8 - cosine(features[i], features[j])) ** 2
        for i in range(7)
        for j in range(7)
        if i != j
    ]
    assert number(bihalf._BiHalfLoss(6.0)(scores, features)) == pytest.approx(sum(pairs) / len(pairs), rel=1e-4)


def test_bihalf_does_not_see_labels_and_its_bits_are_balanced():
    X, y = make_blobs(200, n_features=8, centers=4, random_state=0)
    function = Kernel(n_anchors=50, linear=Linear(epochs=30))
    model = hbmp.get_method("bihalf")(8, function=function, random_state=0).fit(X, y)
    again = hbmp.get_method("bihalf")(8, function=function, random_state=0).fit(X)
    np.testing.assert_array_equal(model.project(X), again.project(X))
    assert np.abs(model.transform(X).mean(axis=0)).max() < 0.1


def test_bihalf_centres_the_features():
    X = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32) + 100
    (features,) = hbmp.get_method("bihalf")().loss_inputs(X, None)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(features - features[0], X - X[0], atol=1e-3)


# All of them


@pytest.mark.parametrize("name", NAMES)
def test_codes_of_a_class_come_together(name):
    X, y = make_blobs(300, n_features=16, centers=5, cluster_std=3.0, random_state=1)
    function = Kernel(n_anchors=100, linear=Linear(epochs=40))
    model = hbmp.get_method(name)(16, function=function, random_state=0).fit(X[:200], y[:200])
    codes = model.transform(X[200:]).astype(int)
    distances, same = (16 - codes @ codes.T) / 2, y[200:, None] == y[200:]
    assert distances[same].mean() < 0.5 * distances[~same].mean()


@pytest.mark.parametrize("name", SUPERVISED)
def test_label_sets_that_share_more_get_nearer_codes(name):
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(4, 12))
    labels = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])[rng.integers(0, 3, 300)]
    X = labels @ directions + 0.1 * rng.normal(size=(300, 12))
    codes = (
        hbmp.get_method(name)(24, function=Linear(epochs=40), random_state=0).fit(X, labels).transform(X).astype(int)
    )
    distances, shared = (24 - codes @ codes.T) / 2, labels @ labels.T
    assert distances[shared == 2].mean() < distances[shared == 1].mean() < distances[shared == 0].mean()


@pytest.mark.parametrize("name", SUPERVISED)
def test_a_loss_does_not_depend_on_the_size_of_the_batch(name):
    """A batch twice over has the same loss: sums would double."""
    scores, labels, rows = problem(3)
    method = hbmp.get_method(name)(8)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        loss = method.make_loss(labels.numpy(), 0)
    once = loss(scores, labels, rows)
    twice = loss(torch.cat([scores, scores]), torch.cat([labels, labels]), torch.cat([rows, rows + 7]))
    assert number(twice) == pytest.approx(number(once), rel=1e-4)


@pytest.mark.parametrize("name", ["dpn", "csq", "orthohash"])
def test_centres_are_kept_and_are_where_the_codes_go(name):
    X, y = make_blobs(200, n_features=16, centers=5, random_state=1)
    model = hbmp.get_method(name)(16, function=Linear(epochs=100), random_state=0).fit(X, y)
    assert model.centres_.shape == (5, 16)
    assert (model.transform(X) == model.centres_[y]).mean() > (0.9 if name == "orthohash" else 0.98)


@pytest.mark.parametrize("name", NAMES)
def test_networks_on_images_take_the_same_losses(name, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    model = hbmp.get_method(name)(8, function=Network(**Network.smoke), random_state=0).fit(images, np.arange(12) % 3)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(hbmp.load(tmp_path / "model").project(images), model.project(images), atol=1e-5)
