"""The pursuit on features against slow loops, and the hash function that comes of it."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs

import hbmp
from hbmp.methods.hbmp.unlabelled import Rebuilding, scaled_axes
from hbmp.pursuit.features import choose_codes, code_book, fit_atoms, overlaps_of, refine


def some(n=60, m=7, b=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, m)), np.where(rng.random((n, b)) < 0.5, 1.0, -1.0), rng.standard_normal((b, m))


def value(scores, overlaps, coupling, code):
    """What a code is worth to a point, by its definition."""
    total = 0.0
    for k in range(len(code)):
        total += 2 * scores[k] * code[k]
        for j in range(len(code)):
            total -= coupling * overlaps[j, k] * code[j] * code[k]
    return total


@pytest.mark.parametrize("coupling", [0.0, 0.3, 1.0])
def test_no_flip_betters_a_chosen_code(coupling):
    points, _, atoms = some()
    scores, overlaps = points @ atoms.T, overlaps_of(atoms)
    codes = choose_codes(scores, overlaps, coupling)
    for row, code in zip(scores, codes, strict=True):
        chosen = value(row, overlaps, coupling, code)
        for bit in range(len(code)):
            other = code.copy()
            other[bit] *= -1
            assert value(row, overlaps, coupling, other) <= chosen + 1e-9


def test_fitted_atoms_leave_few_points_short_of_their_best_code():
    points, codes, _ = some(n=300, m=12, b=6)
    atoms, _ = refine(points, codes, 0.5, 10)
    scores, overlaps = points @ atoms.T, overlaps_of(atoms)
    all_codes = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    worth = 2 * scores @ all_codes.T - 0.5 * np.einsum("cj,jk,ck->c", all_codes, overlaps, all_codes)
    chosen = zip(scores, choose_codes(scores, overlaps, 0.5), strict=True)
    found = [value(row, overlaps, 0.5, code) for row, code in chosen]
    assert np.isclose(found, worth.max(axis=1)).mean() > 0.95


def test_no_coupling_is_a_linear_function():
    points, _, atoms = some()
    scores = points @ atoms.T
    np.testing.assert_array_equal(choose_codes(scores, overlaps_of(atoms), 0.0), np.where(scores >= 0, 1, -1))


def test_coupling_is_a_push_away_from_the_mean():
    points, _, atoms = some()
    overlaps = overlaps_of(atoms)
    coupled = choose_codes(points @ atoms.T, overlaps, 0.4)
    np.testing.assert_array_equal(coupled, choose_codes((points / 0.4) @ atoms.T, overlaps, 1.0))
    assert (coupled != choose_codes(points @ atoms.T, overlaps, 1.0)).any()


def test_codes_passed_in_stay_untouched():
    points, codes, atoms = some()
    before = codes.copy()
    choose_codes(points @ atoms.T, overlaps_of(atoms), 0.4, start=codes)
    refine(points, codes, 0.4, 2)
    np.testing.assert_array_equal(codes, before)


def test_atoms_are_least_squares():
    points, codes, _ = some()
    design = np.vstack([codes, np.sqrt(1e-3 * 60) * np.eye(5)])  # a small ridge
    expected = np.linalg.lstsq(design, np.vstack([points, np.zeros((5, 7))]), rcond=None)[0]
    np.testing.assert_allclose(fit_atoms(codes, points), expected)


def test_full_coupling_never_rebuilds_less():
    points, codes, _ = some(n=300, m=12, b=8)
    _, left = refine(points, codes, 1.0, 15)
    assert (np.diff(left) <= 1e-6).all()
    assert left[-1] < left[0]


def test_code_book_is_the_pursuit_of_the_inner_products():
    points, codes, _ = some(n=40)
    book = code_book(codes, points, weighting="least-squares", ridge=0.0)
    lengths = np.linalg.norm(points, axis=1)
    R = points @ points.T / lengths.max() ** 2
    assert np.abs(R).max() <= 1 + 1e-12
    off = ~np.eye(40, dtype=bool)
    rows = np.stack([np.outer(v, v)[off] for v in codes.T], axis=1)
    np.testing.assert_allclose(book.weights, np.linalg.lstsq(rows, R[off], rcond=None)[0])
    for size in range(6):
        weights = book.weights_for(size) if size else np.empty(0)
        assert book.residuals[size] == pytest.approx(np.linalg.norm(R[off] - rows[:, :size] @ weights))


def test_the_last_axis_gains_what_was_asked_for():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((500, 6)) * [8, 5, 3, 2, 1, 0] + 3).astype(np.float32)
    mean, axes = scaled_axes(X, 4, 1.2)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-5)
    assert axes.shape == (6, 5)  # the feature that never changes has no axis
    lengths = np.linalg.norm(axes, axis=0)
    assert lengths[0] == pytest.approx(1)
    assert lengths[3] == pytest.approx(1.2, rel=1e-4)
    assert (np.diff(lengths) > 0).all()
    assert np.linalg.norm(scaled_axes(X, 4, 1.0)[1], axis=0) == pytest.approx(np.ones(5), rel=1e-5)


@pytest.mark.parametrize(("n_features", "n_bits"), [(12, 8), (3, 16), (1, 4), (40, 1)])
def test_any_number_of_bits_for_any_number_of_features(n_features, n_bits):
    X = make_blobs(80, n_features=n_features, centers=4, random_state=0)[0].astype(np.float32)
    function = Rebuilding()
    book = function.pursue(X, n_bits, random_state=0)
    scores = function.project(X)
    assert scores.shape == book.codes.shape == (80, n_bits)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(np.where(scores >= 0, 1, -1), book.codes)
    assert function.unmatched(X, book.codes) == 0
    assert np.isfinite(book.weights).all()
    again = clone(function)
    again.pursue(X, n_bits, random_state=0)
    np.testing.assert_array_equal(again.project(X), scores)


def test_real_valued_queries_are_free_of_the_weights():
    X = np.random.default_rng(0).standard_normal((200, 6)).astype(np.float32) * [4, 3, 2, 2, 1, 1]
    function = Rebuilding()
    weights = function.pursue(X.astype(np.float32), 6, random_state=0).weights
    codes = np.where(function.project(X) >= 0, 1, -1)
    agreement = (X - function.mean_) @ function.directions_
    scores = agreement - function.shift_ - function.coupling_ / 2 * codes @ function.overlaps_
    usual = codes * scores > 1e-3
    ratio = (function.project(X) * weights / scores)[usual]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


def test_the_function_is_saved_with_the_model_that_holds_it(tmp_path):
    X = np.random.default_rng(0).standard_normal((80, 6)).astype(np.float32)
    model = hbmp.get_method("itq")(4, random_state=0).fit(X)
    model.function_ = Rebuilding()
    model.function_.pursue(X, 4, random_state=0)
    model.save(tmp_path / "model")
    again = hbmp.load(tmp_path / "model").function_
    np.testing.assert_array_equal(again.project(X), model.function_.project(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"coupling": 1.5}, "coupling must be a number from 0 to 1"),
        ({"gain": 0.5}, "gain must be at least 1"),
        ({"n_iter": 0}, "n_iter must be a positive whole number"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    X = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    with pytest.raises(ValueError, match=message):
        Rebuilding(**settings).pursue(X, 2)


def test_what_it_cannot_do_is_said():
    X = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    function = Rebuilding()
    function.pursue(X, 2, random_state=0)
    with pytest.raises(ValueError, match="not shifted"):
        function.rescale(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="finds its own codes"):
        function.fit(X, np.ones((20, 2)))
    with pytest.raises(ValueError, match="the same in every row"):
        Rebuilding().pursue(np.ones((5, 3), np.float32), 2)
