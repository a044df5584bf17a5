"""What methods on triplets, rankings, factorisations and deep layers promise, each against the plain formula."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from labelled_samples import labelled_samples

import hbmp
from hbmp.functions import MLP, Linear
from hbmp.methods import cnnh, structhash, triplet_bqp, vdsh
from hbmp.methods._shared import ranking_planes
from hbmp.methods._shared.bqp_losses import bqp_value, similar_pairs


def all_signs(n):
    return np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8)


@pytest.fixture
def similar():
    return similar_pairs(np.eye(3)[[0, 0, 0, 1, 1, 2]])


def test_triplets_are_a_query_one_that_shares_and_one_that_does_not(similar):
    query, positive, negative = triplet_bqp.draw_triplets(similar, 20, np.random.default_rng(0))
    assert similar[query, positive].all()
    assert not similar[query, negative].any()
    assert ((query == positive) == (query == 5)).all()  # item 5 has no other positive
    np.testing.assert_array_equal(np.bincount(query), [20] * 6)


def test_triplets_need_samples_that_share_no_label():
    with pytest.raises(ValueError, match="Every two samples share a label"):
        triplet_bqp.draw_triplets(np.ones((4, 4), dtype=bool), 3, np.random.default_rng(0))


@pytest.mark.parametrize("n_done", [0, 1, 4])
def test_the_quadratic_form_is_the_loss_of_triplets_up_to_a_constant(similar, n_done):
    rng = np.random.default_rng(n_done)
    codes = rng.choice([-1, 1], (6, n_done)).astype(np.int8)
    triplets = triplet_bqp.draw_triplets(similar, 8, rng)
    margin = (n_done + 1) / 2
    matrix = triplet_bqp.triplet_matrix(triplets, triplet_bqp.triplet_gaps(codes, triplets), margin, 6)
    gaps = []
    for signs in all_signs(6):
        longer = np.hstack([codes, signs[:, None]])
        loss = 0.0
        for q, p, s in triplets.T:
            far, near = (longer[q] != longer[s]).sum(), (longer[q] != longer[p]).sum()
            loss += max(0, margin - (int(far) - int(near)))
        gaps.append(loss - bqp_value(matrix, signs))
    assert np.ptp(gaps) < 1e-4
    assert np.abs(matrix.toarray()).sum() > 0
    assert (matrix.toarray()[similar] <= 0).all()  # submodular among similar samples


def test_each_group_of_bits_has_a_function_of_its_own():
    X, y = np.random.default_rng(0).standard_normal((40, 4)), np.arange(40) % 3
    model = hbmp.methods.TripletBQP(7, group=3, function=Linear(epochs=2), triplets=5, random_state=0).fit(X, y)
    assert [function.project(X.astype(np.float32)).shape[1] for function in model.functions_] == [3, 3, 1]


def worst_by_hand(positive, negative):
    """The highest 1 - NDCG + mean margin of misordered pairs over all interleavings."""
    p, s = len(positive), len(negative)
    ranks = 1 / np.log2(np.arange(2, p + s + 2))
    best = -np.inf
    for before in itertools.combinations_with_replacement(range(s + 1), p):
        loss = 1 - sum(ranks[t + k] for t, k in enumerate(before)) / ranks[:p].sum()
        margins = sum(positive[t] - negative[j] for t, k in enumerate(before) for j in range(k)) / (p * s)
        best = max(best, loss + margins)
    return best


@settings(max_examples=60, deadline=None)
@given(data=st.data(), p=st.integers(1, 4), s=st.integers(1, 5))
def test_the_most_violated_ranking_is_the_worst_of_all(data, p, s):
    values = st.floats(0, 3, allow_subnormal=False)
    distances = data.draw(arrays(np.float64, (2, p + s), elements=values))
    weights, loss = ranking_planes.most_violated(distances, p)
    by_hand = np.mean([worst_by_hand(sorted(row[:p]), sorted(row[p:])) for row in distances])
    assert loss - float((weights * distances).sum()) / 2 == pytest.approx(by_hand, abs=1e-5)
    assert (weights[:, :p] <= 0).all()
    assert (weights[:, p:] >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 0, atol=1e-6)


def test_a_right_ranking_with_a_wide_margin_violates_nothing():
    weights, loss = ranking_planes.most_violated(np.array([[0.0, 0, 0, 9, 9, 9, 9]]), 3)
    assert loss == 0
    assert (weights == 0).all()


def test_weights_and_duals_solve_the_same_problem():
    rng = np.random.default_rng(0)
    gains, wrong = rng.uniform(-0.1, 0.5, (12, 4)), rng.uniform(0, 1, 12)
    weights, duals, slack, value = ranking_planes.solve_weights(gains, wrong, 3.0)
    assert (weights >= 0).all()
    assert (gains @ weights >= wrong - slack - 1e-9).all()
    assert value == pytest.approx(weights.sum() + 3 * slack)
    assert duals @ wrong == pytest.approx(value)
    assert (duals >= 0).all()
    assert duals.sum() <= 3 + 1e-9
    assert (gains.T @ duals <= 1 + 1e-9).all()


def test_a_new_bit_is_worth_what_its_quadratic_form_says():
    rng = np.random.default_rng(0)
    queries, items = np.array([0, 3]), rng.integers(0, 6, (2, 5))
    weights = rng.standard_normal((2, 5))
    matrix = structhash.pair_matrix(queries, items, weights, 6)
    gaps = []
    for signs in all_signs(6):
        worth = float((weights * (signs[queries][:, None] != signs[items])).sum())
        gaps.append(worth + bqp_value(matrix, signs) / 2)
    assert np.ptp(gaps) < 1e-5


def test_the_slope_of_the_smooth_bits_is_that_of_their_value():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((8, 3)).astype(np.float32)
    matrix = structhash.pair_matrix(np.arange(8), rng.integers(0, 8, (8, 4)), rng.standard_normal((8, 4)), 8)
    start = 0.1 * rng.standard_normal(3)

    def value(v):
        smooth = np.tanh(features @ v)
        return smooth @ (matrix @ smooth) / abs(matrix).sum() + 0.01 * v @ v

    found = structhash.refine_direction(features, matrix, start, 0.01, 200)
    assert value(found) < value(start)
    steps = [value(found + 1e-3 * d) - value(found) for d in np.vstack([np.eye(3), -np.eye(3)])]
    assert min(steps) > -1e-6  # a minimum


def test_structhash_learns_weights_of_bits_that_lower_its_loss():
    X, y = blobs()
    settings_ = {"n_queries": 60, "n_positive": 5, "n_negative": 10, "n_anchors": 30}
    model = hbmp.methods.StructHash(8, random_state=0, **settings_).fit(X, y)
    assert (model.bit_weights_ >= 0).all()
    assert len(np.unique(model.bit_weights_)) > 1
    assert (np.diff(model.loss_) <= 1e-12).all()
    assert model.loss_[-1] < 0.7 * model.loss_[0]


@settings(max_examples=20, deadline=None)
@given(data=st.data(), seed=st.integers(0, 9))
def test_a_newton_sweep_never_raises_the_factorisation_and_stays_in_the_box(data, seed):
    drawn = data.draw(arrays(np.bool_, (7, 7)))
    affinity = np.where(drawn | drawn.T | np.eye(7, dtype=bool), 1.0, -1.0).astype(np.float32)
    rng = np.random.default_rng(seed)
    relaxed = rng.uniform(-1, 1, (7, 3))
    before = np.square(affinity - relaxed @ relaxed.T / 3).mean()
    assert cnnh.factorisation_loss(affinity, relaxed) == pytest.approx(before)
    cnnh.newton_sweep(affinity, relaxed, rng)
    assert np.square(affinity - relaxed @ relaxed.T / 3).mean() <= before + 1e-12
    assert np.abs(relaxed).max() <= 1 + 1e-12


def test_two_classes_are_factorised_without_rest():
    affinity = np.where(np.equal.outer(np.arange(30) % 2, np.arange(30) % 2), 1, -1).astype(np.float32)
    rng = np.random.default_rng(0)
    relaxed = rng.uniform(-1, 1, (30, 4))
    for _ in range(10):
        cnnh.newton_sweep(affinity, relaxed, rng)
    assert cnnh.factorisation_loss(affinity, relaxed) < 1e-9


def test_cnnh_plus_learns_the_labels_beside_the_codes():
    X, y = blobs()
    model = hbmp.methods.CNNH(
        6, plus=True, function=MLP(hidden=(64,), dropout=0.0, lr=1e-2, epochs=60), random_state=0
    ).fit(X, y)
    outputs = model.function_.project(X)
    assert outputs.shape == (len(X), 6 + 4)
    np.testing.assert_array_equal(outputs[:, :6], model.project(X))
    assert (outputs[:, 6:].argmax(axis=1) == y).mean() > 0.95


def test_each_block_of_vdsh_is_at_its_own_minimum():
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    inputs, outputs = (rng.standard_normal((30, k)).astype(np.float32) for k in (4, 3))
    weights, bias = vdsh.fit_layer(inputs, outputs, 0.7)
    ridge = Ridge(alpha=0.7).fit(inputs, outputs)
    np.testing.assert_allclose(weights, ridge.coef_.T, atol=1e-4)
    np.testing.assert_allclose(bias, ridge.intercept_, atol=1e-4)

    grid = np.linspace(-4, 4, 4001)
    for z, g in rng.standard_normal((50, 2)) * 1.5:
        cost = (z - np.maximum(grid, 0)) ** 2 + (grid - g) ** 2
        found = vdsh.best_sums(np.array([z]), np.array([g]))[0]
        assert (z - max(found, 0)) ** 2 + (found - g) ** 2 <= cost.min() + 1e-9

    own, layer, wanted = (rng.standard_normal(shape) for shape in ((5, 4), (4, 6), (5, 6)))
    stacked = np.hstack([np.eye(4), np.sqrt(2.5) * layer])
    expected = np.linalg.lstsq(stacked.T, np.hstack([own, np.sqrt(2.5) * wanted]).T, rcond=None)[0].T
    np.testing.assert_allclose(vdsh.best_outputs(own, layer, wanted, 2.5), expected, atol=1e-5)


def test_codes_of_vdsh_gain_by_no_single_flip():
    rng = np.random.default_rng(0)
    labels, readout, scores = (rng.standard_normal(shape) for shape in ((6, 3), (4, 3), (6, 4)))

    def value(codes):
        return np.square(labels - codes @ readout).sum() + 0.3 * np.square(codes - scores).sum()

    start = rng.choice([-1.0, 1.0], (6, 4))
    codes = vdsh.best_codes(start, labels, readout, scores, 0.3, sweeps=50)
    assert value(codes) < value(start)
    for at in np.ndindex(codes.shape):
        other = codes.copy()
        other[at] *= -1
        assert value(other) >= value(codes) - 1e-9


@pytest.mark.parametrize("n_layers", [1, 3])
def test_the_objective_of_vdsh_falls_from_round_to_round(n_layers):
    X, y = blobs()
    model = hbmp.methods.VDSH(8, n_layers=n_layers, width=12, rounds=12, random_state=0).fit(X, y)
    assert len(model.layers_) == n_layers + 1
    assert (np.diff(model.loss_) <= 1e-5 * model.loss_[0]).all()
    assert model.loss_[-1] < 0.9 * model.loss_[0]


def blobs():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 4
    return (3 * rng.standard_normal((4, 6))[y] + rng.standard_normal((120, 6))).astype(np.float32), y


SETTINGS = {
    "triplet_bqp": {"function": Linear(epochs=100), "max_samples": 150},
    "structhash": {"n_queries": 100, "n_anchors": 60, "max_samples": 150},
    "cnnh": {"function": Linear(epochs=100), "max_samples": 150},
    "vdsh": {"width": 64, "ridge": 0.01},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("kind", ["classes", "label sets"])
def test_held_out_samples_find_their_like(name, kind):
    X, y = labelled_samples(kind)
    model = hbmp.get_method(name)(16, random_state=0, **SETTINGS[name]).fit(X[:200], y[:200])
    codes = model.transform(X)
    weights = model.bit_weights_
    found = hbmp.metrics.mean_average_precision(codes[200:], codes[:200], y[200:], y[:200], bit_weights=weights)
    assert found > 0.85


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("triplet_bqp", {"group": 0}, "group must be a positive whole number"),
        ("structhash", {"price": 0}, "price must be a number above 0"),
        ("structhash", {"n_negative": 2.5}, "n_negative must be a positive whole number"),
        ("cnnh", {"sweeps": 0}, "sweeps must be a positive whole number"),
        ("vdsh", {"n_layers": 0}, "n_layers must be a positive whole number"),
        ("vdsh", {"ridge": -1}, "ridge must be a number above 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, setting, message):
    X, y = blobs()
    cls = hbmp.get_method(name)
    with pytest.raises(ValueError, match=message):
        cls(4, **{**cls.smoke, **setting}).fit(X, y)
