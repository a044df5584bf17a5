"""Codes that rebuild best: levels on axes, successive bits, and queries whose signs are not the codes."""

import numpy as np
import pytest

import hbmp
from hbmp.methods.hbmp.axes import nearest_by_product
from hbmp.methods.hbmp.levels import MOST_BITS, bits_per_axis, level_atoms
from hbmp.methods.hbmp.recall import nearest, shares_found
from hbmp.methods.hbmp.unlabelled import Rebuilding
from hbmp.pursuit.sweeps import successive_codes


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


def test_bits_go_where_they_lower_the_error_most():
    variances = np.array([16.0, 1.0, 1.0, 0.001])
    given = bits_per_axis(variances, 8)
    assert given.sum() == 8
    assert list(given) == [4, 2, 2, 0]
    assert list(bits_per_axis(np.ones(2), 99)) == [MOST_BITS, MOST_BITS]


def test_sums_of_level_atoms_are_equally_spaced_levels():
    atoms = level_atoms(np.array([4.0]), 3)
    signs = 2 * ((np.arange(8)[:, None] >> np.arange(3)) & 1) - 1
    levels = np.sort((signs @ atoms).ravel())
    np.testing.assert_allclose(np.diff(levels), 2 * 0.5860, rtol=1e-5)  # twice the step for variance 1
    np.testing.assert_allclose(levels, -levels[::-1], rtol=1e-5)
    lengths = np.linalg.norm(level_atoms(np.array([9.0, 1.0]), 5), axis=1)
    assert (np.diff(lengths) <= 0).all()


def test_successive_codes_are_the_obvious_loop():
    rng = np.random.default_rng(0)
    overlaps = np.tril(rng.integers(-3, 4, (40, 40)), -1).astype(np.float32)
    overlaps += overlaps.T
    scores = rng.integers(-40, 41, (30, 40)).astype(np.float32)
    for score, found in zip(scores, successive_codes(scores, overlaps), strict=True):
        code = np.zeros(40)
        for bit in range(40):
            code[bit] = 1 if score[bit] - overlaps[bit] @ code >= 0 else -1
        np.testing.assert_array_equal(found, code)


def test_products_from_the_origin_rank_points_of_unit_length_as_cosines():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5)) + np.array([1, 0.5, 0, 0, 0])
    mean = X.mean(axis=0)
    assert nearest_by_product(X - mean)[1] > 0.1  # lengths of a normal variable follow from nothing
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    mean = X.mean(axis=0)
    origin, missed = nearest_by_product(X - mean)
    np.testing.assert_allclose(mean + origin, 0, atol=0.01)
    assert missed < 1e-3


def test_the_coupling_is_full_where_products_rank_and_nothing_is_asked_of_hamming_distance(data):
    def coupling(X, n_bits, **settings):
        function = Rebuilding(n_iter=1, **settings)
        function.pursue(X, n_bits, random_state=0)
        return function.coupling_

    assert [coupling(data[1], n_bits) for n_bits in (12, 23, 24)] == [0.75, 0.75, 1]
    assert coupling(data[1], 8, nested=True) == 1
    assert coupling(data[1] * np.arange(1, 1351)[:, None].astype(np.float32), 24) == 0.75


def test_full_coupling_queries_are_products_with_rebuilt_vectors(data, model):
    function, codes = model.function_, model.transform(data[1])
    assert function.coupling_ == 1
    scores = model.project(data[0]) @ (codes * model.bit_weights_).T
    expected = (data[0] - function.origin_) @ (function.rebuild(codes) - function.mean_).T
    np.testing.assert_allclose(scores / np.abs(scores).mean(), expected / np.abs(expected).mean(), atol=1e-3)
    assert np.isfinite(model.bit_weights_).all()
    assert (model.bit_weights_ > 0).all()


def test_levels_find_more_than_codes_for_hamming_distance(data, model):
    queries, rows = data
    near = nearest(queries @ rows.T - np.square(rows).sum(axis=1) / 2, 10)
    found = {}
    for name, fitted in {
        "levels": model,
        "hamming": hbmp.HBMP(48, function=Rebuilding(coupling=0.75), random_state=0).fit(rows),
    }.items():
        weighted = (fitted.transform(rows) * fitted.bit_weights_).astype(np.float32)
        found[name] = shares_found(fitted.project(queries) @ weighted.T, near, 10).mean()
    assert found["levels"] > found["hamming"] + 0.05
    assert found["levels"] > 0.8


def test_an_index_ranks_level_codes_as_the_products_do(data, model):
    codes, scores = model.transform(data[1]), model.project(data[0])
    index = hbmp.Index(48, bit_weights=model.bit_weights_)
    index.add(codes)
    _, ids = index.search(scores, 10)
    exact = nearest(scores @ (codes * model.bit_weights_).astype(np.float32).T, 10)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(ids, exact, strict=True)]) > 9.9


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
