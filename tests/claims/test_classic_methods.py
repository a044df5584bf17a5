"""What the publications of LSH, PCA codes, ITQ, spectral hashing and CCA-ITQ promise, as properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import hbmp
from hbmp.methods._shared.principal import principal_components
from hbmp.methods._shared.rotation import learn_rotation, nearest_rotation, quantisation_loss, random_rotation
from hbmp.methods.cca_itq import canonical_directions
from hbmp.methods.sh import smoothest_modes


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order].astype(np.float32), y[order]


def normal_points(n, d, seed):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


@settings(max_examples=15, deadline=None)
@given(angle=st.floats(0.05, 3.1), seed=st.integers(0, 99), stretch=st.floats(0.1, 10))
def test_lsh_bits_agree_with_probability_one_minus_angle_over_pi(angle, seed, stretch):
    a, b = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 2)))[0].T
    pair = np.stack([a, stretch * (np.cos(angle) * a + np.sin(angle) * b)]).astype(np.float32)
    codes = hbmp.get_method("lsh")(20_000, centre=False, random_state=seed).fit(pair).transform(pair)
    assert np.mean(codes[0] == codes[1]) == pytest.approx(1 - angle / np.pi, abs=0.018)  # five deviations


def test_lsh_from_the_mean_tells_apart_what_lies_in_one_cone():
    X = 50 + normal_points(400, 10, 0)
    spread = {
        centre: np.abs(hbmp.get_method("lsh")(64, centre=centre, random_state=0).fit(X).transform(X).mean(axis=0))
        for centre in (False, True)
    }
    assert spread[True].mean() < 0.1
    assert spread[False].mean() > 0.7


@pytest.mark.parametrize("name", ["pca_rotation", "itq"])
def test_rotated_components_keep_the_distances_of_principal_components(name, digits):
    X = digits[0][:200]
    plain = hbmp.get_method("pca_sign")(8, random_state=0).fit(X).project(X)
    rotated = hbmp.get_method(name)(8, random_state=0).fit(X).project(X)
    np.testing.assert_allclose(rotated @ rotated.T, plain @ plain.T, atol=1e-3 * np.abs(plain @ plain.T).max())
    assert not np.allclose(np.abs(rotated), np.abs(plain), atol=0.1)


def test_rotation_shares_the_variance_among_the_bits(digits):
    X = digits[0]
    variances = [
        np.mean([hbmp.get_method(name)(16, random_state=s).fit(X).project(X).var(axis=0).max() for s in range(3)])
        for name in ("pca_sign", "pca_rotation")
    ]
    assert variances[1] < 0.8 * variances[0]


@pytest.mark.parametrize("shape", [(5, 5), (3, 8)])
def test_random_rotations_are_orthonormal_and_uniform(shape):
    rng = np.random.default_rng(0)
    drawn = np.stack([random_rotation(*shape, rng) for _ in range(2000)])
    products = drawn @ drawn.transpose(0, 2, 1)
    np.testing.assert_allclose(products, np.tile(np.eye(shape[0]), (2000, 1, 1)), atol=1e-9)
    np.testing.assert_allclose(drawn.mean(axis=0), 0, atol=5 / np.sqrt(2000 * shape[1]))
    np.testing.assert_allclose(drawn.var(axis=0), 1 / shape[1], rtol=0.25)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), dimensions=st.integers(1, 6), more=st.integers(0, 5))
def test_itq_loss_never_rises_and_the_rotation_stays_one(seed, dimensions, more):
    points = normal_points(40, dimensions, seed).astype(np.float64)
    rotation, losses = learn_rotation(points, dimensions + more, 15, np.random.default_rng(seed))
    assert len(losses) == 16
    assert (np.diff(losses) <= 1e-9).all()
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(dimensions), atol=1e-9)
    scores = points @ rotation
    total = 0.0
    for row in scores:
        for value in row:
            total += ((1 if value >= 0 else -1) - value) ** 2
    assert losses[-1] == pytest.approx(total / 40)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), more=st.integers(0, 3))
def test_no_rotation_lies_closer_to_given_signs(seed, more):
    rng = np.random.default_rng(seed)
    points, signs = rng.standard_normal((30, 4)), rng.choice([-1.0, 1.0], (30, 4 + more))
    best = quantisation_loss(signs, points @ nearest_rotation(points, signs))
    others = [quantisation_loss(signs, points @ random_rotation(4, 4 + more, rng)) for _ in range(50)]
    assert best <= min(others)


def test_itq_quantises_better_than_random_rotation_and_principal_components(digits):
    X, losses = digits[0], {}
    for name in ("pca_sign", "pca_rotation", "itq"):
        scores = hbmp.get_method(name)(16, random_state=0).fit(X).project(X)
        losses[name] = quantisation_loss(np.sign(scores), scores)
    assert losses["itq"] < min(losses["pca_sign"], losses["pca_rotation"])
    assert hbmp.get_method("itq")(16, random_state=0).fit(X).loss_[-1] == pytest.approx(losses["itq"], rel=1e-4)


def test_itq_finds_the_corners_of_a_turned_cube():
    rng = np.random.default_rng(3)
    corners = rng.choice([-1.0, 1.0], (500, 6)) + 0.1 * rng.standard_normal((500, 6))
    turned = corners @ random_rotation(6, 6, rng)
    best = min(learn_rotation(turned, 6, 50, np.random.default_rng(seed))[1][-1] for seed in range(10))
    assert best < 0.1  # 6 · 0.1² is the noise


@pytest.mark.parametrize("name", ["itq", "pca_rotation", "pca_sign"])
def test_more_bits_than_components_are_refused_in_words(name):
    cls = hbmp.get_method(name)
    text = (
        f"{cls.__name__} takes its bits from principal components: n_bits=64 needs 64 features, found 10. "
        "Ask for fewer bits, or use 'lsh'."
    )
    with pytest.raises(ValueError, match=text):
        cls(64).fit(normal_points(100, 10, 0))
    with pytest.raises(ValueError, match="needs 64 samples, found 50"):
        cls(64).fit(normal_points(50, 100, 0))
    assert hbmp.get_method("lsh")(64).fit(normal_points(50, 10, 0)).transform(normal_points(3, 10, 1)).shape == (3, 64)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=6), st.integers(1, 20))
def test_spectral_hashing_takes_the_lowest_frequencies(ranges, n_bits):
    ranges = np.array(ranges)
    component, modes = smoothest_modes(ranges, n_bits)
    every = sorted(k / side for side in ranges for k in range(1, n_bits + 1))
    np.testing.assert_allclose(modes / ranges[component], every[:n_bits])
    assert len({*zip(component, modes, strict=True)}) == n_bits


def test_spectral_hashing_is_balanced_and_uncorrelated_on_a_box():
    box = np.random.default_rng(0).uniform(0, 1, (20_000, 3)) * (3.0, 2.0, 0.5)
    codes = hbmp.get_method("sh")(4, random_state=0).fit(box).transform(box).astype(float)
    assert np.abs(codes.mean(axis=0)).max() < 0.03
    assert np.abs(codes.T @ codes / len(box) - np.eye(4)).max() < 0.03


def test_spectral_hashing_gives_long_sides_more_bits():
    box = np.random.default_rng(0).uniform(0, 1, (2000, 2)) * (4.0, 1.1)
    model = hbmp.get_method("sh")(6, random_state=0).fit(box)
    along = np.abs(model.directions_).argmax(axis=0)
    waves = np.sort(model.frequencies_[along == 0] * 4 / np.pi)
    np.testing.assert_allclose(waves, np.arange(1, len(waves) + 1), rtol=0.05)
    assert (along == 0).sum() == 5


def test_canonical_directions_solve_the_published_eigenproblem():
    rng = np.random.default_rng(0)
    Y = np.eye(4)[rng.integers(0, 4, 300)]
    X = Y @ rng.standard_normal((4, 7)) + rng.standard_normal((300, 7))
    X, Y, rho = X - X.mean(axis=0), Y - Y.mean(axis=0), 1e-3
    directions, correlations = canonical_directions(X, Y, rho)
    left = X.T @ Y @ np.linalg.inv(Y.T @ Y + 300 * rho * np.eye(4)) @ Y.T @ X
    right = X.T @ X + 300 * rho * np.eye(7)
    assert directions.shape == (7, 3)  # four classes: three directions
    np.testing.assert_allclose(left @ directions, right @ directions * correlations**2, atol=1e-8)
    np.testing.assert_allclose(directions.T @ right @ directions / 300, np.eye(3), atol=1e-9)
    values = np.sort(np.linalg.eigvals(np.linalg.solve(right, left)).real)[::-1]
    np.testing.assert_allclose(np.sqrt(values[:3]), correlations, rtol=1e-6)
    assert np.abs(values[3:]).max() < 1e-9


def test_bits_beyond_the_correlated_directions_are_the_published_rotation_of_zeros():
    """Further directions scaled by their correlation, which is 0, change nothing that the rotation sees."""
    points = normal_points(60, 3, 0).astype(np.float64)
    padded = np.hstack([points, np.zeros((60, 5))])
    rotation = random_rotation(3, 8, np.random.default_rng(0))
    whole = np.linalg.svd(np.vstack([rotation, np.zeros((5, 8))]))[2]
    full = np.vstack([rotation, whole[3:]])  # a rotation of 8 dimensions that begins with ours
    np.testing.assert_allclose(full @ full.T, np.eye(8), atol=1e-9)
    for _ in range(10):
        signs = np.where(padded @ full >= 0, 1.0, -1.0)
        np.testing.assert_array_equal(signs, np.where(points @ rotation >= 0, 1.0, -1.0))
        left, _, right = np.linalg.svd(signs.T @ padded)
        full = (left @ right).T  # the published update
        rotation = nearest_rotation(points, signs)
    np.testing.assert_allclose(padded @ full, points @ rotation, atol=1e-9)


@pytest.mark.parametrize("n_bits", [4, 32, 64])
def test_cca_itq_takes_any_length_whatever_the_number_of_classes(n_bits, digits):
    X, y = digits
    model = hbmp.get_method("cca_itq")(n_bits, random_state=0).fit(X[:1200], y[:1200])
    assert len(model.correlations_) == min(9, n_bits)
    codes = model.transform(X[1200:])
    assert len(np.unique(codes, axis=1).T) > 0.9 * n_bits  # hardly a bit is another's copy
    assert model.score(X[1200:], y[1200:]) > (0.6 if n_bits == 4 else 0.8)


def test_the_unit_of_the_features_does_not_matter_to_cca_itq(digits):
    X, y = digits
    codes = [hbmp.get_method("cca_itq")(16, random_state=0).fit(X * s, y).transform(X * s) for s in (1, 1000, 0.001)]
    assert min(np.mean(codes[0] == other) for other in codes[1:]) > 0.999


def test_principal_components_do_not_mind_a_large_mean():
    X = normal_points(300, 5, 0) * np.float32([5, 4, 3, 2, 1])
    near, far = (principal_components(X + shift, 3, np.random.default_rng(0))[1] for shift in (0, 1000))
    np.testing.assert_allclose(np.abs(near.T @ far), np.eye(3), atol=0.01)
