"""What CIBHash, CroVCA, OH and NHL promise: views that agree, codes that do not collapse, prefixes that are codes."""

import math

import numpy as np
import pytest
import torch
from deep_batch import SEEDS, cosine, number, problem, quick
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples

import hbmp
from hbmp._training.loop import ArrayBatches, Recipe, seeded, train
from hbmp.functions import Linear, Network
from hbmp.methods import cibhash, crovca, nhl, oh
from hbmp.methods._shared.views import two_views

# Views


def test_views_of_features_leave_numbers_out_and_keep_the_mean():
    with seeded(0):
        views = two_views(torch.ones(50, 400), 0.25)
    assert views.shape == (2, 50, 400)
    torch.testing.assert_close(views.unique(), torch.tensor([0.0, 4 / 3]))
    assert float((views == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert not torch.equal(views[0], views[1])


def test_views_of_images_differ_and_stay_images():
    with seeded(0):
        images = torch.rand(4, 3, 16, 16)
        views = two_views(images, 0.5)
    assert views.shape == (2, 4, 3, 16, 16)
    assert torch.isfinite(views).all()
    assert not torch.allclose(views[0], views[1], atol=0.05)


class SquaredDifference(torch.nn.Module):
    """A loss that takes views: of the scores of an input and of its negative."""

    def views(self, inputs):
        return torch.stack([inputs, -inputs])

    def forward(self, scores, targets):
        assert scores.shape == (*targets.shape[:1], 2, 3)
        torch.testing.assert_close(scores[:, 0], -scores[:, 1])  # the module has no bias
        return (scores[:, 0] - targets).square().mean()


def test_a_loss_with_views_gets_the_scores_of_each_version_in_the_order_of_the_inputs():
    rng = np.random.default_rng(0)
    inputs, targets = (torch.from_numpy(rng.standard_normal((32, k)).astype(np.float32)) for k in (5, 3))
    recipe = Recipe(epochs=2, batch_size=8, lr=0.05)
    modules = []
    for loss in (SquaredDifference(), lambda scores, wanted: (scores - wanted).square().mean()):
        with seeded(1):
            module = torch.nn.Linear(5, 3, bias=False)
        train(module, ArrayBatches(inputs, targets, batch_size=8), loss, recipe, seed=0)
        modules.append(module)
    torch.testing.assert_close(modules[0].weight, modules[1].weight)


# CIBHash


@quick
@given(SEEDS, st.sampled_from([0.1, 0.3]))
def test_the_contrast_is_a_softmax_over_all_other_codes(seed, temperature):
    rng = np.random.default_rng(seed)
    first, second = (torch.from_numpy(rng.choice([-1.0, 1.0], (5, 8)).astype(np.float32)) for _ in range(2))
    found = cibhash.contrast(first, second, temperature)
    codes = [*first, *second]
    for i in range(10):
        powers = {j: math.exp(cosine(codes[i], codes[j]) / temperature) for j in range(10) if j != i}
        assert float(found[i]) == pytest.approx(-math.log(powers[(i + 5) % 10] / sum(powers.values())), rel=1e-4)


@quick
@given(SEEDS)
def test_the_divergence_is_the_mean_of_both_directions(seed):
    rng = np.random.default_rng(seed)
    logits = [torch.from_numpy(rng.standard_normal((3, 4))) for _ in range(2)]
    found = cibhash.divergence(*logits)
    assert (found >= 0).all()
    for i in range(3):
        total = 0.0
        for a, b in zip(*(torch.sigmoid(view[i]).tolist() for view in logits), strict=True):
            for p, q in ((a, b), (b, a)):
                total += 0.5 * (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))
        assert float(found[i]) == pytest.approx(total)


# CroVCA


@quick
@given(SEEDS)
def test_each_view_must_give_the_bits_of_the_other(seed):
    rng = np.random.default_rng(seed)
    first, second = (torch.from_numpy(rng.standard_normal((4, 6))) for _ in range(2))
    found = crovca.alignment(first, second)
    for i in range(4):
        total = 0.0
        for logits, other in ((first, second), (second, first)):
            for logit, bit in zip(logits[i].tolist(), other[i].tolist(), strict=True):
                chance = 1 / (1 + math.exp(-logit))
                total -= math.log(chance if bit > 0 else 1 - chance) / 12
        assert float(found[i]) == pytest.approx(total)


def test_the_rate_is_least_for_one_code_and_largest_for_uncorrelated_bits():
    one = torch.ones(64, 8)
    halves = torch.cat([torch.ones(32, 8), -torch.ones(32, 8)])
    spread = torch.tensor(np.array(np.meshgrid(*[[-1.0, 1.0]] * 8)).reshape(8, -1).T, dtype=torch.float32)
    rates = [float(crovca.coding_rate(codes, 0.5)) for codes in (one, halves, spread)]
    assert rates[0] == pytest.approx(rates[1])  # a direction and its opposite span one line
    assert rates[0] == pytest.approx(math.log(1 + 8 / 0.25) / 16, rel=1e-4)
    assert rates[2] == pytest.approx(8 * math.log(1 + 1 / 0.25) / 16, rel=1e-4)


def test_the_rate_keeps_bits_apart():
    """The claim of the term against collapse: without it the bits of a labelled sample follow each other."""
    X, y = labelled_samples("classes")

    def mean_correlation(rate):
        model = crovca.CroVCA(8, rate=rate, function=Linear(epochs=30), random_state=0).fit(X, y)
        among_bits = np.abs(np.corrcoef(model.project(X).T))
        return (among_bits.sum() - 8) / 56

    assert mean_correlation(2.0) < mean_correlation(0.5) < mean_correlation(0.0)


@pytest.mark.parametrize("kind", ["classes", "label sets"])
def test_labels_make_the_views_of_crovca(kind):
    X, y = labelled_samples(kind)
    settings = {"function": Linear(epochs=30), "random_state": 0}
    found = {}
    for given_labels in (y[:200], None):
        model = crovca.CroVCA(16, **settings).fit(X[:200], given_labels)
        codes = model.transform(X)
        found[given_labels is None] = hbmp.metrics.mean_average_precision(codes[200:], codes[:200], y[200:], y[:200])
    assert found[False] > found[True]
    assert found[False] > 0.8


@pytest.mark.parametrize("name", ["cibhash", "crovca", "oh"])
def test_codes_without_labels_keep_neighbours(name):
    X, _ = labelled_samples("classes")
    model = hbmp.get_method(name)(16, function=Linear(epochs=30), random_state=0).fit(X)
    codes = model.transform(X)
    random = hbmp.get_method("lsh")(16, random_state=0).fit(X).transform(np.random.default_rng(0).permutation(X))
    recalls = [hbmp.metrics.neighbour_recall(c[200:], c[:200], X[200:], X[:200], k=10) for c in (codes, random)]
    assert recalls[0] > 2.5 * recalls[1]


# OH


def overview_problem(seed, n=4, n_memory=6, n_bits=8, n_numbers=3):
    """Bits and continuous vectors of a batch and of a memory; sample i of the batch is entry i of the memory."""
    rng = np.random.default_rng(seed)

    def drawn(count):
        bits = torch.from_numpy(rng.choice([-1.0, 1.0], (count, n_bits)).astype(np.float32))
        numbers = torch.from_numpy(rng.standard_normal((count, n_numbers)).astype(np.float32))
        return bits, torch.nn.functional.normalize(numbers, dim=1)

    return *drawn(n), drawn(n_memory), torch.arange(n)[:, None] != torch.arange(n_memory)


@quick
@given(SEEDS, st.sampled_from([0.2, 1.0]))
def test_an_overview_is_the_mean_of_all_others_by_hamming_distance(seed, temperature):
    bits, continuous, (stored_bits, stored), others = overview_problem(seed)
    found = oh.overview(bits, continuous, (stored_bits, stored), others, temperature, 0.5)
    for i in range(4):
        total = torch.zeros(3)
        for j in range(6):
            if i != j:
                distance = int((bits[i] != stored_bits[j]).sum())
                total += math.exp((1 - distance / 8) / temperature) * stored[j]
        expected = total / total.norm() + 0.5 * continuous[i]
        torch.testing.assert_close(found[i], expected / expected.norm(), rtol=1e-3, atol=1e-4)


@quick
@given(SEEDS)
def test_overviews_contrast_with_the_memory_and_with_the_batch(seed):
    _, first, (_, stored), others = overview_problem(seed)
    second = first.flip(0)
    found = oh.contrast(first, second, stored, others, 0.2)
    for i in range(4):
        right = math.exp(float(first[i] @ second[i]) / 0.2)
        memory = sum(math.exp(float(first[i] @ stored[j]) / 0.2) for j in range(6) if j != i)
        batch = sum(math.exp(float(first[i] @ second[j]) / 0.2) for j in range(4))
        expected = -math.log(right / (right + memory)) - math.log(right / batch)
        assert float(found[i]) == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_the_overview_trains_the_bits_and_an_empty_memory_is_no_obstacle():
    loss = oh.OH(8, n_continuous=3, memory=20).make_loss(np.zeros((30, 0), np.float32), 0)
    with seeded(0):
        scores = torch.randn(30, 2, 11, requires_grad=True)
        for rows in torch.arange(30).split(10):
            value = loss(scores[rows], rows)
            assert torch.isfinite(value)
    value.backward()
    gradient = scores.grad[20:]
    assert gradient[:, 0, :8].abs().sum() > 0  # through the distances alone
    assert not gradient[:, 1].any()  # the other view is what the first must agree with
    assert loss.memory.seen.all()


# NHL


def test_lengths_double_up_to_the_longest():
    assert nhl.doubled(128) == [8, 16, 32, 64, 128]
    assert nhl.doubled(48) == [8, 16, 32, 48]
    assert nhl.doubled(4) == [4]


@settings(max_examples=6, deadline=None)
@given(SEEDS)
def test_nhl_is_the_base_loss_of_each_prefix_plus_distillation(seed):
    scores, labels, rows = problem(seed)
    method = nhl.NHL(8, lengths=[2, 4], base="dch", distilled=0.7, adaptive=False)
    value = number(method.make_loss(labels.numpy(), 0)(scores, labels, rows))
    base = hbmp.get_method("dch")(8).make_loss(labels.numpy(), 0)
    u = scores.detach()
    expected = sum(float(base(u[:, :length], labels, rows)) for length in (2, 4, 8))
    for short, long in ((2, 4), (4, 8)):
        squares = [(cosine(a[:short], b[:short]) - cosine(a[:long], b[:long])) ** 2 for a in u for b in u]
        expected += 0.7 * sum(squares) / 49
    assert value == pytest.approx(expected, rel=1e-4)


@quick
@given(SEEDS)
def test_distillation_moves_the_shorter_code_alone(seed):
    scores, _, _ = problem(seed)
    nhl.distillation(scores[:, :3], scores).backward()
    assert scores.grad[:, :3].any()
    assert not scores.grad[:, 3:].any()


@quick
@given(SEEDS)
def test_no_longer_code_outweighs_the_shortest_on_the_bits_they_share(seed):
    scores, labels, rows = problem(seed)
    loss = nhl.NHL(8, lengths=[2, 4], base="dch").make_loss(labels.numpy(), 0)
    loss(scores, labels, rows)
    base = hbmp.get_method("dch")(8).make_loss(labels.numpy(), 0)
    sizes = [
        torch.autograd.grad(base(scores[:, :length], labels, rows), scores)[0][:, :2].norm() for length in (2, 4, 8)
    ]
    for weight, size in zip(loss.weights(), sizes, strict=True):
        assert weight * float(size) <= float(sizes[0]) * (1 + 1e-5)
        assert 0 < weight <= 1


def test_every_prefix_is_a_code_and_separate_training_is_hardly_better():
    X, y = labelled_samples("label sets")
    function = Linear(epochs=20)

    def scores_of(codes):
        return hbmp.metrics.mean_average_precision(codes[200:], codes[:200], y[200:], y[:200], ties="average")

    nested = nhl.NHL(16, function=function, random_state=0).fit(X[:200], y[:200])
    assert nested.lengths_ == [8, 16]
    for length in nested.lengths_:
        alone = hbmp.get_method("greedyhash")(length, function=function, random_state=0).fit(X[:200], y[:200])
        assert scores_of(nested.transform(X)[:, :length]) > scores_of(alone.transform(X)) - 0.03


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"base": "itq"}, "base must be one of 'csq'.*found 'itq'"),
        ({"lengths": "all"}, "lengths must be 'doubled' or a list.*found 'all'"),
        ({"lengths": [0, 4]}, r"lengths must be positive code lengths, found \[0, 4\]"),
    ],
)
def test_wrong_settings_of_nhl_are_refused(given_settings, message):
    X, y = labelled_samples("classes")
    with pytest.raises(ValueError, match=message):
        nhl.NHL(8, **given_settings).fit(X, y)


@pytest.mark.parametrize("name", ["cibhash", "crovca", "nhl", "oh"])
def test_networks_on_images_take_them(name):
    images = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    model = hbmp.get_method(name)(8, function=Network(**Network.smoke), random_state=0).fit(images, np.arange(12) % 3)
    assert model.transform(images).shape == (12, 8)
