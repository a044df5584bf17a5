"""Claims of docs/mathematics-detail.md, as properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hbmp import hamming, metrics
from hbmp.methods.hbmp.detail import TIE_BREAKING, DetailBits, explain, join_weights, residual, unit_rows

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


def graded(seed, n=24, items=4, d=6):
    """(H, class affinity, residual features) of random rows; every item has rows."""
    rng = np.random.default_rng(seed)
    of_row = np.concatenate([np.arange(items), rng.integers(0, items, n - items)])
    indicator = np.eye(items)[of_row]
    features = rng.standard_normal((n, d)) + 3 * rng.standard_normal((items, d))[of_row]
    means = indicator @ np.linalg.lstsq(indicator, features, rcond=None)[0]
    return indicator, indicator @ (2 * np.eye(items) - 1) @ indicator.T, features - means


@given(seeds)
@few
def test_label_part_and_detail_part_do_not_meet(seed):
    indicator, labels, left = graded(seed)
    details = left @ left.T
    assert np.allclose(labels @ details, 0, atol=1e-9)
    both = np.concatenate([np.linalg.eigvalsh(labels), np.linalg.eigvalsh(details)])
    both = both[np.abs(both) > 1e-8]
    together = np.linalg.eigvalsh(labels + details)
    assert np.allclose(np.sort(together[np.abs(together) > 1e-8]), np.sort(both))
    u = np.random.default_rng(seed).choice([-1.0, 1.0], indicator.shape[1])
    v = indicator @ u
    assert v @ (labels + details) @ v == pytest.approx(v @ labels @ v)


@given(seeds)
@few
def test_labels_come_first_below_the_threshold(seed):
    indicator, labels, left = graded(seed)
    details = left @ left.T
    largest = np.linalg.eigvalsh(labels)[-1] / np.linalg.eigvalsh(details)[-1]
    _, vectors = np.linalg.eigh(labels + 0.99 * largest * details)
    leading = vectors[:, -1]
    means = np.linalg.lstsq(indicator, leading, rcond=None)[0]
    assert np.allclose(indicator @ means, leading, atol=1e-8)
    _, vectors = np.linalg.eigh(labels + 1.01 * largest * details)
    assert np.allclose(indicator.T @ vectors[:, -1], 0, atol=1e-8)  # above it, a detail would come first


@given(seeds)
@few
def test_no_flip_of_one_row_betters_a_label_bit_below_the_threshold(seed):
    indicator, labels, left = graded(seed)
    rng = np.random.default_rng(seed)
    v = indicator @ rng.choice([-1.0, 1.0], indicator.shape[1])
    slack = v * (labels @ v) - np.diag(labels)
    lengths = np.square(left).sum(axis=1)
    epsilon = 0.5
    Q = labels + epsilon * left @ left.T
    for i in range(len(v)):
        flipped = v.copy()
        flipped[i] *= -1
        gain = flipped @ Q @ flipped - v @ Q @ v
        assert gain == pytest.approx(4 * (epsilon * lengths[i] - slack[i]))
        assert (gain <= 1e-9) == (slack[i] >= epsilon * lengths[i] - 1e-9)


@given(seeds, st.lists(st.booleans(), min_size=2, max_size=8))
@few
def test_residual_never_rises_whichever_phase_a_bit_is_from(seed, from_labels):
    indicator, labels, left = graded(seed)
    rng = np.random.default_rng(seed)
    Q = labels + 0.1 * left @ left.T
    n = len(Q)
    for is_label in from_labels:
        v = (
            indicator @ rng.choice([-1.0, 1.0], indicator.shape[1])
            if is_label
            else np.where(left @ rng.standard_normal(left.shape[1]) >= 0, 1.0, -1.0)
        )
        step = v @ Q @ v / n**2
        rest = Q - step * np.outer(v, v)
        assert np.square(rest).sum() == pytest.approx(np.square(Q).sum() - (v @ Q @ v) ** 2 / n**2)
        Q = rest


def some_detail(seed, n=120, d=8, n_label=3, b=6):
    rng = np.random.default_rng(seed)
    label_scores = rng.standard_normal((n, n_label))
    X = rng.standard_normal((n, d)) + np.where(label_scores >= 0, 1, -1) @ rng.standard_normal((n_label, d))
    return X, label_scores, DetailBits(n_iter=3).fit(X, label_scores, b, random_state=0)


@given(seeds)
@few
def test_unexplained_share_never_rises(seed):
    *_, detail = some_detail(seed)
    assert detail.unexplained_[0] == pytest.approx(1)
    assert (np.diff(detail.unexplained_) <= 1e-9).all()


@given(seeds)
@few
def test_nothing_is_lost_within_a_label_code(seed):
    X, label_scores, detail = some_detail(seed)
    features, signs = unit_rows(X), hamming.signs(label_scores)
    left = residual(features, signs, detail.explained_)
    same = (signs[:, None] == signs[None]).all(axis=2)
    apart = left[:, None] - left[None] - (features[:, None] - features[None])
    assert np.abs(apart[same]).max() < 1e-5
    assert np.abs(apart[~same]).max() > 0.01  # between codes the label part is gone


@given(seeds)
@few
def test_regression_on_independent_codes_is_that_on_items(seed):
    rng = np.random.default_rng(seed)
    codes = 1 - 2 * np.tri(5, 4, -1, dtype=np.int8)  # five items, affinely independent
    of_row = np.concatenate([np.arange(5), rng.integers(0, 5, 95)])
    features = unit_rows(rng.standard_normal((100, 6)) + 2 * rng.standard_normal((5, 6))[of_row])
    left = residual(features, codes[of_row], explain(features, codes[of_row]))
    means = np.eye(5)[of_row].T @ left / np.bincount(of_row)[:, None]
    assert np.abs(means).max() < 0.01  # the ridge keeps it from 0


@given(seeds, st.booleans(), st.floats(0.05, 5))
@few
def test_items_further_apart_than_the_details_weigh_keep_their_order(seed, real, total):
    rng = np.random.default_rng(seed)
    items, query = rng.choice([-1, 1], (30, 9)), rng.standard_normal(9) if real else rng.choice([-1, 1], 9)
    weights = join_weights(rng.random(5) + 0.1, rng.random(4) + 0.1, total)
    by_labels, by_all = (hamming.distances(query[None, :k], items[:, :k], weights[:k])[0] for k in (5, 9))
    span = (weights[5:] * np.abs(query[5:])).sum()
    assert (by_all >= by_labels - 1e-5).all()
    assert (by_all <= by_labels + span + 1e-5).all()
    clear = by_labels[:, None] + span + 1e-5 < by_labels[None]
    assert (by_all[:, None] < by_all[None])[clear].all()


@given(seeds)
@few
def test_tie_breaking_details_stay_between_the_tie_rules_of_label_bits(seed):
    rng = np.random.default_rng(seed)
    queries, items = rng.choice([-1, 1], (6, 9)), rng.choice([-1, 1], (40, 9))
    labels = rng.integers(0, 3, 6), rng.integers(0, 3, 40)
    weights = join_weights(np.ones(4), rng.random(5) + 0.1, TIE_BREAKING)
    assert weights[4:].sum() < 1
    found = metrics.average_precision_per_query(queries, items, *labels, bit_weights=weights, empty="zero")
    low, high = (
        metrics.average_precision_per_query(queries[:, :4], items[:, :4], *labels, ties=rule, empty="zero")
        for rule in ("pessimistic", "optimistic")
    )
    assert (found >= low - 1e-12).all()
    assert (found <= high + 1e-12).all()


@given(seeds)
@few
def test_appended_bits_never_make_codes_less_distinct(seed):
    codes = np.random.default_rng(seed).choice([-1, 1], (50, 6))
    distinct = [metrics.distinct_codes(codes[:, :k]) for k in range(1, 7)]
    assert (np.diff(distinct) >= 0).all()
    assert metrics.self_first_share(codes) == distinct[-1] / 50


def test_fair_bits_make_as_many_codes_distinct_as_claimed():
    rng = np.random.default_rng(0)
    bound = 400 - 400 * 399 / 2**17
    found = [metrics.distinct_codes(rng.choice(np.array([-1, 1], np.int8), (400, 16))) for _ in range(300)]
    assert bound / 400 > 0.996
    assert np.mean(found) == pytest.approx(bound, abs=0.25)
