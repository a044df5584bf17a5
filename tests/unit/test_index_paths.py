"""The exact paths (groups of equal codes, scan) against distances to every code, over random indexes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hbmp
from hbmp import hamming
from hbmp.index import scan as index_scan
from hbmp.index import segment

SIGNS = np.array([-1, 1], np.int8)
PATHS = {"groups": 1, "scan": 10**9}  # least size for groups
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
        patch.setattr(segment, "_GROUPED_FROM", PATHS[path])
        patch.setattr(index_scan, "_SCAN_EVERYTHING_BELOW", 64)
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
