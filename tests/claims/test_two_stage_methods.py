"""What two-step methods promise: their bits solve the quadratic problem that the loss of pairs poses."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from labelled_samples import labelled_samples

import hbmp
from hbmp.functions import Linear, Trees
from hbmp.methods import fasthash, sdr
from hbmp.methods._shared import graph_cut
from hbmp.methods._shared.bqp_lifted import enough_rank, lagrangian_signs, relaxed_vectors, rounded
from hbmp.methods._shared.bqp_losses import (
    LOSSES,
    bqp_value,
    coefficients,
    infer_bits,
    pair_loss,
    sampled_rows,
    similar_pairs,
    total_loss,
)
from hbmp.methods._shared.bqp_spectral import box_solution, relaxed_signs, spectral_signs, sphere_solution


def all_signs(n):
    return np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8)


def symmetric(values):
    matrix = ((values + values.T) / 2).astype(np.float32)
    np.fill_diagonal(matrix, 0)
    return matrix


def matrices(low=2, high=8, least=-5, most=5):
    shape = st.integers(low, high).map(lambda n: (n, n))
    return arrays(np.float64, shape, elements=st.integers(least, most).map(float)).map(symmetric)


def best_value(matrix):
    return min(bqp_value(matrix, signs) for signs in all_signs(len(matrix)))


def distances_of(codes):
    return (codes[:, None, :] != codes[None, :, :]).sum(axis=2).astype(np.int16)


@pytest.fixture
def labels():
    rng = np.random.default_rng(0)
    return (rng.random((40, 5)) < 0.3).astype(np.float32)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_done", [0, 1, 3])
def test_the_quadratic_form_is_the_loss_of_pairs_up_to_a_constant(loss, n_done):
    rng = np.random.default_rng(n_done)
    codes, similar = rng.choice([-1, 1], (5, n_done)).astype(np.int8), similar_pairs(np.eye(3)[[0, 0, 1, 2, 2]])
    matrix = coefficients(loss, distances_of(codes), similar, n_done, 6)
    gaps = []
    for signs in all_signs(5):
        longer = np.hstack([codes, signs[:, None]])
        total = 0.0
        for i, j in itertools.permutations(range(5), 2):
            distance = int((longer[i] != longer[j]).sum())
            inner = n_done + 1 - 2 * distance
            total += {
                "ksh": ((6 if similar[i, j] else -6) - inner) ** 2,
                "bre": (distance - (0 if similar[i, j] else 6)) ** 2,
                "hinge": distance**2 if similar[i, j] else max(0, 3 - distance) ** 2,
            }[loss]
        assert total_loss(loss, longer, similar, 6) == pytest.approx(total / 20)
        gaps.append(total - bqp_value(matrix, signs))
    assert np.ptp(gaps) < 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_similar_pairs_never_ask_to_differ(loss):
    """What makes groups of similar samples submodular."""
    for n_done in range(8):
        distances = np.arange(n_done + 1, dtype=np.int16)[:, None].repeat(n_done + 1, axis=1)
        values = coefficients(loss, distances, np.ones(distances.shape, dtype=bool), n_done, 8)
        assert (values <= 0).all()


def test_an_unknown_loss_is_named():
    with pytest.raises(ValueError, match="loss must be one of 'ksh', 'bre', 'hinge'; found 'l2'"):
        pair_loss("l2", np.zeros(1), np.ones(1, dtype=bool), 1, 2)


def test_similar_samples_share_a_label(labels):
    similar = similar_pairs(labels)
    for i, j in itertools.product(range(40), repeat=2):
        assert similar[i, j] == (i == j or bool((labels[i] * labels[j]).any()))


def test_a_sample_is_drawn_without_repetition():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(sampled_rows(5, 10, rng), np.arange(5))
    drawn = sampled_rows(100, 10, rng)
    assert len(np.unique(drawn)) == 10
    assert (np.diff(drawn) > 0).all()


@settings(max_examples=30, deadline=None)
@given(matrix=matrices(), seed=st.integers(0, 9))
def test_the_box_never_ends_above_its_start_nor_the_signs_above_the_spectral_ones(matrix, seed):
    start = sphere_solution(matrix, np.random.default_rng(seed))
    clipped = np.clip(start, -1, 1).astype(np.float64)
    inside = box_solution(matrix, start, 50)
    assert np.abs(inside).max() <= 1
    assert inside @ matrix @ inside <= clipped @ matrix @ clipped + 1e-5
    spectral = bqp_value(matrix, np.where(start >= -1e-5 * np.abs(start).max(), 1, -1).astype(np.int8))
    found = bqp_value(matrix, relaxed_signs(matrix, np.random.default_rng(seed), 50))
    assert best_value(matrix) <= found <= spectral


SOLVERS = {
    "spectral": spectral_signs,
    "box": lambda matrix, rng: relaxed_signs(matrix, rng, 100),
    "sdr": lambda matrix, rng: rounded(matrix, relaxed_vectors(matrix, enough_rank(len(matrix)), rng, 100), 50, rng),
    "al": lambda matrix, rng: lagrangian_signs(matrix, rng, 100),
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_hidden_cut_is_found(solver):
    rng = np.random.default_rng(0)
    hidden = rng.choice([-1, 1], 60)
    matrix = symmetric(-np.outer(hidden, hidden) + 0.5 * rng.standard_normal((60, 60)))
    found = SOLVERS[solver](matrix, rng)
    assert abs(int(found @ hidden)) == 60


@pytest.mark.parametrize("loss", LOSSES)
def test_tsh_gives_samples_of_a_class_one_code_and_each_class_its_own(loss):
    classes = np.repeat(np.arange(4), 10)
    similar = similar_pairs(np.eye(4)[classes])
    codes = infer_bits(similar, 12, loss, SOLVERS["box"], np.random.default_rng(0))
    of_class = [np.unique(codes[classes == c], axis=0) for c in range(4)]
    assert [len(rows) for rows in of_class] == [1] * 4
    between = distances_of(np.concatenate(of_class))[~np.eye(4, dtype=bool)]
    assert between.min() >= 4


def test_tsh_leaves_less_loss_than_random_codes(labels):
    similar = similar_pairs(labels)
    codes = infer_bits(similar, 8, "ksh", SOLVERS["box"], np.random.default_rng(0))
    random = np.random.default_rng(1).choice([-1, 1], codes.shape).astype(np.int8)
    assert total_loss("ksh", codes, similar, 8) < 0.75 * total_loss("ksh", random, similar, 8)


@settings(max_examples=80, deadline=None)
@given(within=matrices(1, 7, least=-5, most=0), data=st.data())
def test_a_minimum_cut_is_the_best_of_all_signs(within, data):
    pull = data.draw(arrays(np.float64, len(within), elements=st.integers(-9, 9).map(float)))

    def value(signs):
        return bqp_value(within, signs) + 2 * signs @ pull

    assert value(graph_cut.minimum_cut(pull, within)) == min(value(signs) for signs in all_signs(len(within)))


def test_a_minimum_cut_is_exact_for_large_and_small_numbers():
    rng = np.random.default_rng(0)
    within, pull = -np.abs(symmetric(rng.standard_normal((6, 6)))).astype(np.float64), rng.standard_normal(6)
    expected = graph_cut.minimum_cut(pull, within)
    for scale in (1e-9, 1e9):
        np.testing.assert_array_equal(graph_cut.minimum_cut(pull * scale, within * scale), expected)


@settings(max_examples=40, deadline=None)
@given(matrix=matrices(2, 9), seed=st.integers(0, 99), sparse=st.booleans())
def test_block_cuts_are_never_worse_than_their_start_and_best_in_every_block(matrix, seed, sparse):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    similar = matrix <= 0
    blocks = graph_cut.similar_blocks(similar, rng, 4)
    start = rng.choice([-1, 1], len(matrix)).astype(np.int8)
    found = graph_cut.block_graph_cut(csr_array(matrix) if sparse else matrix, start, blocks, 50)
    assert bqp_value(matrix, found) <= bqp_value(matrix, start)
    for block in blocks:
        for signs in all_signs(len(block)):
            other = found.copy()
            other[block] = signs
            assert bqp_value(matrix, found) <= bqp_value(matrix, other)


def test_blocks_hold_every_item_once_and_only_similar_ones(labels):
    similar = similar_pairs(labels)
    blocks = graph_cut.similar_blocks(similar, np.random.default_rng(0), 6)
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(40))
    assert max(map(len, blocks)) == 6
    assert all(similar[np.ix_(block, block)].all() for block in blocks)


@pytest.mark.parametrize("correct", [True, False])
def test_fasthash_builds_on_the_learned_bit_or_on_the_found_one(correct, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)).astype(np.float32), np.arange(60) % 5
    built_on = []
    original = fasthash.add_bit
    monkeypatch.setattr(fasthash, "add_bit", lambda d, signs: (built_on.append(signs.copy()), original(d, signs)))
    model = hbmp.methods.FastHash(6, function=Trees(n_trees=1), correct=correct, random_state=0).fit(X, y)
    assert model.unmatched_ > 0.1  # one tree cannot tell noise apart
    agree = np.stack(built_on, axis=1) == model.transform(X)
    assert agree.all() == correct


@settings(max_examples=25, deadline=None)
@given(matrix=matrices(3, 8), seed=st.integers(0, 9))
def test_the_relaxation_bounds_the_optimum_and_rounding_cannot_pass_it(matrix, seed):
    rng = np.random.default_rng(seed)
    vectors = relaxed_vectors(matrix, enough_rank(len(matrix)) + 1, rng, 500)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    bound = float(np.einsum("np,np->", vectors, matrix @ vectors))
    best, size = best_value(matrix), max(1.0, float(np.abs(matrix).sum()))
    assert bound <= best + 1e-3 * size
    assert bqp_value(matrix, rounded(matrix, vectors, 50, rng)) >= best


@pytest.mark.parametrize("seed", range(5))
def test_rounding_keeps_two_over_pi_of_the_optimum(seed):
    """Nesterov's bound, which the publication builds on, for A = -P with P positive semidefinite."""
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((10, 4)).astype(np.float32)
    matrix = -factor @ factor.T
    vectors = relaxed_vectors(matrix, 6, rng, 500)
    relaxed = float(np.einsum("np,np->", vectors, matrix @ vectors))
    assert bqp_value(matrix, rounded(matrix, vectors, 100, rng)) <= 2 / np.pi * relaxed
    assert relaxed <= best_value(matrix) + 1e-3


