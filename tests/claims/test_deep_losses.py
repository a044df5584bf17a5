"""What the losses of pairs, triplets and lists promise: their values against plain loops, and what papers claim."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import hbmp
from hbmp._training.loop import ArrayBatches, Recipe, seeded, train
from hbmp.functions import Linear, Network
from hbmp.methods import dsrh, hashnet, mihash
from hbmp.methods._shared import pairs as pair_terms
from hbmp.methods._shared.memory import Memory

NAMES = ["dpsh", "dtsh", "mihash", "hashnet", "dsrh", "drsch"]
BITS = 6
ALL = {
    "dpsh": {},
    "dtsh": {"partners": 99},
    "mihash": {"slope": 3.0},
    "hashnet": {},
    "dsrh": {"length": 198},
    "drsch": {"partners": 99},
}
"""Settings with which nothing is drawn: every pair, triplet and list place of a small batch takes part."""

seeds = st.integers(0, 2**31)
quick = settings(max_examples=15, deadline=None)


def batch(seed, n=9, n_labels=4, sets=True, scale=1.0):
    """Scores, label rows with at least one label each, and positions that are not 0, 1, 2 …"""
    rng = np.random.default_rng(seed)
    labels = np.eye(n_labels)[rng.integers(n_labels, size=n)]
    if sets:
        labels = np.maximum(labels, rng.random((n, n_labels)) < 0.25)
    scores = torch.tensor(scale * rng.normal(size=(n, BITS)), dtype=torch.float32, requires_grad=True)
    return scores, torch.tensor(labels, dtype=torch.float32), torch.tensor(rng.permutation(n))


def loss_of(name, n=9, n_labels=4, **given_settings):
    """The loss of a method for a training set of n samples, whose labels only a memory asks for: see `value`."""
    method = hbmp.get_method(name)(BITS, **{**ALL[name], **given_settings})
    return method.make_loss(np.zeros((n, n_labels), dtype=np.float32), 0)


def value(loss, scores, labels, rows):
    if hasattr(loss, "memory"):
        loss.memory.labels[rows] = labels.to(torch.uint8)
    return loss(scores, labels, rows)


def pairs(labels):
    """(i, j, whether they share a label) of all pairs of two."""
    n = len(labels)
    return [(i, j, bool((labels[i] * labels[j]).sum() > 0)) for i in range(n) for j in range(n) if i != j]


def triplets(labels):
    return [(i, j, k) for i, j, s in pairs(labels) if s for h, k, t in pairs(labels) if h == i and not t]


def mean(values):
    return sum(values) / max(1, len(values))


def to_signs(u):
    return sum(((row - torch.where(row >= 0, 1.0, -1.0)) ** 2).sum() for row in u) / len(u)


def plain_dpsh(u, labels):
    """The others of a pair are fixed: they come from the memory."""
    fixed = u.detach()
    terms = []
    for i, j, s in pairs(labels):
        theta = (u[i] * fixed[j]).sum() / 2
        terms.append(torch.log(1 + torch.exp(theta)) - s * theta)
    return mean(terms) + 10 / 5000 * to_signs(u)


def plain_dtsh(u, labels):
    fixed = u.detach()
    terms = []
    for q, p, r in triplets(labels):
        difference = (u[q] * fixed[p]).sum() / 2 - (u[q] * fixed[r]).sum() / 2 - BITS / 2
        terms.append(-torch.log(1 / (1 + torch.exp(-difference))))
    return mean(terms) + 100 / 2500 * to_signs(u)


def plain_mihash(u, labels):
    codes = 2 / (1 + torch.exp(-3 * u)) - 1
    bins, width, n = BITS // 2, BITS / (BITS // 2), len(u)
    total = 0
    for i in range(n):
        histograms = {True: [0.0] * (bins + 1), False: [0.0] * (bins + 1)}
        counts = {True: 0, False: 0}
        for first, j, s in pairs(labels):
            if first == i:
                distance = (BITS - (codes[i] * codes[j]).sum()) / 2
                counts[s] += 1
                for bin_ in range(bins + 1):
                    share = 1 - abs(distance - bin_ * width) / width
                    if share > 0:
                        histograms[s][bin_] = histograms[s][bin_] + share
        both = [a + b for a, b in zip(histograms[True], histograms[False], strict=True)]
        total = total + plain_entropy(both, n - 1)
        for s in (True, False):
            total = total - counts[s] / (n - 1) * plain_entropy(histograms[s], counts[s])
    return -total / n


def plain_entropy(masses, count):
    return sum(-(m / count) * torch.log2(m / count) for m in masses if m > 0)


def plain_hashnet(u, labels):
    h = torch.tanh(u)
    every = pairs(labels)
    similar = sum(s for _, _, s in every)
    total = 0
    for i, j, s in every:
        share = (labels[i] * labels[j]).sum() / torch.maximum(labels[i], labels[j]).sum() if s else 1.0
        weight = share * len(every) / (similar if s else len(every) - similar)
        product = 10 / BITS * (h[i] * h[j]).sum()
        total = total + weight * (torch.log(1 + torch.exp(product)) - s * product)
    return total / len(every)


def plain_dsrh(u, labels):
    h = 2 / (1 + torch.exp(-u)) - 1
    n, terms = len(u), []
    for q in range(n):
        shared = {j: float((labels[q] * labels[j]).sum()) for j in range(n) if j != q}
        gains = sorted((2**r - 1 for r in shared.values()), reverse=True)
        best = sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))
        for i, r_i in shared.items():
            for j, r_j in shared.items():
                if r_i > r_j:
                    gap = (h[q] * h[j]).sum() / 2 - (h[q] * h[i]).sum() / 2  # d(q, i) - d(q, j)
                    terms.append((2**r_i - 2**r_j) / best * torch.clamp(5 + gap, min=0))
    return mean(terms) + sum((sum(h[:, k]) / n) ** 2 for k in range(BITS)) / 2


def plain_drsch(u, labels, weights=(1.0,) * BITS):
    h = 2 / (1 + torch.exp(-u)) - 1
    w = torch.as_tensor(weights, dtype=u.dtype)

    def affinity(i, j):
        return (w**2 * h[i] * h[j]).sum()

    hinges = [torch.clamp(BITS / 2 - affinity(q, p) + affinity(q, r), min=0) for q, p, r in triplets(labels)]
    spreads = [(w**2 * (h[i] - h[j]) ** 2).sum() for i, j, s in pairs(labels) if s]
    return mean(hinges) + 0.03 * mean(spreads)


PLAIN = {
    "dpsh": plain_dpsh,
    "dtsh": plain_dtsh,
    "mihash": plain_mihash,
    "hashnet": plain_hashnet,
    "dsrh": plain_dsrh,
    "drsch": plain_drsch,
}


@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)
@given(seed=seeds)
def test_value_and_gradient_are_those_of_a_plain_loop(name, sets, seed):
    scores, labels, rows = batch(seed, sets=sets)
    found = value(loss_of(name), scores, labels, rows)
    found.backward()
    again = scores.detach().double().requires_grad_()
    wanted = PLAIN[name](again, labels.double())
    wanted.backward()
    assert float(found.detach()) == pytest.approx(float(wanted.detach()), rel=1e-4, abs=1e-5)
    torch.testing.assert_close(scores.grad.double(), again.grad, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@quick
@given(seed=seeds)
def test_flipping_or_reordering_bits_and_reordering_samples_changes_nothing(name, seed):
    scores, labels, rows = batch(seed)
    before = float(value(loss_of(name), scores, labels, rows).detach())
    rng = np.random.default_rng(seed)
    flips = torch.tensor(rng.choice([-1.0, 1.0], BITS), dtype=torch.float32)
    bits, order = torch.tensor(rng.permutation(BITS)), torch.tensor(rng.permutation(len(rows)))
    moved = (scores * flips)[:, bits][order]
    after = float(value(loss_of(name), moved, labels[order], rows[order]).detach())
    assert after == pytest.approx(before, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("classes", ["one class", "a class each", "one sample"])
def test_a_batch_without_pairs_of_both_kinds_is_finite(name, classes):
    scores, labels, rows = batch(0, n=4, n_labels=4, sets=False)
    labels = torch.eye(4)[[0] * 4] if classes == "one class" else torch.eye(4)
    kept = 1 if classes == "one sample" else 4
    value(loss_of(name, n=4), scores[:kept], labels[:kept], rows[:kept]).backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_around_the_loss_changes_nothing(name):
    scores, labels, rows = batch(1, n=40)
    rounded = scores.detach().bfloat16()
    plain = value(loss_of(name, n=40), rounded.float(), labels, rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = value(loss_of(name, n=40), rounded, labels, rows)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plain)


@pytest.mark.parametrize("name", NAMES)
def test_size_of_the_batch_hardly_moves_the_loss(name):
    def typical(n):
        values = [
            value(
                loss_of(name, n=n, quantisation=0.0) if name in ("dpsh", "dtsh") else loss_of(name, n=n),
                *batch(seed, n=n, sets=False),
            )
            for seed in range(20)
        ]
        return float(torch.stack(values).mean().detach())

    # MIHash reads histograms and DSRH divides by the best DCG of a list, which depend on how many there are
    assert typical(40) == pytest.approx(typical(20), rel={"mihash": 0.5, "dsrh": 0.5}.get(name, 0.1))


def short():
    """A hash function that trains in a second."""
    return Linear(epochs=40, batch_size=128, lr=1e-2)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1200].astype(np.float32), y[:1200]


@pytest.mark.parametrize("name", NAMES)
def test_training_lowers_the_loss_and_groups_the_classes(name, digits):
    X, y = digits
    model = hbmp.get_method(name)(16, function=short(), random_state=0).fit(X[:600], y[:600])
    assert model.function_.loss_[-1] < model.function_.loss_[0]
    floor = hbmp.get_method("pca_sign")(16, random_state=0).fit(X[:600])
    assert model.score(X[600:], y[600:]) > floor.score(X[600:], y[600:]) + 0.25


@pytest.mark.parametrize("name", NAMES)
def test_impossible_counts_are_refused(name, digits):
    wrong = {
        "dpsh": ("memory", 0),
        "dtsh": ("partners", 1),
        "mihash": ("n_bins", 1),
        "hashnet": ("hold", 1),
        "dsrh": ("length", 2),
        "drsch": ("partners", 1),
    }
    setting, least = wrong[name]
    with pytest.raises(ValueError, match=rf"{setting} must be at least {least}, found {least - 1}\."):
        hbmp.get_method(name)(8, **{setting: least - 1}).fit(*digits)


@pytest.mark.parametrize("name", NAMES)
def test_training_that_was_killed_goes_on_to_the_same_bits(name, digits, tmp_path):
    """With what the loss has drawn, kept and counted up to then: `smoke` draws parts of everything."""
    X, labels = torch.from_numpy(digits[0][:100] / 16), np.eye(10, dtype=np.float32)[digits[1][:100]]

    class Stopping(ArrayBatches):
        left = -1  # batches until an interrupt

        def batches(self, generator, start=0):
            for batch in super().batches(generator, start):
                if self.left == 0:
                    raise KeyboardInterrupt
                self.left -= 1
                yield batch

    data = Stopping(X, torch.from_numpy(labels), torch.arange(100), batch_size=20)

    def outcome(folder, stop=-1):
        cls = hbmp.get_method(name)
        loss = cls(BITS, **cls.smoke).make_loss(labels, 0)
        data.left = stop
        with seeded(7):
            module = torch.nn.Linear(64, BITS)
            train(module, data, loss, Recipe(epochs=3), seed=1, checkpoint=str(folder), checkpoint_minutes=0.0)
        return module.weight.detach(), [value.detach() for value in loss.state_dict().values()]

    straight = outcome(tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        outcome(tmp_path / "killed", stop=9)
    resumed = outcome(tmp_path / "killed")
    torch.testing.assert_close(resumed, straight, rtol=0, atol=0)


# What two rows of labels say.


def test_jaccard_counts_labels_and_pairs_without_any_are_strangers():
    a = torch.tensor([[1.0, 1, 0, 0], [0, 0, 0, 0]])
    b = torch.tensor([[1.0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    torch.testing.assert_close(pair_terms.jaccard(a, b), torch.tensor([[1 / 3, 1, 0], [0, 0, 0]]))
    assert pair_terms.similar(a, b).tolist() == [[True, True, False], [False, False, False]]


def test_a_sample_with_itself_is_neither_similar_nor_dissimilar():
    labels, rows = torch.tensor([[1.0, 0], [0, 1], [1, 0]]), torch.tensor([5, 3, 8])
    alike, unlike = pair_terms.similar_and_not(labels, rows, labels[[2, 0]], rows[[2, 0]])
    assert alike.tolist() == [[True, False], [False, False], [False, True]]
    assert unlike.tolist() == [[False, False], [True, True], [False, False]]


def test_partners_are_allowed_different_and_equally_likely():
    torch.manual_seed(0)
    allowed = torch.tensor([[True] * 3 + [False] * 3, [False] * 5 + [True], [False] * 6])
    counts = torch.zeros(3, 6)
    for _ in range(600):
        columns, real = pair_terms.drawn_partners(allowed, 2)
        assert real.sum(dim=1).tolist() == [2, 1, 0]
        assert columns[0, 0] != columns[0, 1]
        for row in range(3):
            counts[row, columns[row][real[row]]] += 1
    assert (counts[~allowed] == 0).all()
    np.testing.assert_allclose(counts[0, :3], 400, atol=60)  # 2 of 3; a standard deviation is 12


# DPSH and DTSH: a memory of all scores, which stay near their signs.


def test_memory_gives_the_latest_scores_of_samples_seen_and_of_no_others():
    memory = Memory(np.eye(5), 2, size=4)
    memory.keep(torch.ones(2, 2), torch.tensor([4, 1]))
    memory.keep(torch.full((1, 2), 3.0), torch.tensor([1]))
    scores, labels, rows = memory.draw(torch.tensor([1]))
    assert rows.tolist() == [1, 4]
    assert scores.tolist() == [[3, 3], [1, 1]]
    assert labels.tolist() == np.eye(5)[[1, 4]].tolist()
    memory.keep(torch.ones(5, 2), torch.arange(5))
    assert len(memory.draw(torch.arange(5))[2]) == 4
    assert {"scores", "seen"} <= set(memory.state_dict())  # so that a training goes on from a checkpoint


def test_without_a_memory_a_batch_is_compared_with_itself():
    memory = Memory(np.eye(5), 2, size=0)
    memory.keep(torch.ones(2, 2), torch.tensor([4, 1]))
    memory.keep(torch.full((1, 2), 3.0), torch.tensor([2]))
    scores, labels, rows = memory.draw(torch.tensor([2]))
    assert rows.tolist() == [2]
    assert scores.tolist() == [[3, 3]]
    assert labels.tolist() == [[0, 0, 1, 0, 0]]


@pytest.mark.parametrize(("shape", "size"), [((40, 64), 1000), ((40, 8, 8, 3), 0)])
def test_dpsh_keeps_no_memory_of_a_whole_network(shape, size, monkeypatch):
    made = []
    monkeypatch.setattr("hbmp.methods.dpsh.Memory", lambda *given: made.append(given[2]) or Memory(*given))
    X = np.random.default_rng(0).integers(0, 256, shape).astype(np.float32 if len(shape) == 2 else np.uint8)
    function = Linear(epochs=1) if len(shape) == 2 else Network("tiny", epochs=1, device="cpu")
    hbmp.get_method("dpsh")(4, function=function, random_state=0).fit(X, np.arange(40) % 2)
    assert made == [size]


def test_a_part_of_the_memory_gives_the_gradient_of_all_on_average():
    torch.manual_seed(0)
    scores, labels, rows = batch(3, n=30)
    gradients = []
    for size in [30] + [8] * 400:
        value(loss_of("dpsh", n=30, memory=size), scores, labels, rows).backward()
        gradients.append(scores.grad.clone())
        scores.grad = None
    whole, mean_of_parts = gradients[0], torch.stack(gradients[1:]).mean(dim=0)
    assert (mean_of_parts - whole).norm() < 0.1 * whole.norm()


@pytest.mark.parametrize("name", ["dpsh", "dtsh"])
def test_quantisation_keeps_scores_near_their_signs(name, digits):
    X, y = digits
    strays = []
    for weight in (0.0, 25_000.0):
        model = hbmp.get_method(name)(8, quantisation=weight, function=short(), random_state=0).fit(X[:600], y[:600])
        strays.append(np.abs(np.abs(model.project(X)) - 1).mean())
    assert strays[1] < 0.8 * strays[0]


def test_dtsh_is_content_where_agreements_differ_by_more_than_the_margin():
    near, far = torch.tensor([[20.0]]), torch.tensor([[0.0]])
    assert float(hbmp.methods.dtsh.triplet_loss(near, far, 10.0)) < 1e-4
    assert float(hbmp.methods.dtsh.triplet_loss(near, far, 20.0)) == pytest.approx(math.log(2))
    assert float(hbmp.methods.dtsh.triplet_loss(near, far, 30.0)) == pytest.approx(10, abs=1e-3)


# MIHash: information, in bits.


def chance_entropy(neighbours, n):
    p = neighbours / (n - 1)
    return sum(-q * math.log2(q) for q in (p, 1 - p) if q > 0)


@quick
@given(seed=seeds, n_bins=st.integers(1, 9))
def test_mihash_histograms_are_the_same_by_scattering_and_by_triangles(seed, n_bins):
    rng = np.random.default_rng(seed)
    places = n_bins * torch.from_numpy(rng.uniform(-0.01, 1.01, (5, 12)).clip(0, 1)).float()
    neighbours = torch.from_numpy(rng.random((5, 12)) < 0.4)
    strangers = ~neighbours & torch.from_numpy(rng.random((5, 12)) < 0.8)
    found = mihash.histograms(places, neighbours, strangers, n_bins)
    for mine, dense in zip(found, mihash._dense_histograms(places, neighbours, strangers, n_bins), strict=True):
        torch.testing.assert_close(mine, dense)


@quick
@given(seed=seeds)
def test_information_lies_between_nothing_and_that_of_being_a_neighbour(seed):
    scores, labels, rows = batch(seed, n=14, scale=3.0)
    neighbours, strangers = pair_terms.similar_and_not(labels, rows)
    relaxed = torch.tanh(scores.detach())
    found = mihash.mutual_information((BITS - relaxed @ relaxed.T) / 2, neighbours, strangers, BITS, BITS)
    bound = [chance_entropy(int(count), 14) for count in neighbours.sum(dim=1)]
    assert (found >= -1e-5).all()
    assert (found.numpy() <= np.array(bound) + 1e-5).all()


def test_perfect_codes_carry_all_of_it_and_a_sample_itself_adds_none():
    labels = torch.eye(2)[[0] * 5 + [1] * 3]
    codes = 30 * torch.where(labels[:, :1] > 0, torch.ones(8, BITS), -torch.ones(8, BITS))
    found = -float(value(loss_of("mihash", n=8), codes, labels, torch.arange(8)))
    assert found == pytest.approx((5 * chance_entropy(4, 8) + 3 * chance_entropy(2, 8)) / 8, abs=1e-5)


def test_equal_codes_carry_no_information():
    _, labels, rows = batch(0)
    assert float(value(loss_of("mihash"), torch.ones(9, BITS), labels, rows)) == pytest.approx(0, abs=1e-6)


def test_a_step_down_the_loss_raises_the_information():
    scores, labels, rows = batch(2, n=20)
    loss = loss_of("mihash", n=20)
    before = value(loss, scores, labels, rows)
    before.backward()
    after = value(loss, (scores - 0.5 * scores.grad / scores.grad.norm()).detach(), labels, rows)
    assert float(-after) > float(-before.detach())


def test_bins_share_every_distance_out_whole():
    distances = torch.linspace(0, BITS, 50)[None]
    for n_bins in (1, 3, 7):
        alone = mihash.mutual_information(distances, distances > -1, distances < -1, BITS, n_bins)
        assert float(alone) == pytest.approx(0, abs=1e-5)  # H(p) - H(p⁺), only where the masses add up to one


# HashNet: continuation and weights.


def test_sharpness_starts_at_one_and_rises_every_two_hundred_steps():
    found = [float(hashnet.sharpness(step, 0.005, 0.5, 200)) for step in range(0, 10_001)]
    assert found[:200] == [1.0] * 200
    assert found[200] == found[399] == pytest.approx(math.sqrt(2))
    assert found[10_000] == pytest.approx(math.sqrt(51))
    assert (np.diff(found) >= 0).all()
    assert np.count_nonzero(np.diff(found)) == 50


def test_steps_sharpen_and_calls_do_not_and_a_checkpoint_keeps_them():
    scores, labels, rows = batch(0)
    loss = loss_of("hashnet", hold=1, growth=1.0)
    first, second = (float(loss(scores, labels, rows).detach()) for _ in range(2))
    assert first == second
    loss.after_step()
    assert int(loss.state_dict()["step"]) == 1
    third = float(loss(scores, labels, rows).detach())
    sharper = float(plain_hashnet(math.sqrt(2) * scores.detach().double(), labels.double()))
    assert third == pytest.approx(sharper, rel=1e-4)
    assert third != first


def test_sharpening_ends_nearer_to_binary_codes(digits):
    X, y = digits
    slack = []
    for growth in (0.0, 1.0):
        model = hbmp.get_method("hashnet")(8, growth=growth, hold=5, function=short(), random_state=0).fit(
            X[:600], y[:600]
        )
        steps = len(model.function_.loss_) * math.ceil(600 / 128)
        beta = hashnet.sharpness(steps, growth, 0.5, 5)
        slack.append(np.mean(1 - np.abs(np.tanh(beta * model.project(X)))))
    assert slack[1] < 0.5 * slack[0]


def test_few_similar_pairs_weigh_as_much_as_many_dissimilar_ones():
    labels = torch.eye(7)[[0, 0, 1, 2, 3, 4, 5, 6]]
    scores = torch.zeros(8, BITS)
    assert float(value(loss_of("hashnet", n=8), scores, labels, torch.arange(8))) == pytest.approx(2 * math.log(2))


def test_a_pair_that_shares_a_third_of_its_labels_is_pulled_a_third_as_much():
    same, third = torch.tensor([[1.0, 0, 0], [1, 0, 0]]), torch.tensor([[1.0, 1, 0], [1, 0, 1]])
    pulls = []
    for labels in (same, third):
        scores, _, rows = batch(0, n=2)
        value(loss_of("hashnet", n=2), scores, labels, rows).backward()
        pulls.append(scores.grad)
    torch.testing.assert_close(pulls[1], pulls[0] / 3)


# DSRH: ranking by the number of shared labels.


def test_best_dcg_is_that_of_the_metric():
    relevance = torch.tensor([[0.0, 2, 1, 2], [3, 0, torch.nan, 1]])
    wanted = [3 / 1 + 3 / math.log2(3) + 1 / 2, 7 + 1 / math.log2(3)]
    torch.testing.assert_close(dsrh.best_dcg(relevance), torch.tensor(wanted))
    assert dsrh.best_dcg(torch.zeros(1, 3)).tolist() == [1.0]


def test_a_list_in_order_by_the_margin_costs_nothing_and_a_graver_mistake_more():
    relevance = torch.tensor([[2.0, 1, 0]])
    assert float(dsrh.ranking_loss(torch.tensor([[0.0, 5, 10]]), relevance, 5.0)) == 0
    mild = float(dsrh.ranking_loss(torch.tensor([[0.0, 10, 5]]), relevance, 5.0))  # 1 and 0 exchanged
    grave = float(dsrh.ranking_loss(torch.tensor([[5.0, 0, 10]]), relevance, 5.0))  # 2 and 1 exchanged
    assert 0 < mild < grave
    assert grave == pytest.approx(2 * mild)  # 2² - 2¹ against 2¹ - 2⁰


def test_empty_places_of_a_list_take_no_part():
    distances, relevance = torch.tensor([[3.0, 1, 9]]), torch.tensor([[1.0, 0, torch.nan]])
    found = dsrh.ranking_loss(distances, relevance, 5.0)
    torch.testing.assert_close(found, dsrh.ranking_loss(distances[:, :2], relevance[:, :2], 5.0))


def test_more_shared_labels_lie_nearer():
    rng = np.random.default_rng(0)
    labels = (rng.random((600, 5)) < 0.4).astype(int)
    X = (labels @ rng.normal(size=(5, 20)) + 0.3 * rng.normal(size=(600, 20))).astype(np.float32)
    model = hbmp.get_method("dsrh")(24, function=short(), random_state=0).fit(X[:400], labels[:400])
    codes, held = model.transform(X[400:]).astype(int), labels[400:]
    distances, shared = (24 - codes @ codes.T) / 2, held @ held.T
    off = ~np.eye(200, dtype=bool)
    means = [distances[off & (shared == count)].mean() for count in range(4)]
    assert (np.diff(means) < -0.5).all()


def test_balance_keeps_bits_half_and_half():
    scores, labels, rows = batch(0)
    shifted = scores.detach() + 2
    rise = [float(value(loss_of("dsrh", balance=weight), shifted, labels, rows)) for weight in (0.0, 1.0)]
    mean_of_bits = torch.tanh(shifted / 2).mean(dim=0)
    assert rise[1] - rise[0] == pytest.approx(float(mean_of_bits @ mean_of_bits) / 2, rel=1e-4)


# DRSCH: weights of bits that are learned along.


def test_drsch_with_other_weights_is_that_of_a_plain_loop():
    scores, labels, rows = batch(5)
    loss = loss_of("drsch")
    weights = [0.3, 2.0, 1.0, 0.1, 1.5, 0.7]
    with torch.no_grad():
        loss.weights.copy_(torch.tensor(weights))
    found = float(loss(scores, labels, rows).detach())
    assert found == pytest.approx(float(plain_drsch(scores.detach().double(), labels.double(), weights)), rel=1e-4)


def test_a_bit_that_says_nothing_gets_a_light_weight():
    rng = np.random.default_rng(0)
    labels = torch.eye(2)[torch.tensor(rng.integers(2, size=60))]
    scores = 4 * torch.where(labels[:, :1] > 0, torch.ones(60, BITS), -torch.ones(60, BITS))
    scores[:, -1] = torch.tensor(4 * rng.choice([-1.0, 1.0], 60))
    loss = loss_of("drsch", n=60, margin=2 * BITS)
    optimiser = torch.optim.SGD(loss.parameters(), lr=0.05)
    for _ in range(60):
        optimiser.zero_grad()
        loss(scores, labels, torch.arange(60)).backward()
        optimiser.step()
    weights = loss.weights.detach() ** 2
    assert weights[-1] < 0.5 * weights[:-1].min()


def test_learned_weights_are_those_of_the_distance_and_light_bits_can_go(digits):
    X, y = digits
    model = hbmp.get_method("drsch")(24, function=short(), random_state=0).fit(X[:600], y[:600])
    weights = model.bit_weights_
    assert (weights >= 0).all()
    assert weights.std() > 0.01
    codes, order = model.transform(X[600:]), np.argsort(weights)
    kept = [
        hbmp.metrics.self_retrieval_map(codes[:, part], y[600:], bit_weights=weights[part])
        for part in (order[-8:], order[:8])
    ]
    assert kept[0] > kept[1]
