"""What the publications of KSH and SDH promise, as properties; and that labels bring what they should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from sklearn.datasets import load_digits

import hbmp
from hbmp.methods._shared.anchors import AnchorKernel
from hbmp.methods._shared.label_rows import label_rows
from hbmp.methods._shared.products import gram
from hbmp.methods.ksh import _Residue, descend, learn_bit, smooth_objective, spectral_start, whitening
from hbmp.methods.sdh import classifier_step, codes_step, ridge_solution

SUPERVISED, UNSUPERVISED = ("cca_itq", "ksh", "sdh"), ("lsh", "pca_sign", "pca_rotation", "itq", "sh")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order].astype(np.float32), y[order]


def test_labels_bring_what_no_method_without_them_reaches(digits):
    X, y = digits
    scores = {
        name: hbmp.get_method(name)(16, random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
        for name in (*SUPERVISED, *UNSUPERVISED)
    }
    assert min(scores[name] for name in SUPERVISED) > max(scores[name] for name in UNSUPERVISED) + 0.1


@pytest.mark.parametrize("name", SUPERVISED)
def test_label_sets_with_one_label_each_are_classes(name, digits):
    X, y = digits[0][:300], digits[1][:300]
    small = {"random_state": 0, **hbmp.get_method(name).smoke}
    classes = hbmp.get_method(name)(12, **small).fit(X, y).transform(X)
    sets = hbmp.get_method(name)(12, **small).fit(X, np.eye(10, dtype=int)[y]).transform(X)
    np.testing.assert_array_equal(classes, sets)


@pytest.mark.parametrize("name", SUPERVISED)
def test_label_sets_are_retrieved_by_what_they_share(name):
    rng = np.random.default_rng(0)
    labels = (rng.random((600, 6)) < 0.3).astype(int)
    X = (labels @ rng.standard_normal((6, 20)) + 0.3 * rng.standard_normal((600, 20))).astype(np.float32)
    model = hbmp.get_method(name)(24, random_state=0).fit(X[:400], labels[:400])
    blind = hbmp.get_method("itq")(16, random_state=0).fit(X[:400])
    assert model.score(X[400:], labels[400:]) > blind.score(X[400:], labels[400:]) + 0.02


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize("y", [np.zeros(30, dtype=int), np.ones((30, 4), dtype=int)])
def test_labels_that_tell_nothing_apart_are_refused(name, y):
    X = np.random.default_rng(0).standard_normal((30, 5))
    with pytest.raises(ValueError, match="codes need at least two"):
        hbmp.get_method(name)(4).fit(X, y)


@pytest.mark.parametrize(("name", "setting"), [("ksh", "n_anchors"), ("sdh", "n_iter"), ("itq", "n_iter")])
@pytest.mark.parametrize("value", [0, 1.5, True, "many"])
def test_impossible_counts_are_refused(name, setting, value, digits):
    with pytest.raises(ValueError, match=f"{setting} must be a positive whole number, found"):
        hbmp.get_method(name)(4, **{setting: value}).fit(*digits)


def test_anchor_features_are_what_their_formula_says():
    X = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32) + 4
    kernel = AnchorKernel(n_anchors=7, width=0.6).fit(X, np.random.default_rng(0))
    anchors = kernel.anchors_ * kernel.scale_ + kernel.mean_
    squares = np.array([[np.sum((x - a) ** 2) for a in anchors] for x in X])
    np.testing.assert_allclose(kernel.transform(X), np.exp(-squares / (2 * 0.36 * squares.mean())), rtol=1e-4)
    assert {tuple(row) for row in anchors.round(4)} <= {tuple(row) for row in X.round(4)}


@pytest.mark.parametrize("name", ["ksh", "sdh"])
@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])  # powers of two: no digit changes
def test_the_unit_of_the_features_does_not_matter_to_kernels(name, unit, digits):
    X, y = digits[0][:300], digits[1][:300]
    small = {"random_state": 0, **hbmp.get_method(name).smoke}
    codes = [hbmp.get_method(name)(8, **small).fit(X * u, y).transform(X * u) for u in (1, np.float32(unit))]
    np.testing.assert_array_equal(codes[0], codes[1])


@pytest.mark.parametrize("name", ["ksh", "itq", "sh", "pca_rotation"])
def test_samples_that_do_not_differ_are_refused(name):
    with pytest.raises(ValueError, match="X is the same in every row"):
        hbmp.get_method(name)(2).fit(np.full((20, 4), 3.0), np.arange(20) % 2)


# KSH ---------------------------------------------------------------------------------------------------------------


def similarities(labels):
    return np.array([[1 if (a * b).any() else -1 for b in labels] for a in labels])


@st.composite
def ksh_problems(draw, n_bits=6):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    labels = (rng.random((25, 4)) < draw(st.floats(0.1, 0.7))).astype(np.float32)
    features = rng.standard_normal((25, 5)) + labels @ rng.standard_normal((4, 5))
    features -= features.mean(axis=0)
    residue = _Residue(labels, n_bits)
    for _ in range(draw(st.integers(0, 3))):
        residue.take_off(rng.choice([-1.0, 1.0], 25))
    dense = n_bits * similarities(labels) - residue.signs @ residue.signs.T
    return features @ whitening(features), residue, dense, rng


@settings(max_examples=25, deadline=None)
@given(ksh_problems())
def test_ksh_residue_is_never_formed_but_acts_as_if(problem):
    _, residue, dense, rng = problem
    vectors = rng.standard_normal((25, 3))
    np.testing.assert_allclose(residue.times(vectors), dense @ vectors, atol=1e-9)
    np.testing.assert_allclose(residue.times(vectors[:, 0]), dense @ vectors[:, 0], atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(ksh_problems())
def test_ksh_starts_at_the_generalised_eigenvector(problem):
    features, residue, dense, _ = problem
    scores = features @ spectral_start(features, residue)
    assert scores @ scores == pytest.approx(25)
    top = eigh(features.T @ dense @ features, features.T @ features, eigvals_only=True)[-1]
    assert scores @ dense @ scores == pytest.approx(25 * top, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(ksh_problems())
def test_ksh_gradient_is_the_slope_of_the_smooth_objective(problem):
    _, residue, dense, rng = problem
    scores, towards = rng.standard_normal((2, 25))
    value, gradient = smooth_objective(scores, residue)
    smooth = 2 / (1 + np.exp(-scores)) - 1
    assert value == pytest.approx(-smooth @ dense @ smooth)
    ahead, behind = (smooth_objective(scores + e * towards, residue)[0] for e in (1e-5, -1e-5))
    assert gradient @ towards == pytest.approx((ahead - behind) / 2e-5, rel=1e-4, abs=1e-4)


@settings(max_examples=25, deadline=None)
@given(ksh_problems())
def test_ksh_gradient_steps_never_make_a_bit_worse(problem):
    features, residue, dense, _ = problem
    start = features @ spectral_start(features, residue)
    signs_before = np.where(start >= 0, 1, -1)
    direction, signs, fit = learn_bit(features, residue, 40)
    np.testing.assert_array_equal(signs, np.where(features @ direction >= 0, 1, -1))
    assert fit == pytest.approx(signs @ dense @ signs)
    assert fit >= signs_before @ dense @ signs_before - 1e-9


@settings(max_examples=25, deadline=None)
@given(ksh_problems())
def test_ksh_descent_lowers_the_smooth_objective(problem):
    features, residue, _, _ = problem
    start = spectral_start(features, residue)
    values = [smooth_objective(features @ descend(start, features, residue, n), residue)[0] for n in (1, 200)]
    before = smooth_objective(features @ start, residue)[0]
    assert values[0] <= before + 1e-9 * abs(before)
    assert values[1] <= before + 1e-9 * abs(before)


def test_ksh_objective_is_the_misfit_of_the_similarities(digits):
    X, y = digits[0][:200], digits[1][:200]
    model = hbmp.get_method("ksh")(12, n_anchors=40, random_state=0).fit(X, y)
    codes, wanted = model.transform(X).astype(float), similarities(np.eye(10)[y])
    slow = [np.mean((wanted - codes[:, :t] @ codes[:, :t].T / 12) ** 2) for t in range(13)]
    np.testing.assert_allclose(model.objective_, slow, rtol=1e-3)


def test_ksh_objective_falls_with_enough_bits_but_not_always(digits):
    """A whole h hᵀ a bit: with ten classes and one bit the misfit is above that of no code at all."""
    X, y = digits
    falls = hbmp.get_method("ksh")(16, n_iter=30, random_state=0).fit(X, y).objective_
    assert (np.diff(falls) < 0).all()
    assert hbmp.get_method("ksh")(1, n_iter=30, random_state=0).fit(X, y).objective_[-1] > 1


def test_ksh_fits_no_more_than_the_labelled_samples_it_was_allowed(digits):
    X, y = digits
    model = hbmp.get_method("ksh")(8, n_anchors=50, n_labelled=200, n_iter=20, random_state=0)
    assert model.fit(X, y).kernel_.anchors_.shape == (50, 64)
    assert model.score(X, y) > 0.5


# SDH ---------------------------------------------------------------------------------------------------------------


def sdh_problem(seed, n_bits=5):
    rng = np.random.default_rng(seed)
    labels = label_rows(rng.integers(0, 3, 30)).astype(np.float64)
    features = rng.standard_normal((30, 6))
    codes = rng.choice([-1.0, 1.0], (30, n_bits))
    return rng, labels, features, codes


def sdh_objective(labels, codes, classifier, scores, weight):
    return np.sum((labels - codes @ classifier) ** 2) + weight * np.sum((codes - scores) ** 2)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-5, 0.1, 3.0]))
def test_sdh_codes_end_where_no_single_bit_is_better(seed, weight):
    rng, labels, _, codes = sdh_problem(seed)
    classifier, scores = rng.standard_normal((5, 3)), rng.standard_normal((30, 5))
    before = sdh_objective(labels, codes, classifier, scores, weight)
    after = codes_step(codes, labels, classifier, scores, weight, 100)
    best = sdh_objective(labels, after, classifier, scores, weight)
    assert best <= before + 1e-9
    for row in range(30):
        for bit in range(5):
            flipped = after.copy()
            flipped[row, bit] *= -1
            assert sdh_objective(labels, flipped, classifier, scores, weight) >= best - 1e-9
    assert set(np.unique(after)) <= {-1.0, 1.0}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 10))
def test_sdh_classifier_and_function_are_the_minimisers(seed, strength):
    _, labels, features, codes = sdh_problem(seed)
    for inputs, targets, found in (
        (codes, labels, classifier_step(codes, labels, strength)),
        (features, codes, ridge_solution(gram(features, features), gram(features, codes), strength)),
    ):
        slope = -2 * inputs.T @ (targets - inputs @ found) + 2 * strength * found
        np.testing.assert_allclose(slope, 0, atol=1e-8)


@pytest.mark.parametrize("weight", [1e-5, 0.01, 1.0])
@pytest.mark.parametrize("multi_label", [False, True])
def test_sdh_none_of_the_three_steps_raises_the_objective(weight, multi_label, digits):
    X, y = digits[0][:500], digits[1][:500]
    labels = np.eye(10, dtype=int)[y] | np.eye(10, dtype=int)[(y + 3) % 7] if multi_label else y
    settings = {"n_anchors": 60, "n_iter": 6, "function_weight": weight, "random_state": 0}
    model = hbmp.get_method("sdh")(12, **settings).fit(X, labels)
    assert len(model.loss_) == 1 + 3 * 6
    assert (np.diff(model.loss_) <= 1e-6 * model.loss_[0]).all()
    assert model.loss_[-1] < 0.9 * model.loss_[0]


def test_sdh_more_samples_than_its_limit_are_drawn_down(digits):
    X, y = digits
    model = hbmp.get_method("sdh")(8, n_anchors=100, max_rows=600, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