@pytest.mark.parametrize("solver", ["sdr", "al"])
@settings(max_examples=4)
@given(data=st.data())
def test_a_sweep_never_raises_the_loss(solver, data):
    drawn = data.draw(arrays(np.bool_, (12, 12)))
    similar = drawn | drawn.T | np.eye(12, dtype=bool)
    rng = np.random.default_rng(0)
    codes = rng.choice([-1, 1], (12, 5)).astype(np.int8)
    losses = [total_loss("ksh", codes, similar, 5)]
    for _ in range(2):
        codes = sdr.sweep_bits(similar, codes, SOLVERS[solver], rng)
        losses.append(total_loss("ksh", codes, similar, 5))
    assert losses[0] >= losses[1] >= losses[2]


@pytest.mark.parametrize("name", ["tsh", "fasthash", "sdr"])
@pytest.mark.parametrize("kind", ["classes", "label sets"])
def test_held_out_samples_find_their_like(name, kind):
    X, y = labelled_samples(kind)
    function = Trees(n_trees=10) if name == "fasthash" else Linear(epochs=100)
    cls = hbmp.get_method(name)
    model = cls(16, function=function, max_samples=150, random_state=0).fit(X[:200], y[:200])
    codes = model.transform(X)
    found = hbmp.metrics.mean_average_precision(codes[200:], codes[:200], y[200:], y[:200])
    assert found > 0.9
    assert model.unmatched_ < 0.1


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("tsh", {"loss": "exp"}, "loss must be one of"),
        ("tsh", {"max_samples": 0}, "max_samples must be a positive whole number"),
        ("tsh", {"function": 3}, "function must be a name or an object"),
        ("fasthash", {"max_block": 0}, "max_block must be a positive whole number"),
        ("sdr", {"solver": "sdp"}, "solver must be 'sdr' or 'al', found 'sdp'"),
        ("sdr", {"rank": 0}, "rank must be a positive whole number"),
        ("sdr", {"sweeps": -1}, "sweeps must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, setting, message):
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20) % 2
    cls = hbmp.get_method(name)
    with pytest.raises(ValueError, match=message):
        cls(4, **{**cls.smoke, **setting}).fit(X, y)
