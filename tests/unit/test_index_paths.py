"""The exact paths (groups of equal codes, chunk tables, scan) against distances to every code, over random indexes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hbmp
from hbmp import hamming
from hbmp.index import _chunks, _scan, _segment
from hbmp.index._exact import nearest_of_all, split_keys
from hbmp.index._query import QueryBatch

SIGNS = np.array([-1, 1], np.int8)
PATHS = {  # least size for groups, least size for chunk tables
    "groups": (1, 10**9),
    "chunks": (10**9, 1),
    "groups and chunks": (1, 1),
    "scan": (10**9, 10**9),
}
KINDS = ["equal", "uniform", "whole", "signed", "heavy", "zero", "tiny", "small", "huge", "powers"]
needs_numba = pytest.mark.skipif(not _chunks.AVAILABLE, reason="needs numba")


@pytest.fixture
def take_path(monkeypatch):
    def take(name):
        monkeypatch.setattr(_segment, "_GROUPED_FROM", PATHS[name][0])
        monkeypatch.setattr(_segment, "CHUNKED_FROM", PATHS[name][1])
        monkeypatch.setattr(_scan, "_SCAN_EVERYTHING_BELOW", 64)

    return take


def some_weights(kind, n_bits, rng):
    return {
        "equal": lambda: np.full(n_bits, 0.3),
        "uniform": lambda: rng.uniform(0.5, 1.5, n_bits),
        "whole": lambda: rng.integers(0, 3, n_bits).astype(float),
        "signed": lambda: rng.normal(size=n_bits),
        "heavy": lambda: rng.standard_t(1.2, n_bits).clip(-1e4, 1e4),
        "zero": lambda: np.zeros(n_bits),
        "tiny": lambda: rng.uniform(0.5, 1.5, n_bits) * 1e-310,
        "small": lambda: rng.uniform(0.5, 1.5, n_bits) * 1e-44,
        "huge": lambda: rng.uniform(0.5, 1.5, n_bits) * 1e34,
        "powers": lambda: 2.0 ** -np.arange(n_bits),
    }[kind]()


def expected_of(queries, codes, ids, weights, k):
    exact = hamming.distances(queries, codes, weights)
    order = np.array([np.lexsort((ids, row))[:k] for row in exact], int).reshape(len(queries), min(k, len(codes)))
    padding = ((0, 0), (0, k - order.shape[1]))
    found = np.pad(np.take_along_axis(exact, order, axis=1), padding, constant_values=np.inf)
    return found, np.pad(ids[order], padding, constant_values=-1)


def equal(results, expected):
    for left, right in zip(results, expected, strict=True):
        np.testing.assert_array_equal(left, right)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_path_equals_brute_force(data):
    draw = data.draw
    seed, n_items, n_bits, k = (draw(st.integers(*span)) for span in ((0, 2**32), (0, 400), (1, 90), (1, 500)))
    path, kind = draw(st.sampled_from(sorted(PATHS))), draw(st.sampled_from(KINDS))  # fmt: skip
    scores, distinct = draw(st.booleans()), draw(st.integers(1, 400))
    rng = np.random.default_rng(seed)
    pool = rng.choice(SIGNS, (distinct, n_bits))
    pool[:, rng.random(n_bits) < draw(st.sampled_from([0.0, 0.8]))] = 1
    codes, ids = pool[rng.integers(0, distinct, n_items)], rng.permutation(1000)[:n_items]
    weights = some_weights(kind, n_bits, rng)
    queries = rng.choice(SIGNS, (4, n_bits))
    queries[: min(2, n_items)] = codes[:2]
    if scores:
        queries = (queries * rng.uniform(0, 2, queries.shape) * (rng.random(queries.shape) < 0.9)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_segment, "_GROUPED_FROM", PATHS[path][0])
        patch.setattr(_segment, "CHUNKED_FROM", PATHS[path][1])
        patch.setattr(_scan, "_SCAN_EVERYTHING_BELOW", 64)
        index = hbmp.Index(n_bits, weights)
        for part in np.array_split(np.arange(n_items), draw(st.integers(1, 3))):
            index.add(codes[part], ids[part])
        gone = draw(st.integers(0, n_items))
        assert index.remove(ids[:gone]) == gone
        codes, ids = codes[gone:], ids[gone:]
        equal(index.search(queries, k), expected_of(queries, codes, ids, weights, k))
        first = draw(st.integers(1, n_bits))
        short = expected_of(queries[:, :first], codes[:, :first], ids, weights[:first], k)
        equal(index.search(queries, k, n_bits=first), short)
        chosen = rng.random(len(ids)) < 0.5
        equal(
            index.search(queries, k, subset=ids[chosen]), expected_of(queries, codes[chosen], ids[chosen], weights, k)
        )
        if len(ids):
            exact = hamming.distances(queries, codes, weights)
            radius = float(np.median(exact))
            for row, (found, near) in enumerate(index.range_search(queries, radius)):
                order = np.lexsort((ids, exact[row]))
                inside = order[exact[row][order] <= radius]
                np.testing.assert_array_equal(near, ids[inside])
                np.testing.assert_array_equal(found, exact[row][inside])


def clustered(rng, n_items, n_bits, n_centres, flipped):
    centres = rng.choice(SIGNS, (n_centres, n_bits))
    flips = np.where(rng.random((n_items, n_bits)) < flipped, -1, 1).astype(np.int8)
    return centres[rng.integers(0, n_centres, n_items)] * flips


@needs_numba
@pytest.mark.parametrize("n_bits", [37, 64, 100])
@pytest.mark.parametrize("kind", ["equal", "uniform", "signed", "whole"])
@pytest.mark.parametrize("scores", [False, True])
def test_chunk_tables_prove_their_answers(n_bits, kind, scores, take_path):
    """Enough codes that most are never measured; what is proven is right, ties included, and something is proven."""
    rng = np.random.default_rng(n_bits)
    codes, weights = clustered(rng, 60_000, n_bits, 6000, 0.02), some_weights(kind, n_bits, rng)
    rows, queries = hamming.pack(codes), codes[:48]
    if scores:
        queries = queries * rng.uniform(0.7, 1.3, queries.shape)
    batch = QueryBatch.prepare(queries, weights)
    keys, proven = _chunks.Chunks(rows).search(batch, 5)
    np.testing.assert_array_equal(keys[proven], nearest_of_all(rows, batch, 5)[proven])
    if kind in {"equal", "uniform"}:
        assert proven.mean() > 0.8
    take_path("chunks")
    found, positions = split_keys(nearest_of_all(rows, batch, 5))
    equal(hbmp.Index(n_bits, weights).add(codes).search(queries, 5), (found, positions))


@needs_numba
def test_chunk_tables_give_up_on_random_codes_and_rest():
    rng = np.random.default_rng(0)
    codes = rng.choice(SIGNS, (60_000, 128))
    chunks = _chunks.Chunks(hamming.pack(codes))
    batch = QueryBatch.prepare(rng.choice(SIGNS, (64, 128)), np.ones(128))
    assert not chunks.search(batch, 10)[1].any()
    near = QueryBatch.prepare(codes[:4], np.ones(128))
    assert not chunks.search(near, 1)[1].any()  # it rests
    for _ in range(20):
        chunks.search(batch, 10)
    tried = [chunks.search(near, 1)[1].all() for _ in range(2000)]
    assert any(tried)  # and tries again


@pytest.mark.parametrize("n_bits", [13, 64, 200])
def test_groups_hold_every_item_once(n_bits):
    rng = np.random.default_rng(n_bits)
    rows = hamming.pack(rng.choice(SIGNS, (300, n_bits)))[rng.integers(0, 300, 9000)]
    groups = hbmp.index._grouped.Groups.of(rows)
    np.testing.assert_array_equal(np.sort(groups.members), np.arange(9000))
    sizes = np.diff(groups.starts)
    np.testing.assert_array_equal(rows[groups.members], np.repeat(groups.codes.rows, sizes, axis=0))
    first = groups.members[groups.starts[:-1]]
    assert (np.diff(first.astype(int)) > 0).all()
    assert len(np.unique(groups.codes.rows, axis=0)) == len(sizes)
    assert hbmp.index._grouped.Groups.of(hamming.pack(rng.choice(SIGNS, (9000, 40)))) is None


def test_codes_that_share_a_fingerprint_are_not_grouped(monkeypatch):
    from hbmp.index import _grouped

    rows = np.random.default_rng(0).integers(0, 2, (5000, 9), dtype=np.uint8)
    assert _grouped.Groups.of(rows) is not None
    monkeypatch.setattr(_grouped, "_fingerprints", lambda rows: rows[:, 0].astype(np.uint64))
    assert _grouped.Groups.of(rows) is None
