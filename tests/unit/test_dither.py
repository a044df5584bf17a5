"""Thresholds of dithered bits: their order, what they do to codes, and that a model keeps them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import hbmp
from hbmp.methods.hbmp.dither import LEAST, thresholds, van_der_corput, with_signs_of
from hbmp.methods.hbmp.plan import DataFacts, resolve


def mirrored(number: int) -> Fraction:
    """The binary digits of a number behind the point, the last one first."""
    return sum((Fraction(int(digit), 2 ** (place + 1)) for place, digit in enumerate(bin(number)[:1:-1])), Fraction(0))


def test_the_order_mirrors_binary_digits():
    assert van_der_corput(40).tolist() == [float(mirrored(number)) for number in range(1, 41)]


@pytest.mark.parametrize("n", [1, 3, 8, 50])
def test_every_prefix_is_spread_evenly(n):
    found = np.sort(van_der_corput(n))
    widest = np.diff(np.concatenate([[0], found, [1]])).max()
    assert widest <= 2 ** -np.floor(np.log2(n + 1))


def test_thresholds_are_shares_of_a_bits_mean_size():
    odds = np.random.default_rng(0).normal(size=(50, 4)) * [1, 2, 3, 4]
    sizes = np.abs(odds).mean(axis=0)
    np.testing.assert_allclose(thresholds(odds, 0.2), 0.2 * sizes * [0, -0.5, 0.5, -0.75], rtol=1e-6)
    np.testing.assert_array_equal(thresholds(odds, 0.2, 3)[:3], 0)
    np.testing.assert_allclose(thresholds(odds[:, 2:], 0.2), thresholds(odds, 0.2, 2)[2:])
    denser = [0, -(0.5**2), 0.5**2, -(0.75**2)]  # beyond a share of 0.3 thresholds gather about 0
    np.testing.assert_allclose(thresholds(odds, 0.6), 0.6 * sizes * denser, rtol=1e-6)


def test_scores_keep_their_size_where_the_sign_is_theirs():
    found = with_signs_of(np.array([2.0, -3.0, 4.0, 0.5]), np.array([1.0, -1.0, -2.0, 0.0]))
    np.testing.assert_allclose(found, [2.0, -3.0, -2 * LEAST, 0.0])


@pytest.fixture(scope="module")
def overlapping():
    X, y = make_blobs(900, n_features=8, centers=3, cluster_std=6.0, random_state=0)
    return X.astype(np.float32), y


def fitted(X, y, **settings):
    return hbmp.HBMP(24, random_state=0, **settings).fit(X[:600], y[:600])


def test_thresholds_move_signs_and_leave_scores(overlapping):
    X, y = overlapping
    plain, dithered = fitted(X, y, dither=0), fitted(X, y, dither=0.5)
    odds = plain.encoder_.odds(X)
    np.testing.assert_allclose(dithered.encoder_.odds(X), odds)
    assert plain.encoder_.thresholds is None
    expected = thresholds(plain.encoder_.odds(X[:600]), 0.5, n_plain=9)  # three for each of three classes
    assert not expected[:9].any()
    assert expected[10:].all()
    np.testing.assert_array_equal(dithered.transform(X), np.where(odds - expected >= 0, 1, -1))
    scores = dithered.project(X)
    np.testing.assert_array_equal(np.where(scores >= 0, 1, -1), dithered.transform(X))
    same = dithered.transform(X) == plain.transform(X)
    assert 0 < (~same).mean() < 0.5
    same &= np.abs(odds) > 0.1
    np.testing.assert_allclose(scores[same], odds[same], rtol=1e-6)


def test_dithered_codes_rank_items_by_certainty(overlapping):
    """A real-valued query finds items of its class first whose class is certain."""
    X, y = overlapping
    scores = []
    for dither in (0, 0.3):
        model = fitted(X, y, dither=dither)
        queries, database = model.project(X[600:]), model.transform(X[:600])
        weights = model.bit_weights_
        scores.append(
            hbmp.metrics.mean_average_precision(
                queries, database, y[600:], y[:600], bit_weights=weights, ties="average"
            )
        )
    assert scores[1] > scores[0] + 0.005


def test_dither_is_for_many_bits_per_class():
    found = [
        resolve(hbmp.HBMP(n_bits).get_params(deep=False), DataFacts(5000, n_classes=n_classes)).dither
        for n_bits, n_classes in ((60, 10), (59, 10), (4, 2), (3, 2), (32, 100))
    ]
    assert found == [0.3, 0.0, 0.6, 0.0, 0.0]
    of_linear = hbmp.HBMP(64, function="linear").get_params(deep=False)
    assert resolve(of_linear, DataFacts(5000, n_classes=2)).dither == 0


def test_detail_bits_take_from_the_bits_per_class(overlapping):
    X, y = overlapping
    for detail_bits, expected in ((6, 0.3), (7, 0.0)):  # 18 and 17 label bits for three classes
        assert fitted(X, y, detail_bits=detail_bits).plan_.dither == expected
    chosen = fitted(X, y, detail_bits="auto").plan_
    assert chosen.dither == (0.3 if chosen.n_label_bits >= 18 else 0.0)


def test_a_saved_model_keeps_its_thresholds(overlapping, tmp_path):
    X, y = overlapping
    model = fitted(X, y)
    assert model.encoder_.thresholds is not None
    model.save(tmp_path / "model")
    again = hbmp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.project(X), model.project(X))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
