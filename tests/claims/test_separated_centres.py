"""What MDSH and SHC promise: a least distance of all centres, and near codes for classes that a classifier confuses."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from deep_batch import SEEDS, assert_same_loss, cosine, problem, quick
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

import hbmp
from hbmp.functions import Linear, Network
from hbmp.methods import mdsh, shc
from hbmp.methods._shared import separated
from hbmp.methods._shared.centre_softmax import CentreSoftmaxLoss
from hbmp.methods._shared.centres import bernoulli_centres, nearest


@quick
@given(st.integers(2, 300), st.integers(2, 128))
def test_the_bound_is_the_largest_distance_whose_balls_leave_room(n_codes, n_bits):
    distance = separated.gilbert_varshamov(n_codes, n_bits)

    def leaves_room(d):
        return n_codes * sum(math.comb(n_bits, i) for i in range(d)) <= 2**n_bits

    assert distance == 1 or leaves_room(distance)
    assert distance == n_bits or not leaves_room(distance + 1)


def test_greedy_words_reach_the_bound():
    """The proof of the bound, carried out: words are taken while one is left that is far from all."""
    for n_codes, n_bits in ((4, 6), (10, 8), (20, 10)):
        distance = separated.gilbert_varshamov(n_codes, n_bits)
        words: list[int] = []
        for word in range(2**n_bits):
            if all((word ^ other).bit_count() >= distance for other in words):
                words.append(word)
        assert len(words) >= n_codes


@settings(max_examples=12, deadline=None)
@given(SEEDS, st.sampled_from([(10, 16), (10, 12), (52, 16), (100, 32), (40, 64)]))
def test_separated_centres_keep_the_promised_distance(seed, size):
    rng = np.random.default_rng(seed)
    wanted = separated.gilbert_varshamov(*size)
    found = separated.separated_centres(bernoulli_centres(*size, rng), mdsh.sum_of_products, wanted, rng)
    assert set(np.unique(found)) == {-1, 1}
    assert nearest(found) >= wanted


def test_no_single_flip_of_a_centre_raises_the_sum_of_distances_within_the_limit():
    rng = np.random.default_rng(3)
    wanted = separated.gilbert_varshamov(20, 16)
    found = separated.separated_centres(bernoulli_centres(20, 16, rng), mdsh.sum_of_products, wanted, rng).astype(int)
    total = np.square(found.sum(axis=0)).sum()
    for i in range(20):
        for k in range(16):
            other = found.copy()
            other[i, k] *= -1
            assert np.square(other.sum(axis=0)).sum() >= total or nearest(other) < wanted


def test_more_classes_than_words_lower_the_distance_to_nothing():
    rng = np.random.default_rng(0)
    assert separated.gilbert_varshamov(5, 2) == 1
    found = separated.separated_centres(bernoulli_centres(5, 2, rng), mdsh.sum_of_products, 1, rng)
    assert found.shape == (5, 2)


def test_semantic_centres_follow_the_similarity_and_keep_the_distance():
    """Four groups of five alike classes: alike classes get nearer codes, none nearer than the bound."""
    group = np.arange(20) // 5
    similarity = np.where(group[:, None] == group, 0.6, -0.2)
    centres = shc.semantic_centres(similarity, 32, np.random.default_rng(0)).astype(int)
    assert nearest(centres) >= separated.gilbert_varshamov(20, 32)
    products = centres @ centres.T / 32
    pairs = ~np.eye(20, dtype=bool)
    assert np.corrcoef(products[pairs], similarity[pairs])[0, 1] > 0.9
    plain = bernoulli_centres(20, 32, np.random.default_rng(0)).astype(int)
    misfit = [np.square((codes @ codes.T / 32 - similarity)[pairs]).sum() for codes in (centres, plain)]
    assert misfit[0] < 0.6 * misfit[1]


@quick
@given(SEEDS)
def test_similarity_is_the_cosine_of_centred_mean_logits(seed):
    rng = np.random.default_rng(seed)
    logits, classes = rng.standard_normal((30, 4)), np.arange(30) % 4
    found = shc.class_similarity(logits, np.eye(4)[classes])
    means = [logits[classes == c].mean(axis=0) for c in range(4)]
    for i, j in combinations(range(4), 2):
        a, b = means[i] - means[i].mean(), means[j] - means[j].mean()
        assert found[i, j] == pytest.approx(a @ b / math.sqrt(a @ a * (b @ b)))
    np.testing.assert_allclose(np.diag(found), 1)


@settings(max_examples=6, deadline=None)
@given(SEEDS)
def test_the_loss_is_yes_or_no_for_every_centre_plus_pairs_plus_quantisation(seed):
    scores, labels, rows = problem(seed, sets=False)
    centres = np.random.default_rng(seed).choice([-1.0, 1.0], (5, 8)).astype(np.float32)
    loss = CentreSoftmaxLoss(centres, labels.numpy(), 0.7, 0.3, 0)

    def plain(u):
        total = 0.0
        for i in range(7):
            powers = [math.exp(math.sqrt(8) * cosine(u[i], torch.from_numpy(c).double())) for c in centres]
            for c in range(5):
                chance = powers[c] / sum(powers)
                total -= math.log(chance if labels[i, c] else 1 - chance) / 7
        pairs = [(i, j) for i in range(7) for j in range(7) if i != j and labels[i] @ labels[j] > 0]
        # the other side of a pair is remembered and has no gradient
        alike = [math.log1p(math.exp((1 - cosine(u[i], scores.detach()[j].double())) / 2)) for i, j in pairs]
        spread = float(((u.abs() - 1) ** 2).mean())
        return total + 0.7 * sum(alike) / max(1, len(alike)) + 0.3 * spread

    assert_same_loss(loss, plain, scores, labels, rows)


@pytest.mark.parametrize("name", ["mdsh", "shc"])
def test_codes_go_to_the_centres_and_the_distance_is_told(name):
    X, y = make_blobs(200, n_features=16, centers=5, random_state=1)
    model = hbmp.get_method(name)(16, function=Linear(epochs=60), random_state=0).fit(X, y)
    assert model.centres_.shape == (5, 16)
    assert model.least_distance_ == nearest(model.centres_) >= separated.gilbert_varshamov(5, 16)
    assert (model.transform(X) == model.centres_[y]).mean() > 0.9


def test_classes_that_overlap_get_nearer_codes():
    """Classes 0 and 1 overlap, 2 and 3 overlap: the classifier says so, and the centres follow."""
    rng = np.random.default_rng(0)
    places = np.array([[0, 0], [1.5, 0], [9, 9], [10.5, 9], [0, 15], [15, 0]], dtype=np.float32)
    y = np.arange(600) % 6
    X = (places[y] + rng.standard_normal((600, 2))).astype(np.float32)
    model = shc.SHC(32, function="linear", random_state=0).fit(X, y)
    alike = model.similarity_
    assert min(alike[0, 1], alike[2, 3]) > max(alike[0, 2], alike[1, 3], alike[4, 5])
    distances = (32 - model.centres_.astype(int) @ model.centres_.T) / 2
    assert max(distances[0, 1], distances[2, 3]) < min(distances[0, 2], distances[1, 3], distances[4, 5])


@pytest.mark.parametrize("name", ["mdsh", "shc"])
def test_networks_on_images_take_them(name):
    images = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    model = hbmp.get_method(name)(8, function=Network(**Network.smoke), random_state=0).fit(images, np.arange(12) % 3)
    assert model.transform(images).shape == (12, 8)
