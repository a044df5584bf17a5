"""`HBMP(queries="floats")`: full coupling, layers where variances fall steeply, and offsets of scores."""

import numpy as np
import pytest
from sklearn.base import clone

import hbmp
from hbmp.methods.hbmp.lengths import RebuildingLengths
from hbmp.methods.hbmp.offsets import RebuildingOffsets, for_floats
from hbmp.methods.hbmp.recall import nearest, shares_found
from hbmp.methods.hbmp.stages import ALIKE, layer_size, layered_atoms, staged_atoms
from hbmp.methods.hbmp.unlabelled import Rebuilding


def rows_of(power, n_features=96, n_rows=1700, mean=0.0):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
    X = rng.standard_normal((n_rows, n_features)) * np.arange(1.0, n_features + 1) ** -power
    return (X @ axes + mean).astype(np.float32)


def recall(similarity, queries, rows):
    near = nearest(queries @ rows.T - np.square(rows).sum(axis=1) / 2, 10)
    return shares_found(similarity, near, 10).mean()


@pytest.fixture(scope="module")
def far():
    """Rows of a steep spectrum, far from the origin: queries and rows."""
    X = rows_of(1.2, 64, mean=1.0)
    return X[:200], X[200:]


@pytest.fixture(scope="module")
def offsets(far):
    function = RebuildingOffsets(coupling=1.0, length_bits=8)
    return function, function.pursue(far[1], 128, random_state=0)


@pytest.mark.parametrize(
    ("variances", "n_bits", "spare", "expected"),
    [
        (np.ones(40), 40, 8, 40),  # all alike
        (np.ones(40), 30, 8, 30),
        (np.ones(40), 90, 8, 40),  # at most a bit per axis
        (np.append(np.ones(4), np.full(36, 0.01)), 40, 8, 4),  # few hold the variance
        (np.append(np.ones(4), np.full(36, 0.01)), 30, 8, 30),
        (np.append(np.ones(4), np.full(36, 0.2)), 40, 8, 40),
        (np.append(np.ones(1), np.full(99, 0.01)), 80, 8, 5),  # not one by one
    ],
)
def test_a_layer_takes_axes_of_like_variance(variances, n_bits, spare, expected):
    assert layer_size(variances, n_bits, ALIKE, spare) == expected


def test_layers_rebuild_a_steep_spectrum_better_and_leave_a_flat_one_alone():
    unexplained = {}
    for power in (1.2, 0.2):
        points = rows_of(power)
        points -= points.mean(axis=0)
        layers = [layered_atoms(points, 96, 15, None, np.random.default_rng(0), alike) for alike in (0.0, ALIKE)]
        unexplained[power] = [left[-1] for *_, left in layers]
        assert (layers[1][1] == [96]) == (power == 0.2)
    assert unexplained[1.2][1] < 0.8 * unexplained[1.2][0]
    assert unexplained[0.2][1] == unexplained[0.2][0]
    assert unexplained[0.2][0] <= staged_atoms(points, [96], 1.0, 15, np.random.default_rng(0))[1][-1]


def test_real_valued_queries_find_more_with_codes_for_them():
    X = rows_of(1.0)
    queries, rows = X[:200], X[200:]
    found = {}
    for name in ("codes", "floats"):
        model = hbmp.HBMP(96, queries=name, random_state=0).fit(rows)
        weighted = (model.transform(rows) * model.bit_weights_).astype(np.float32)
        found[name] = recall(model.project(queries) @ weighted.T, queries, rows)
    assert found["floats"] > found["codes"] + 0.03


def test_offsets_make_scores_rank_as_distances_to_rebuilt_rows(far, offsets):
    (queries, rows), (function, book) = far, offsets
    rebuilt = function.rebuild(book.codes)
    linear = function.queries(queries) @ (book.codes * book.weights).astype(np.float32).T
    exact = queries @ rebuilt.T - np.square(rebuilt).sum(axis=1) / 2
    found, best = (recall(each, queries, rows) for each in (linear, exact))
    assert found > best - 0.06
    plain = function.directions_of_
    assert found > recall(plain.queries(queries) @ plain_codes(plain, rows), queries, rows) + 0.05
    assert function.recall_.estimate == pytest.approx(found, abs=0.08)


def plain_codes(function, rows):
    """Codes without their offset bits, as columns."""
    return function.bits(rows).T


def test_offset_bits_number_the_lengths_of_rebuilt_rows(far, offsets):
    function, book = offsets
    assert book.codes.shape[1] == 128
    levels = (book.codes[:, -8:] > 0) @ (2 ** np.arange(8)[::-1])
    lengths = np.square(function.rebuild(book.codes) - function.mean_).sum(axis=1)
    assert np.corrcoef(function.levels_[levels], -lengths / 2)[0, 1] > 0.99
    np.testing.assert_array_equal(function.project(far[0]) > 0, function.bits(far[0]) > 0)


def test_inner_products_of_rows_far_from_the_origin_need_no_lengths(far):
    queries, rows = far
    function, book = for_floats(Rebuilding(metric="ip"), rows, 128, 0)
    linear = function.queries(queries) @ (book.codes * book.weights).astype(np.float32).T
    near = nearest(queries @ rows.T, 10)
    lengths = RebuildingLengths(coupling=1.0, metric="ip", length_bits=5)
    other = lengths.pursue(rows, 128, random_state=0)
    by_lengths = lengths.queries(queries) @ (other.codes * other.weights).astype(np.float32).T
    assert shares_found(linear, near, 10).mean() >= shares_found(by_lengths, near, 10).mean() - 0.01


def test_a_coupling_of_ones_own_is_refused(far):
    with pytest.raises(ValueError, match=r"needs a coupling of 1.*found 0.5"):
        hbmp.HBMP(16, function=Rebuilding(coupling=0.5), queries="floats").fit(far[1])


def test_the_model_is_saved_cloned_and_searched_by_floats(far, tmp_path):
    queries, rows = far
    model = hbmp.HBMP(64, queries="floats", random_state=0)
    assert clone(model).queries == "floats"
    model.fit(rows).save(tmp_path / "model")
    again = hbmp.load(tmp_path / "model")
    assert again.queries == again.plan_.queries == "floats"
    np.testing.assert_array_equal(again.project(queries), model.project(queries))
    database = hbmp.Database.build(model, rows)
    for real_valued in (None, False):
        distances, _ = database.search(queries[:5], 10, real_valued=real_valued)
        as_asked = database.search_codes(
            model.transform(queries[:5]) if real_valued is False else model.project(queries[:5]), 10
        )
        np.testing.assert_array_equal(distances, as_asked[0])
