"""Codes that rebuild best: layers of bits, the radial term, and queries whose signs are not the codes."""

import numpy as np
import pytest

import hbmp
from hbmp.methods.hbmp.axes import nearest_by_product
from hbmp.methods.hbmp.recall import nearest, shares_found
from hbmp.methods.hbmp.unlabelled import Rebuilding
from hbmp.pursuit.radial import Radial, origin_factor


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((12, 12)) * 0.8 ** np.arange(12)[:, None]
    X = (rng.standard_normal((1500, 12)) @ mixing + 0.3).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[:150], X[150:]


@pytest.fixture(scope="module")
def model(data):
    return hbmp.HBMP(48, random_state=0).fit(data[1])


def test_products_from_the_origin_rank_points_of_unit_length_as_cosines():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5)) + np.array([1, 0.5, 0, 0, 0])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    mean = X.mean(axis=0)
    np.testing.assert_allclose(mean + nearest_by_product(X - mean), 0, atol=0.01)


def test_the_coupling_is_full_where_hamming_distance_ranks_badly_anyway(data):
    def coupling(n_bits, **settings):
        function = Rebuilding(n_iter=1, **settings)
        function.pursue(data[1], n_bits, random_state=0)
        return function.coupling_

    assert [coupling(n_bits) for n_bits in (12, 18, 19)] == [0.6, 0.6, 1]
    assert coupling(8, nested=True) == 1


def test_the_radial_term_is_the_error_of_a_rows_own_score():
    rng = np.random.default_rng(0)
    points, atoms, codes = rng.standard_normal((30, 6)), rng.standard_normal((4, 6)), rng.choice([-1.0, 1.0], (30, 4))
    radial, left = Radial(2.0, rng.standard_normal(6), 6.0), 0.2
    terms = radial.terms(atoms, left)
    origin = origin_factor(left) * radial.origin
    wanted = np.square(points).sum(axis=1) / 2 + (0.5 - left) * 6
    own = ((points - origin) * (codes @ atoms)).sum(axis=1)
    aims, products = terms.aims(np.square(points).sum(axis=1) / 2), terms.products(points @ atoms.T)
    weight = 2 * origin_factor(left) / (6 + origin @ origin)
    np.testing.assert_allclose(aims - (products * codes).sum(axis=1), np.sqrt(weight) * (wanted - own), rtol=1e-4)


def test_the_radial_term_makes_own_scores_right(data):
    spread = {}
    for weight in (0.0, 4.0):
        function = Rebuilding(coupling=1.0, radial=weight)
        function.pursue(data[1], 12, random_state=0)
        rebuilt = function.rebuild(np.where(function.bits(data[1]) > 0, 1, -1)) - function.mean_
        own = ((data[1] - function.origin_) * rebuilt).sum(axis=1)
        spread[weight] = np.std(own - np.square(data[1] - function.mean_).sum(axis=1) / 2)
    assert spread[4.0] < 0.8 * spread[0.0]


def test_full_coupling_queries_are_products_with_rebuilt_vectors(data, model):
    function, codes = model.function_, model.transform(data[1])
    assert function.coupling_ == 1
    scores = model.project(data[0]) @ (codes * model.bit_weights_).T
    expected = (data[0] - function.origin_) @ (function.rebuild(codes) - function.mean_).T
    np.testing.assert_allclose(scores / np.abs(scores).mean(), expected / np.abs(expected).mean(), atol=1e-3)
    assert np.isfinite(model.bit_weights_).all()
    assert (model.bit_weights_ > 0).all()


def test_layers_find_more_than_codes_for_hamming_distance(data, model):
    queries, rows = data
    near = nearest(queries @ rows.T - np.square(rows).sum(axis=1) / 2, 10)
    found = {}
    for name, fitted in {
        "layers": model,
        "hamming": hbmp.HBMP(48, function=Rebuilding(coupling=0.75), random_state=0).fit(rows),
    }.items():
        weighted = (fitted.transform(rows) * fitted.bit_weights_).astype(np.float32)
        found[name] = shares_found(fitted.project(queries) @ weighted.T, near, 10).mean()
    assert found["layers"] > found["hamming"] + 0.05
    assert found["layers"] > 0.8


def test_an_index_ranks_layered_codes_as_the_products_do(data, model):
    codes, scores = model.transform(data[1]), model.project(data[0])
    index = hbmp.Index(48, bit_weights=model.bit_weights_)
    index.add(codes)
    _, ids = index.search(scores, 10)
    exact = nearest(scores @ (codes * model.bit_weights_).astype(np.float32).T, 10)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(ids, exact, strict=True)]) > 9.9


def test_codes_as_queries_rank_best_by_the_vectors_they_stand_for(data, model):
    queries, rows = data
    near = nearest(queries @ rows.T - np.square(rows).sum(axis=1) / 2, 10)
    weighted, asked = (model.transform(rows) * model.bit_weights_).astype(np.float32), model.transform(queries)
    hamming = shares_found(asked.astype(np.float32) @ weighted.T, near, 10).mean()
    assert shares_found(model.project(model.function_.rebuild(asked)) @ weighted.T, near, 10).mean() > hamming + 0.2


def test_prefixes_of_nested_codes_keep_their_weights(data):
    model = hbmp.HBMP(32, function=Rebuilding(nested=True), random_state=0).fit(data[1])
    np.testing.assert_array_equal(model.weights_for(8), model.bit_weights_[:8])
    near = nearest(data[0] @ data[1].T - np.square(data[1]).sum(axis=1) / 2, 10)
    codes, scores = model.transform(data[1]), model.project(data[0])
    found = [
        shares_found(scores[:, :n] @ (codes[:, :n] * model.weights_for(n)).astype(np.float32).T, near, 10).mean()
        for n in (4, 8, 16, 32)
    ]
    assert (np.diff(found) > 0.05).all()


@pytest.mark.parametrize(("far", "free"), [(0, False), (3, True)])
def test_queries_give_up_the_signs_of_codes_only_where_they_find_more(far, free):
    """Rows of unit length far from the origin: what their lengths owe to the mean moves the scores of queries."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((64, 64)))[0]
    X = (rng.standard_normal((2000, 64)) * np.arange(1, 65.0) ** -0.7) @ axes + far * (axes[:, 0] + axes[0])
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    model = hbmp.HBMP(64, random_state=0).fit(X)
    assert model.function_.free_queries_ == free
    assert (hbmp.hamming.signs(model.project(X)) == model.transform(X)).all() == (not free)
