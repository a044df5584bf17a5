"""`hbmp.Index` against a double loop: exact distances, ties by id, every way of asking."""

import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hbmp
from hbmp import hamming
from hbmp.index import scan as index_scan
from hbmp.index import segment

SIGNS = np.array([-1, 1], np.int8)


def dyadic(values):
    """Rounded to 1/64, so that sums are exact in any order and ties are ties for the double loop too."""
    return np.round(np.asarray(values) * 64) / 64


def weights_named(name, n_bits, rng):
    return {
        "equal": lambda: np.full(n_bits, 0.75),
        "uniform": lambda: dyadic(rng.uniform(0.5, 1.5, n_bits)),
        "heavy": lambda: dyadic(rng.standard_t(1.2, n_bits).clip(-1000, 1000)),
        "negative": lambda: dyadic(rng.normal(size=n_bits)),
        "zero": lambda: np.zeros(n_bits),
        "one bit": lambda: np.eye(n_bits)[n_bits // 2] * 3,
    }[name]()


def double_loop(queries, codes, weights, ids, k):
    """The k nearest by (distance, id), as lists of pairs."""
    results = []
    for query in queries.astype(np.float64):
        pairs = [
            (np.float32((weights * (np.abs(query) - query * code)).sum() / 2), item)
            for code, item in zip(codes, ids, strict=True)
        ]
        results.append(sorted(pairs)[:k])
    return results


def assert_same(found, expected, k):
    distances, ids = found
    assert distances.dtype == np.float32
    assert ids.dtype == np.int64
    assert distances.shape == ids.shape == (len(expected), k)
    for row, pairs in enumerate(expected):
        missing = k - len(pairs)
        assert list(ids[row]) == [item for _, item in pairs] + [-1] * missing
        assert list(distances[row]) == [distance for distance, _ in pairs] + [np.inf] * missing


@pytest.mark.parametrize("weights", ["equal", "uniform", "heavy", "negative", "zero", "one bit"])
@pytest.mark.parametrize("scores", [False, True])
def test_fast_scan_equals_the_double_loop(weights, scores, monkeypatch):
    monkeypatch.setattr(segment, "_GROUPED_FROM", 10**9)
    rng = np.random.default_rng(len(weights))
    n_bits = 44
    codes = rng.choice(SIGNS, (6000, n_bits))
    codes[3000:] = codes[rng.integers(0, 3000, 3000)]  # half the codes occur more than once
    ids = rng.permutation(50_000)[: len(codes)]
    alpha = weights_named(weights, n_bits, rng)
    queries = dyadic(rng.normal(size=(3, n_bits))) if scores else codes[:3]
    if scores:
        queries[2] = 0  # a query that does not care
    index = hbmp.Index(n_bits, alpha).add(codes, ids)
    assert_same(index.search(queries, 20), double_loop(queries, codes, alpha, ids, 20), 20)
    plain = weights == "equal" and not scores
    assert (index._segments[0]._fast_scan is None) == plain


@pytest.mark.parametrize("weights", ["equal", "uniform", "heavy"])
def test_ties_by_the_thousand_come_by_id(weights):
    rng = np.random.default_rng(1)
    few = rng.choice(SIGNS, (5, 40))
    codes = few[rng.integers(0, 5, 9000)]
    ids = rng.permutation(9000)
    alpha = weights_named(weights, 40, rng)
    index = hbmp.Index(40, alpha)
    for part in np.array_split(np.arange(9000), 3):
        index.add(codes[part], ids[part])
    assert_same(index.search(few, 30), double_loop(few, codes, alpha, ids, 30), 30)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_small_index_equals_the_double_loop(data):
    seed, n_items, n_bits, k = (
        data.draw(st.integers(*range_)) for range_ in ((0, 2**32 - 1), (0, 60), (1, 40), (1, 70))
    )
    rng = np.random.default_rng(seed)
    codes = rng.choice(SIGNS, (n_items, n_bits))
    ids = rng.permutation(200)[:n_items]
    alpha = weights_named(data.draw(st.sampled_from(["equal", "uniform", "negative", "heavy"])), n_bits, rng)
    queries = rng.choice(SIGNS, (data.draw(st.integers(0, 3)), n_bits))
    index = hbmp.Index(n_bits, alpha)
    for part in np.array_split(np.arange(n_items), data.draw(st.integers(1, 4))):
        index.add(codes[part], ids[part])
    assert len(index) == n_items
    assert_same(index.search(queries, k), double_loop(queries, codes, alpha, ids, k), k)


@pytest.mark.parametrize("n_bits", [9, 64, 200, 1100])
def test_recall_with_any_weights_and_width(n_bits):
    """Weights of full precision: the double loop rounds, so compare distances and not the order of near-ties."""
    rng = np.random.default_rng(n_bits)
    codes, alpha = rng.choice(SIGNS, (5000, n_bits)), rng.standard_t(2, n_bits)
    queries = rng.normal(size=(4, n_bits)).astype(np.float32)
    found, ids = hbmp.Index(n_bits, alpha).add(codes).search(queries, 10)
    expected = double_loop(queries, codes, alpha, range(5000), 10)
    np.testing.assert_allclose(found, [[d for d, _ in row] for row in expected], rtol=1e-5, atol=1e-5)
    for row in range(4):
        exact = hamming.distances(queries[row : row + 1], codes[ids[row]], alpha)[0]
        np.testing.assert_array_equal(found[row], exact)


def test_unproven_queries_take_the_long_way_and_arrive(monkeypatch):
    """With hardly any candidates the proof fails, and the answer is still the double loop's."""
    monkeypatch.setattr(index_scan, "_COUNTED_FROM", 10**9)
    rng = np.random.default_rng(4)
    codes, alpha = rng.choice(SIGNS, (20_000, 32)), dyadic(rng.uniform(0.5, 1.5, 32))
    index = hbmp.Index(32, alpha).add(codes)
    sizes = []
    real = index_scan._within_each
    monkeypatch.setattr(index_scan, "_within_each", lambda *args: sizes.append(len(args[1])) or real(*args))
    monkeypatch.setattr(index_scan.QueryBatch, "candidates", lambda self, k, n: k)
    assert_same(index.search(codes[:3], 10), double_loop(codes[:3], codes, alpha, range(20_000), 10), 10)
    assert sizes == [3]


def test_items_that_the_fast_scan_leaves_out_are_not_lost():
    """FAISS drops items at its lowest score; small bits that it rounds away can still make them the nearest."""
    alpha = np.array(
        [0.255, 0.245, 0, 0, 127.0, 0.24, 0, 0]
    )  # steps of about one: 2 * 0.255 rounds up, the others down
    codes = np.full((4000, 8), -1, np.int8)
    codes[100:110, 0] = 1  # kept by the scan
    codes[200:205, [1, 5]] = 1  # rounded to nothing in both groups, and nearer
    query = np.ones((1, 8), np.int8)
    _, ids = hbmp.Index(8, alpha).add(codes).search(query, 5)
    assert ids.tolist() == [[200, 201, 202, 203, 204]]


@pytest.mark.parametrize("weights", ["equal", "uniform", "negative"])
@pytest.mark.parametrize("n_items", [50, 5000])
def test_range_search_finds_all_within_the_radius(weights, n_items):
    rng = np.random.default_rng(n_items)
    codes, alpha = rng.choice(SIGNS, (n_items, 24)), weights_named(weights, 24, rng)
    ids = rng.permutation(n_items) + 7
    index = hbmp.Index(24, alpha).add(codes[:40], ids[:40]).add(codes[40:], ids[40:])
    ranked = double_loop(codes[:4], codes, alpha, ids, n_items)
    for radius in (float(ranked[0][5][0]), float(ranked[1][n_items // 2][0]), -1e9, 1e9):
        results = index.range_search(codes[:4], radius)
        assert len(results) == 4
        for (distances, found), row in zip(results, ranked, strict=True):
            expected = [pair for pair in row if pair[0] <= radius]
            assert list(zip(distances, found, strict=True)) == expected


@pytest.mark.parametrize("weights", ["equal", "uniform"])
@pytest.mark.parametrize("n_bits", [3, 8, 20, 40])
def test_prefix_search_compares_the_first_bits_only(weights, n_bits):
    rng = np.random.default_rng(n_bits)
    codes, alpha = rng.choice(SIGNS, (4000, 40)), weights_named(weights, 40, rng)
    index = hbmp.Index(40, alpha).add(codes)
    expected = double_loop(codes[:3, :n_bits], codes[:, :n_bits], alpha[:n_bits], range(4000), 8)
    assert_same(index.search(codes[:3], 8, n_bits=n_bits), expected, 8)
    assert_same(index.search(codes[:3, :n_bits], 8, n_bits=n_bits), expected, 8)
    other = dyadic(rng.uniform(1, 2, n_bits))
    expected = double_loop(codes[:3, :n_bits], codes[:, :n_bits], other, range(4000), 8)
    assert_same(index.search(codes[:3], 8, n_bits=n_bits, bit_weights=other), expected, 8)


def test_coarse_to_fine_measures_its_candidates_in_full():
    rng = np.random.default_rng(8)
    centres = rng.choice(SIGNS, (50, 64))
    codes = centres[rng.integers(0, 50, 5000)] * np.where(rng.random((5000, 64)) < 0.05, -1, 1).astype(np.int8)
    alpha = rng.uniform(0.5, 1.5, 64)
    index = hbmp.Index(64, alpha).add(codes)
    exact, _ = index.search(codes[:50], 10)
    found, ids = index.search(codes[:50], 10, coarse=32, oversample=30)
    assert (found <= exact[:, -1:]).mean() > 0.95
    for row in range(50):
        np.testing.assert_array_equal(found[row], hamming.distances(codes[row : row + 1], codes[ids[row]], alpha)[0])
    everything, _ = index.search(codes[:5], 10, coarse=13, oversample=1000)
    np.testing.assert_array_equal(everything, exact[:5])


@pytest.mark.parametrize("size", [0, 1, 30, 3500])
def test_search_among_some_ids(size):
    rng = np.random.default_rng(size)
    codes, alpha = rng.choice(SIGNS, (4000, 32)), dyadic(rng.uniform(0.5, 1.5, 32))
    ids = rng.permutation(9000)[:4000]
    index = hbmp.Index(32, alpha).add(codes[:100], ids[:100]).add(codes[100:], ids[100:])
    chosen = rng.permutation(4000)[:size]
    subset = np.concatenate([ids[chosen], ids[chosen][:3], [99_999, 2**40]])  # twice, and unknown: both harmless
    expected = double_loop(codes[:3], codes[chosen], alpha, ids[chosen], 5)
    assert_same(index.search(codes[:3], 5, subset=subset), expected, 5)
    near = index.range_search(codes[:3], 4.0, subset=subset)
    every = double_loop(codes[:3], codes[chosen], alpha, ids[chosen], 4000)
    assert [list(found) for _, found in near] == [[item for d, item in row if d <= 4] for row in every]


def test_add_and_remove_many_times_equals_a_dictionary():
    rng = np.random.default_rng(11)
    alpha = dyadic(rng.uniform(0.5, 1.5, 20))
    index, kept = hbmp.Index(20, alpha), {}
    for step in range(60):
        codes = rng.choice(SIGNS, (int(rng.integers(1, 40)), 20))
        if step % 3 == 0:
            new = range(index._next_id, index._next_id + len(codes))
            index.add(codes)
        else:
            new = rng.permutation(np.setdiff1d(np.arange(5000), list(kept)))[: len(codes)].tolist()
            index.add(codes, new)
        kept.update(zip(new, codes, strict=True))
        if step % 4 == 3:
            gone = rng.permutation(list(kept))[:25].tolist()
            assert index.remove([*gone, 77_777]) == len(gone)
            kept = {item: code for item, code in kept.items() if item not in gone}
    assert len(index) == len(kept)
    codes, ids = np.array(list(kept.values())), list(kept)
    np.testing.assert_array_equal(index.codes(ids), codes)
    assert_same(index.search(codes[:5], 12), double_loop(codes[:5], codes, alpha, ids, 12), 12)
    assert len(index._segments) < 12
    assert index.remove(ids) == len(ids)
    assert len(index) == 0


def test_streaming_holds_only_bytes():
    """Two and a half bytes per code byte at most, however the codes arrive."""
    rng = np.random.default_rng(0)
    index = hbmp.Index(64, rng.uniform(0.5, 1.5, 64))
    for _ in range(20):
        index.add_packed(rng.integers(0, 256, (5000, 8), dtype=np.uint8))
    index.search(rng.choice(SIGNS, (1, 64)), 5)
    assert len(index) == 100_000
    assert 1.0 <= index.nbytes / (100_000 * 8) <= 2.5


def test_memory_of_codes_that_repeat_or_lie_close():
    """Groups take four bytes per item; chunk tables as much for every 16 bits of a code."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (500, 8), dtype=np.uint8)[rng.integers(0, 500, 100_000)]
    index = hbmp.Index(64, rng.uniform(0.5, 1.5, 64)).add_packed(rows)
    index.search(rng.choice(SIGNS, (1, 64)), 5)
    assert index.nbytes / rows.nbytes <= 1.6
    flips = 1 << rng.integers(0, 8, 100_000)
    rows[np.arange(100_000), rng.integers(0, 8, 100_000)] ^= flips.astype(np.uint8)
    rows[np.arange(100_000), rng.integers(0, 8, 100_000)] ^= rng.permutation(flips).astype(np.uint8)
    index = hbmp.Index(64, rng.uniform(0.5, 1.5, 64)).add_packed(rows)
    index.search(rng.choice(SIGNS, (1, 64)), 5)
    assert index.nbytes / rows.nbytes <= 6.5  # of which 1 MB is the same for any number of codes


def test_empty_index_and_no_queries():
    index = hbmp.Index(12)
    assert_same(index.search(np.ones((2, 12), np.int8), 3), [[], []], 3)
    assert [len(ids) for _, ids in index.range_search(np.ones((2, 12), np.int8), 5)] == [0, 0]
    index.add(np.ones((1, 12), np.int8)).add(np.empty((0, 12), np.int8))
    assert len(index) == 1
    assert index.search(np.empty((0, 12), np.int8), 3)[0].shape == (0, 3)
    assert index.range_search(np.empty((0, 12), np.int8), 3) == []
    assert "1 codes of 12 bits" in repr(index)


def test_any_scale_of_weights_and_scores():
    rng = np.random.default_rng(2)
    codes = rng.choice(SIGNS, (5000, 32))
    alpha, queries = dyadic(rng.uniform(0.5, 1.5, 32)), dyadic(rng.normal(size=(3, 32)))
    _, expected = hbmp.Index(32, alpha).add(codes).search(queries, 10)
    for scale in (2.0**-100, 2.0**100):
        _, ids = hbmp.Index(32, alpha * scale).add(codes).search(queries, 10)
        np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-44, 1e-46, 1e-38, 1e30, 3e36])
@pytest.mark.parametrize("n_items", [300, 5000])
def test_weights_at_the_edges_of_float32_and_float64(scale, n_items):
    rng = np.random.default_rng(n_items)
    codes, alpha = rng.choice(SIGNS, (n_items, 16)), dyadic(rng.uniform(0.5, 1.5, 16)) * scale
    ids = rng.permutation(n_items)
    queries = codes[:5]
    index = hbmp.Index(16, alpha).add(codes, ids)
    exact = hamming.distances(queries, codes, alpha)
    found, near = index.search(queries, 20)
    within = index.range_search(queries, float(np.sort(exact[0])[40]))
    for row in range(5):
        order = np.lexsort((ids, exact[row]))
        np.testing.assert_array_equal(found[row], exact[row][order[:20]])
        np.testing.assert_array_equal(near[row], ids[order[:20]])
        inside = order[exact[row][order] <= float(np.sort(exact[0])[40])]
        np.testing.assert_array_equal(within[row][1], ids[inside])


def test_bytes_are_counted_while_prefixes_come_and_go():
    index = hbmp.Index(64).add(np.random.default_rng(0).choice(SIGNS, (3000, 64)))
    done, failures = threading.Event(), []

    def count():
        while not done.is_set():
            try:
                assert index.nbytes > 0
            except RuntimeError as error:
                failures.append(error)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        for step in range(400):
            index.search(np.ones((1, 64), np.int8), 1, n_bits=1 + step % 8)
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not failures


BAD_CALLS = [
    (lambda index: index.search(np.full((1, 8), 1e38), 1), "more than a float32 distance can hold"),
    (lambda index: index.search(np.full((1, 8), 1e308), 1), "more than a float32 distance can hold"),
    (lambda index: index.add(np.ones((1, 9), np.int8)), "codes must have 8 bits, found 9"),
    (lambda index: index.add(np.zeros((1, 8), np.int8)), r"only -1 and \+1, found 0"),
    (lambda index: index.add(np.ones((1, 8)) * 0.5), "found 0.5"),
    (lambda index: index.add(np.ones((2, 8), np.int8), [4, 4]), "distinct, found 4"),
    (lambda index: index.add(np.ones((2, 8), np.int8), [100, 1]), "1 of the 2 ids are in the index already.* 1;"),
    (lambda index: index.add(np.ones((2, 8), np.int8), [5]), "2 codes need 2 ids, found 1"),
    (lambda index: index.add(np.ones((1, 8), np.int8), [-3]), "must not be negative, found -3"),
    (lambda index: index.add(np.ones((1, 8), np.int8), [0.5]), "integers, found float64"),
    (lambda index: index.add_packed(np.ones((1, 2), np.uint8)), r"shape \(n, 1\)"),
    (lambda index: index.search(np.ones((1, 9), np.int8), 3), "queries must have 8 bits, found 9"),
    (lambda index: index.search(np.full((1, 8), np.nan), 3), "NaN or infinity"),
    (lambda index: index.search(np.ones(8, np.int8), 3), r"shape \(n, n_bits\)"),
    (lambda index: index.search(np.ones((1, 8), np.int8), 0), "k must be a whole number, at least 1, found 0"),
    (lambda index: index.search(np.ones((1, 8), np.int8), 1, n_bits=9), "1 to 8 bits, found 9"),
    (lambda index: index.search(np.ones((1, 8), np.int8), 1, coarse=0), "1 to 8 bits, found 0"),
    (lambda index: index.search(np.ones((1, 8), np.int8), 1, bit_weights=[1.0]), r"shape \(8,\)"),
    (lambda index: index.range_search(np.ones((1, 8), np.int8), np.nan), "radius must be a number"),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS)
def test_bad_input_is_one_sentence_and_changes_nothing(call, message):
    codes = np.array([[1, -1, 1, 1, -1, 1, 1, -1], [-1] * 8], np.int8)
    index = hbmp.Index(8).add(codes)
    with pytest.raises(ValueError, match=message):
        call(index)
    assert len(index) == 2
    np.testing.assert_array_equal(index.codes([0, 1]), codes)
    assert index.add(codes[:1]).search(codes[:1], 3)[1].tolist() == [[0, 2, 1]]


def test_bad_construction():
    with pytest.raises(ValueError, match="whole number of bits"):
        hbmp.Index(0)
    with pytest.raises(ValueError, match="finite, found nan"):
        hbmp.Index(2, [1, np.nan])
    with pytest.raises(ValueError, match=r"shape \(2,\), found \(3,\)"):
        hbmp.Index(2, [1, 2, 3])
    with pytest.raises(LookupError, match="No kind of index called 'tree'"):
        hbmp.Index.build(np.ones((1, 2), np.int8), kind="tree")
    with pytest.raises(ValueError, match="recall asked for"):
        hbmp.Index.build(np.ones((1, 2), np.int8), recall=1.5)
    with pytest.raises(LookupError, match=r"not in the index, e\.g\. 5"):
        hbmp.Index(2).codes([5])
    with pytest.raises(ValueError, match="after the first 6 must be zero"):
        hbmp.Index(6).add_packed(np.array([[64]], np.uint8))


@pytest.mark.parametrize("weight", [1e-310, 1e-45, 1e-39])
def test_equal_weights_so_small_that_distances_tie_as_float32(weight):
    rng = np.random.default_rng(0)
    codes = rng.choice(SIGNS, (300, 20))
    table = hamming.distances(codes[:4], codes, np.full(20, weight))
    distances, ids = hbmp.Index(20, np.full(20, weight)).add(codes).search(codes[:4], 30)
    expected = np.argsort(table, axis=1, kind="stable")[:, :30]
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(distances, np.take_along_axis(table, expected, axis=1))


def test_weights_are_a_copy_that_cannot_change():
    """Searches keep what follows from the weights."""
    weights = np.array([1.0, 2.0, 3.0])
    index = hbmp.Index(3, weights).add(np.array([[1, 1, 1], [-1, 1, 1]], np.int8))
    weights[:] = 7
    assert index.search([[1, 1, 1]], 2)[0].tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        index.bit_weights[0] = 7
