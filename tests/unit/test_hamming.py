"""Packing, distances and statistics of codes, each against a slow and obvious version of itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hbmp import hamming

SIZES = st.tuples(st.integers(1, 12), st.integers(1, 70), st.integers(0, 2**32 - 1))


def random_signs(rng, n_items, n_bits):
    return rng.choice(np.array([-1, 1], dtype=np.int8), size=(n_items, n_bits))


def slow_distance(query, item, weights):
    return sum(
        weight * (abs(score) - score * sign) / 2
        for weight, score, sign in zip(weights, map(float, query), map(float, item), strict=True)
    )


@given(SIZES)
def test_pack_round_trip_for_any_number_of_bits(size):
    n_items, n_bits, seed = size
    codes = random_signs(np.random.default_rng(seed), n_items, n_bits)
    packed = hamming.pack(codes)
    assert packed.dtype == np.uint8
    assert packed.shape == (n_items, -(-n_bits // 8))
    for row in range(n_items):
        for bit in range(8 * packed.shape[1]):
            stored = bool(packed[row, bit // 8] >> (bit % 8) & 1)
            assert stored == (bit < n_bits and codes[row, bit] == 1)
    unpacked = hamming.unpack(packed, n_bits)
    assert unpacked.dtype == np.int8
    np.testing.assert_array_equal(unpacked, codes)


@given(SIZES)
def test_plain_distance_counts_differing_bits(size):
    n_items, n_bits, seed = size
    rng = np.random.default_rng(seed)
    queries, database = random_signs(rng, 3, n_bits), random_signs(rng, n_items, n_bits)
    found = hamming.distances(queries, database)
    assert found.dtype == np.int32
    for i, query in enumerate(queries):
        for j, item in enumerate(database):
            assert found[i, j] == sum(a != b for a, b in zip(query, item, strict=True))


@pytest.mark.parametrize("scores", [False, True])
@given(SIZES)
def test_weighted_distance_follows_the_formula(scores, size):
    n_items, n_bits, seed = size
    rng = np.random.default_rng(seed)
    queries = rng.normal(size=(3, n_bits)).astype(np.float32) if scores else random_signs(rng, 3, n_bits)
    database, weights = random_signs(rng, n_items, n_bits), rng.standard_t(2, size=n_bits)
    found = hamming.distances(queries, database, weights)
    assert found.dtype == np.float32
    scale = np.abs(weights * queries).sum(axis=1).max()
    for i, query in enumerate(queries):
        for j, item in enumerate(database):
            assert found[i, j] == pytest.approx(slow_distance(query, item, weights), rel=1e-7, abs=1e-7 * scale)


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    queries, database, weights = rng.normal(size=(17, 33)), random_signs(rng, 41, 33), rng.normal(size=33)
    whole = hamming.distances(queries, database, weights)
    monkeypatch.setattr(hamming, "_BLOCK_VALUES", 1000)
    np.testing.assert_array_equal(hamming.distances(queries, database, weights), whole)


def test_no_items_and_no_queries():
    codes = np.ones((2, 9), np.int8)
    assert hamming.distances(codes, codes[:0]).shape == (2, 0)
    assert hamming.distances(codes[:0], codes).shape == (0, 2)
    assert hamming.unpack(hamming.pack(codes[:0]), 9).shape == (0, 9)


@settings(max_examples=30)
@given(SIZES)
def test_statistics_against_counting(size):
    n_items, n_bits, seed = size
    rng = np.random.default_rng(seed)
    codes = np.repeat(random_signs(rng, n_items + 1, n_bits), rng.integers(1, 4, n_items + 1), axis=0)
    weights = rng.normal(size=n_bits)
    found = hamming.statistics(codes, weights)
    rows = [tuple(row) for row in codes]
    assert found["distinct_codes"] == len(set(rows))
    assert found["largest_bucket"] == max(rows.count(row) for row in rows)
    assert found["collisions"] == pytest.approx(sum(rows.count(row) > 1 for row in rows) / len(rows))
    np.testing.assert_allclose(found["balance"], codes.mean(axis=0))
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows)) if i != j]
    mean = np.mean([slow_distance(codes[i], codes[j], weights) for i, j in pairs])
    assert found["mean_distance"] == pytest.approx(mean, abs=1e-9)
    assert found["effective_bits"] == pytest.approx(np.abs(weights).sum() ** 2 / (weights**2).sum())


def test_mean_abs_correlation_is_that_of_numpy_and_leaves_constant_bits_out():
    rng = np.random.default_rng(3)
    codes = random_signs(rng, 50, 7)
    expected = np.abs(np.corrcoef(codes.T))[np.triu_indices(7, 1)].mean()
    assert hamming.statistics(codes)["mean_abs_correlation"] == pytest.approx(expected)
    with_constant = np.hstack([codes, np.ones((50, 1), np.int8)])
    assert hamming.statistics(with_constant)["mean_abs_correlation"] == pytest.approx(expected)
    assert hamming.statistics(codes[:1])["mean_abs_correlation"] == 0


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float64])
def test_any_number_type_that_holds_signs_is_a_code(dtype):
    codes = np.array([[1, -1, 1]], dtype)
    checked = hamming.check_codes(codes, 3)
    assert checked.dtype == np.int8
    np.testing.assert_array_equal(checked, codes)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.array([[0, 1]]), r"only -1 and \+1, found 0.* 2 \* bits - 1"),
        (np.array([[1, 2]]), "found 2"),
        (np.array([[1.0, 0.5]]), "found 0.5"),
        (np.array([[1.0, np.nan]]), "found nan"),
        (np.array([[-1, -128]], np.int8), "found -128"),
        (np.array([[255, 1]], np.uint8), "found 255"),
        (np.array([1, -1]), r"shape \(n, n_bits\).*codes\[None, :\]"),
        (np.ones((2, 0)), "at least one bit"),
        (np.ones((1, 2), bool), "dtype bool"),
        (np.array([["a", "b"]]), "array of numbers"),
        (np.ones((1, 3)), "must have 2 bits, found 3"),
    ],
)
def test_wrong_codes_are_refused_in_one_sentence(codes, message):
    with pytest.raises(ValueError, match=message):
        hamming.check_codes(codes, 2 if codes.shape == (1, 3) else None)


def test_wrong_queries_weights_and_bytes_are_refused():
    codes = np.ones((2, 4), np.int8)
    with pytest.raises(ValueError, match="NaN or infinity"):
        hamming.distances(np.full((1, 4), np.nan), codes)
    with pytest.raises(ValueError, match="queries must have 4 bits, found 5"):
        hamming.distances(np.ones((1, 5), np.int8), codes)
    with pytest.raises(ValueError, match="finite, found nan"):
        hamming.distances(codes, codes, [1, 2, np.nan, 4])
    with pytest.raises(ValueError, match=r"shape \(4,\), found \(3,\)"):
        hamming.distances(codes, codes, [1, 2, 3])
    with pytest.raises(ValueError, match="divide them"):
        hamming.distances(codes, codes, [1e38] * 4)
    with pytest.raises(ValueError, match=r"shape \(n, 2\)"):
        hamming.unpack(np.zeros((3, 1), np.uint8), 12)
    with pytest.raises(ValueError, match="whole number of bits"):
        hamming.unpack(np.zeros((3, 1), np.uint8), 0)
    with pytest.raises(ValueError, match="at least one code"):
        hamming.statistics(codes[:0])
