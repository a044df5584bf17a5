"""Recall estimated while fitting without labels: its parts by hand, and how often its interval covers the truth."""

import numpy as np
import pytest

import hbmp
from hbmp.methods.hbmp.recall import distortion, interval, nearest, shares_found


def low_rank(n, d, rng, basis):
    return (rng.standard_normal((n, len(basis))) @ basis + 0.1 * rng.standard_normal((n, d))).astype(np.float32)


def true_recall(model, queries, rows, k=10):
    near = nearest(queries @ rows.T - np.square(rows).sum(axis=1) / 2, k)
    weighted = model.transform(rows).astype(np.float32) * model.bit_weights_.astype(np.float32)
    return shares_found(model.project(queries) @ weighted.T, near, k).mean()


def test_shares_found_by_hand():
    similarity = np.array([[5.0, 4.0, 3.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
    near = np.array([[0, 3], [0, 1]])
    np.testing.assert_allclose(shares_found(similarity, near, 2), [0.5, 0.5])  # equal values share two places
    np.testing.assert_allclose(shares_found(similarity, near, 9), [1.0, 1.0])


def test_the_interval_narrows_and_stays_within_zero_and_one():
    low, high = interval(np.ones(30))
    assert 0.8 < low < 1
    assert high == 1
    rng = np.random.default_rng(0)
    few, many = interval(rng.random(50)), interval(rng.random(5000))
    assert many[1] - many[0] < (few[1] - few[0]) / 5
    assert few[0] < 0.5 < few[1]


def test_distortion_is_reverse_water_filling():
    assert distortion(np.ones(4), 8.0) == pytest.approx(4 * 2**-4.0)  # two bits per axis
    assert distortion(np.array([4.0, 0.01]), 1.0) == pytest.approx(4 * 2**-2.0 + 0.01)  # the small axis gets none
    variances = np.random.default_rng(0).random(9)
    falls = [distortion(variances, rate) for rate in np.arange(0, 40)]
    assert falls[0] == pytest.approx(variances.sum())
    assert (np.diff(falls) < 0).all()


def test_the_interval_covers_the_recall_of_new_queries():
    covered = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        basis = rng.standard_normal((6, 16))
        X, queries = low_rank(1500, 16, rng, basis), low_rank(1500, 16, rng, basis)
        model = hbmp.HBMP(16, random_state=seed).fit(X)
        found = model.recall_
        assert found.low < found.estimate < found.high
        assert (found.k, found.n_queries, found.n_database, found.n_bits) == (10, 150, 1499, 16)
        covered.append(found.low <= true_recall(model, queries, X) <= found.high)
    assert np.mean(covered) >= 0.8  # 12 fits: at a coverage of 95 % fewer than 10 of them are rare


def test_more_bits_and_rescoring_find_more_and_the_sentence_says_so(tmp_path):
    rng = np.random.default_rng(0)
    X = low_rank(1200, 16, rng, rng.standard_normal((8, 16)))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    few, many = (hbmp.HBMP(n_bits, random_state=0).fit(X) for n_bits in (8, 48))
    assert few.recall_.estimate + 0.2 < many.recall_.estimate
    assert few.recall_.rescored > few.recall_.estimate
    assert few.recall_.bits_for_90 is None or few.recall_.bits_for_90 > 8
    enough = hbmp.HBMP(few.recall_.rescored_bits_for_90, random_state=0).fit(X)
    assert 0.8 < enough.recall_.rescored < 0.98
    assert few.recall_.sentence().startswith("8 bits are few for this embedding")
    assert "\n" not in few.recall_.sentence()
    few.save(tmp_path / "model")
    assert hbmp.load(tmp_path / "model").recall_ == few.recall_


def test_few_samples_and_labels_give_no_estimate():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)).astype(np.float32)
    assert hbmp.HBMP(4, random_state=0).fit(X).recall_ is None
    assert hbmp.HBMP(4, random_state=0, function="linear").fit(X, np.arange(60) % 3).recall_ is None
