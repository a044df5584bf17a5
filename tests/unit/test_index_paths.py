"""The exact paths (groups of equal codes, scan, counted bits, balls) against every distance, over random indexes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hbmp
from hbmp import hamming
from hbmp.index import balls, counting, segment
from hbmp.index import scan as index_scan

SIGNS = np.array([-1, 1], np.int8)
NEVER = 10**9
PATHS = {  # least sizes for groups, counting and balls
    "groups": (1, NEVER, NEVER),
    "scan": (NEVER, NEVER, NEVER),
    "counted": (NEVER, 1, NEVER),
    "balls": (NEVER, 1, 1),
    "groups in balls": (1, 1, 1),
}
KINDS = ["equal", "uniform", "whole", "signed", "heavy", "zero", "tiny", "small", "huge", "powers"]


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


def take_path(patch, path):
    least_groups, least_counted, least_balls = PATHS[path]
    patch.setattr(segment, "_GROUPED_FROM", least_groups)
    patch.setattr(index_scan, "_SCAN_EVERYTHING_BELOW", 64)
    patch.setattr(index_scan, "_COUNTED_FROM", least_counted)
    patch.setattr(counting, "_BALLS_FROM", least_balls)
    patch.setattr(counting, "_BALLS_AFTER", 1)
    patch.setattr(counting, "_MOST_VISITED", 1.0)
    patch.setattr(balls, "_CODES_PER_CENTRE", 12)
    patch.setattr(balls, "_CODES_PER_BALL", 5)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_path_equals_brute_force(data):
    draw = data.draw
    seed, n_items, n_bits = (draw(st.integers(*span)) for span in ((0, 2**32), (0, 400), (1, 90)))
    k = draw(st.one_of(st.integers(1, 12), st.integers(1, 500)))
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
        take_path(patch, path)
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


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_one_query_equals_brute_force(data):
    """Codes that repeat often, with ties within a group and between groups; signs, scores and whole scores."""
    draw = data.draw
    seed, n_items, n_bits, k = (draw(st.integers(*span)) for span in ((0, 2**32), (200, 800), (3, 140), (1, 20)))
    path, kind = draw(st.sampled_from(["groups in balls", "balls", "counted"])), draw(st.sampled_from(KINDS))
    query_kind = draw(st.sampled_from(["signs", "float64", "float32", "whole"]))
    rng = np.random.default_rng(seed)
    pool = rng.choice(SIGNS, (draw(st.integers(80, 400)), n_bits))
    pool = pool[:6][rng.integers(0, 6, len(pool))] * np.where(rng.random(pool.shape) < 0.1, -1, 1).astype(np.int8)
    codes, ids = pool[rng.integers(0, len(pool), n_items)], rng.permutation(9999)[:n_items]
    weights = some_weights(kind, n_bits, rng)
    queries = codes[:3].copy()
    queries[1:] *= np.where(rng.random((2, n_bits)) < 0.1, -1, 1).astype(np.int8)
    if query_kind != "signs":
        sizes = rng.integers(0, 3, queries.shape) if query_kind == "whole" else rng.normal(1, 0.7, queries.shape)
        queries = (queries * sizes).astype(np.float32 if query_kind == "float32" else np.float64)
    with pytest.MonkeyPatch.context() as patch:
        take_path(patch, path)
        index = hbmp.Index(n_bits, weights).add(codes, ids)
        expected = expected_of(queries, codes, ids, weights, k)
        for row in range(len(queries)):
            found = index.search(queries[row : row + 1], k)
            equal(found, [part[row : row + 1] for part in expected])


@pytest.mark.parametrize("n_bits", [13, 64, 200])
def test_groups_hold_every_item_once(n_bits):
    rng = np.random.default_rng(n_bits)
    rows = hamming.pack(rng.choice(SIGNS, (300, n_bits)))[rng.integers(0, 300, 9000)]
    groups = hbmp.index.grouped.Groups.of(rows)
    np.testing.assert_array_equal(np.sort(groups.members), np.arange(9000))
    sizes = np.diff(groups.starts)
    np.testing.assert_array_equal(rows[groups.members], np.repeat(groups.codes.rows, sizes, axis=0))
    first = groups.members[groups.starts[:-1]]
    assert (np.diff(first.astype(int)) > 0).all()
    assert len(np.unique(groups.codes.rows, axis=0)) == len(sizes)
    assert hbmp.index.grouped.Groups.of(hamming.pack(rng.choice(SIGNS, (9000, 40)))) is None


def test_codes_that_share_a_fingerprint_are_not_grouped(monkeypatch):
    from hbmp.index import grouped

    rows = np.random.default_rng(0).integers(0, 2, (5000, 9), dtype=np.uint8)
    assert grouped.Groups.of(rows) is not None
    monkeypatch.setattr(grouped, "_fingerprints", lambda rows: rows[:, 0].astype(np.uint64))
    assert grouped.Groups.of(rows) is None


@pytest.mark.parametrize("n_bits", [20, 64, 100, 128, 192, 256, 330])
@pytest.mark.parametrize("path", ["counted", "balls"])
@pytest.mark.parametrize("kind", ["equal", "uniform", "heavy", "signed"])
def test_clustered_codes_of_every_length(n_bits, path, kind, monkeypatch):
    """Many codes near the k-th distance, ties across balls, several chunks; some balls are ruled out."""
    rng = np.random.default_rng(n_bits)
    centres = rng.choice(SIGNS, (12, n_bits))
    flips = np.where(rng.random((1500, n_bits)) < 0.05, -1, 1).astype(np.int8)
    codes = centres[rng.integers(0, 12, 1500)] * flips
    ids, weights = rng.permutation(5000)[:1500], some_weights(kind, n_bits, rng)
    take_path(monkeypatch, path)
    index = hbmp.Index(n_bits, weights).add(codes, ids)
    scores = (codes[:6] * rng.normal(1, 0.7, (6, n_bits))).astype(np.float32)
    for queries in (codes[:6], scores, scores[:1]):
        for k in (1, 10, 150):
            equal(index.search(queries, k), expected_of(queries, codes, ids, weights, k))
        exact = hamming.distances(queries, codes, weights)
        radius = float(np.quantile(exact, 0.05))
        for row, (found, near) in enumerate(index.range_search(queries, radius)):
            order = np.lexsort((ids, exact[row]))
            inside = order[exact[row][order] <= radius]
            np.testing.assert_array_equal(near, ids[inside])
            np.testing.assert_array_equal(found, exact[row][inside])
    counted = index._segments[0].counted
    assert (len(counted._balls) > 1) == (path == "balls")


def test_balls_rule_codes_out_and_are_left_where_they_do_not(monkeypatch):
    rng = np.random.default_rng(0)
    centres = rng.choice(SIGNS, (20, 64))
    close = centres[rng.integers(0, 20, 3000)] * np.where(rng.random((3000, 64)) < 0.03, -1, 1).astype(np.int8)
    take_path(monkeypatch, "balls")
    monkeypatch.setattr(counting, "_MOST_VISITED", 0.8)
    for codes, pays in ((close, True), (rng.choice(SIGNS, (3000, 64)), False)):
        index = hbmp.Index(64, rng.uniform(0.5, 1.5, 64)).add(codes)
        index.search(codes[:5], 3)
        found = index._segments[0].counted._balls
        assert (len(found) > 1) == pays
        if pays:
            batch = hbmp.index.QueryBatch.prepare(codes[:50], index.bit_weights)
            _, visited = counting._nearest_in_balls(found, batch, 3)
            assert visited.mean() < 0.3 * len(codes)
            np.testing.assert_array_equal(np.sort(found.order), np.arange(len(codes)))


def test_a_ball_holds_its_codes_within_its_radius_and_its_reach():
    rng = np.random.default_rng(1)
    rows = hamming.pack(rng.choice(SIGNS, (5000, 100)))
    vectors = np.where(np.arange(104) < 70, 1.0, 0.1)[None] * rng.uniform(0.8, 1.2, (3, 104))
    found = balls.Balls.around_centres(balls.as_words(rows), vectors)
    assert np.bitwise_count(found.mask).sum() == 70
    np.testing.assert_array_equal(found.words, balls.as_words(rows)[:, found.order])
    owner = np.repeat(np.arange(len(found)), np.diff(found.starts))
    apart = found.words ^ found.centres[:, owner]
    differing = np.bitwise_count(apart & found.mask[:, None]).sum(axis=0)
    bits = np.unpackbits(np.ascontiguousarray(apart.T).view(np.uint8), axis=1, bitorder="little")
    weighted = bits[:, :104] @ np.abs(vectors).mean(axis=0)
    for ball in range(len(found)):
        assert found.radii[ball] == differing[owner == ball].max()
        np.testing.assert_allclose(found.reaches[ball], weighted[owner == ball].max(), rtol=1e-12)


@pytest.mark.parametrize("n_bits", [40, 64, 128, 250])
@pytest.mark.parametrize("spread", [0.0, 0.1, 0.9])
def test_balls_near_a_query_are_those_of_the_triangle_inequality(n_bits, spread, monkeypatch):
    from hbmp.index import ball_loops

    rng = np.random.default_rng(n_bits)
    codes, weights = rng.choice(SIGNS, (600, n_bits)), rng.uniform(1 - spread, 1 + spread, n_bits)
    monkeypatch.setattr(balls, "_CODES_PER_CENTRE", 12)
    batch = hbmp.index.QueryBatch.prepare(rng.choice(SIGNS, (5, n_bits)), weights).weighted()
    found = balls.Balls.around_centres(balls.as_words(hamming.pack(codes)), batch.vectors)
    queries = counting.prepare(batch, len(found.words))
    centres = hamming.unpack(np.ascontiguousarray(found.centres.T).view(np.uint8), 64 * len(found.words))[:, :n_bits]
    for row, vector in enumerate(batch.vectors[:, :n_bits]):
        query = np.where(vector > 0, 1, -1).astype(np.int8)[None]
        to_centres = hamming.distances(query, centres, weights)[0]
        to_codes = hamming.distances(query, codes[found.order], weights)[0]
        nearest = np.minimum.reduceat(to_codes, found.starts[:-1])
        for radius in np.quantile(to_codes, [0.0, 0.01, 0.3]):
            near = np.empty(len(found), bool)
            spheres = found.centres, found.radii, found.reaches, found.weights, found.mask
            ball_loops.near_balls(*spheres, *queries, float(radius), row, near)
            assert near[nearest <= radius].all()
            assert not near[0.9 * to_centres - found.reaches > radius * 1.001].any()


def test_threads_share_a_batch_and_agree(monkeypatch):
    import faiss

    rng = np.random.default_rng(2)
    codes = rng.choice(SIGNS, (2000, 64))
    take_path(monkeypatch, "counted")
    monkeypatch.setattr(counting, "_WORK_PER_THREAD", 1)
    index, before = hbmp.Index(64, rng.uniform(0.5, 1.5, 64)).add(codes), faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(1)
        alone = index.search(codes[:33], 5)
        faiss.omp_set_num_threads(3)
        equal(index.search(codes[:33], 5), alone)
    finally:
        faiss.omp_set_num_threads(before)
