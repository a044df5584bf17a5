"""Inverted lists reach the recall they are asked for, on codes they have not seen."""

import numpy as np
import pytest

import hbmp
from hbmp import hamming
from hbmp import index as index_module

SIGNS = np.array([-1, 1], np.int8)


def clustered(rng, n_items, n_bits=48, n_centres=150, flipped=0.15):
    centres = rng.choice(SIGNS, (n_centres, n_bits))
    flips = np.where(rng.random((n_items, n_bits)) < flipped, -1, 1).astype(np.int8)
    return centres[rng.integers(0, n_centres, n_items)] * flips


@pytest.mark.parametrize("weights", ["equal", "uniform", "signed"])
def test_recall_asked_for_is_reached_and_distances_are_exact(weights):
    rng = np.random.default_rng(len(weights))
    everything = clustered(rng, 20_300)
    codes, queries = everything[:20_000], everything[20_000:]
    alpha = {"equal": np.ones(48), "uniform": rng.uniform(0.5, 1.5, 48), "signed": rng.normal(0.7, 0.5, 48)}[weights]
    index = hbmp.Index.build(codes, bit_weights=alpha, kind="ivf", recall=0.95)
    flat = hbmp.Index.build(codes, bit_weights=alpha)
    assert (index.kind, flat.kind) == ("ivf", "flat")
    for k in (10, 100):
        exact, _ = flat.search(queries, k)
        found, ids = index.search(queries, k)
        assert (found <= exact[:, -1:]).mean() >= 0.94  # 0.95 less the noise of 300 queries
        assert index.recall_[k] >= 0.95
        for row in range(3):
            expected = hamming.distances(queries[row : row + 1], codes[ids[row]], alpha)[0]
            np.testing.assert_array_equal(found[row], expected)
            np.testing.assert_array_equal(np.lexsort((ids[row], found[row])), np.arange(k))
    everywhere, _ = index.search(queries, 10, n_probe=10_000)
    np.testing.assert_array_equal(everywhere, flat.search(queries, 10)[0])
    probed = index._segments[0].inverted
    assert probed.probe_count(10) < len(probed.centroids)
    assert (index.search(queries, 10, n_probe=1)[0] <= exact[:, 9:10]).mean() < 0.999


@pytest.mark.parametrize("weights", ["equal", "uniform", "signed"])
@pytest.mark.parametrize("flipped", [0.15, 0.3])
def test_recall_of_real_valued_queries_is_reached(weights, flipped):
    """Scores of unseen items: large where the sign is certain, small or wrong where it is not."""
    rng = np.random.default_rng(len(weights))
    everything = clustered(rng, 12_300, flipped=flipped)
    codes, queries = everything[:12_000], everything[12_000:] * rng.normal(1.0, 0.6, (300, 48))
    alpha = {"equal": np.ones(48), "uniform": rng.uniform(0.5, 1.5, 48), "signed": rng.normal(0.7, 0.5, 48)}[weights]
    index = hbmp.Index.build(codes, bit_weights=alpha, kind="ivf", recall=0.95)
    exact, _ = hbmp.Index(48, alpha).add(codes).search(queries, 10)
    assert (index.search(queries, 10)[0] <= exact[:, -1:]).mean() >= 0.94  # 0.95 less the noise of 300 queries


def test_recall_is_measured_with_the_queries_that_will_come():
    """Queries from nowhere near the codes take more lists than held-out codes do."""
    rng = np.random.default_rng(4)
    codes = clustered(rng, 12_000, flipped=0.1)
    queries = rng.normal(0.3, 1.0, (600, 48)) * clustered(rng, 600, flipped=0.3)
    near = hbmp.Index.build(codes, kind="ivf", recall=0.9)
    index = hbmp.Index.build(codes, kind="ivf", recall=0.9, queries=queries[:300])
    exact, _ = hbmp.Index(48).add(codes).search(queries[300:], 10)
    assert index._segments[0].inverted.probes[10] > near._segments[0].inverted.probes[10]
    assert index.recall_[10] >= 0.9
    assert (index.search(queries[300:], 10)[0] <= exact[:, -1:]).mean() >= 0.88  # 0.9 less the noise of 300 queries
    with pytest.raises(ValueError, match="48"):
        hbmp.Index.build(codes, kind="ivf", queries=queries[:, :40])


def test_prefix_subset_and_range_are_exact_beside_inverted_lists():
    rng = np.random.default_rng(5)
    codes, alpha = clustered(rng, 5000), rng.uniform(0.5, 1.5, 48)
    index = hbmp.Index.build(codes, bit_weights=alpha, kind="ivf", recall=0.5)
    flat = hbmp.Index(48, alpha).add(codes)
    for options in ({"n_bits": 20}, {"subset": np.arange(0, 5000, 3)}, {"bit_weights": alpha[::-1].copy()}):
        for left, right in zip(
            index.search(codes[:9], 7, **options), flat.search(codes[:9], 7, **options), strict=True
        ):
            np.testing.assert_array_equal(left, right)
    for left, right in zip(index.range_search(codes[:9], 3.5), flat.range_search(codes[:9], 3.5), strict=True):
        np.testing.assert_array_equal(left[1], right[1])


def test_add_and_remove_after_grouping():
    rng = np.random.default_rng(6)
    codes = clustered(rng, 4000)
    index = hbmp.Index.build(codes[:3000], ids=np.arange(3000) * 2, kind="ivf", recall=0.9)
    index.add(codes[3000:], np.arange(1000) * 2 + 1)
    gone = np.concatenate([np.arange(0, 600, 2), [1, 3]])
    assert index.remove(gone) == len(gone)
    assert index.kind == "ivf"
    _, ids = index.search(codes[3500:3600], 1)
    np.testing.assert_array_equal(ids[:, 0] % 2, 1)  # what was added later is searched in full, and finds itself
    flat = hbmp.Index(48).add(codes[300:3000], np.arange(300, 3000) * 2).add(codes[3002:], np.arange(2, 1000) * 2 + 1)
    for left, right in zip(index.search(codes[:20], 30, n_probe=10_000), flat.search(codes[:20], 30), strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_same_seed_builds_the_same_index():
    codes = clustered(np.random.default_rng(7), 3000)
    one, other = (hbmp.Index.build(codes, kind="ivf", random_state=3) for _ in range(2))
    for left, right in zip(one.search(codes[:50], 10), other.search(codes[:50], 10), strict=True):
        np.testing.assert_array_equal(left, right)


def test_few_codes_and_more_results_than_a_list_holds():
    rng = np.random.default_rng(8)
    for n_items in (1, 30, 500):
        codes = clustered(rng, n_items)
        index = hbmp.Index.build(codes, kind="ivf")
        found, ids = index.search(codes[:1], n_items + 5)
        assert ids[0, 0] == 0
        assert found.shape == (1, n_items + 5)
        assert (ids[0, n_items:] == -1).all()
        assert np.isinf(found[0, ids[0] < 0]).all()
    assert index.search(codes[:0], 4)[0].shape == (0, 4)
    assert len(hbmp.Index.build(codes[:0], kind="ivf")) == 0


def test_auto_groups_large_sets_only_where_that_saves_work(monkeypatch):
    monkeypatch.setattr(index_module, "_INVERTED_ABOVE", 4000)
    rng = np.random.default_rng(9)
    assert hbmp.Index.build(clustered(rng, 20_000), recall=0.8).kind == "ivf"
    assert hbmp.Index.build(rng.choice(SIGNS, (5000, 48)), recall=0.99).kind == "flat"
    assert hbmp.Index.build(clustered(rng, 3000), recall=0.8).kind == "flat"


@pytest.mark.parametrize(("n_bits", "n_distinct"), [(20, 150), (130, 150), (130, 10**5), (1100, 50)])
def test_lists_of_any_code_length_hold_repeated_codes(n_bits, n_distinct):
    """All lists probed: brute force, ties included, also one query at a time."""
    rng = np.random.default_rng(n_bits)
    pool = clustered(rng, n_distinct, n_bits, 30)
    codes, weights = pool[rng.integers(0, n_distinct, 5000)], rng.uniform(0.5, 1.5, n_bits)
    index = hbmp.Index.build(codes, bit_weights=weights, kind="ivf", recall=0.9)
    flat = hbmp.Index(n_bits, weights).add(codes)
    for queries in (codes[:20], codes[:20] * rng.uniform(0.2, 1.8, (20, n_bits))):
        for k in (1, 10, 300):
            expected = flat.search(queries, k)
            for left, right in zip(index.search(queries, k, n_probe=9999), expected, strict=True):
                np.testing.assert_array_equal(left, right)
            for left, right in zip(index.search(queries[3:4], k, n_probe=9999), expected, strict=True):
                np.testing.assert_array_equal(left[0], right[3])


def test_without_numba_lists_are_searched_exactly(monkeypatch):
    rng = np.random.default_rng(3)
    codes = clustered(rng, 6000)
    index = hbmp.Index.build(codes, kind="ivf", recall=0.5)
    monkeypatch.setattr(index_module.inverted.counting, "available", lambda: False)
    for left, right in zip(
        index.search(codes[:9], 7, n_probe=1), hbmp.Index(48).add(codes).search(codes[:9], 7), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_adding_codes_one_by_one_keeps_the_inverted_lists():
    rng = np.random.default_rng(9)
    codes = clustered(rng, 3000)
    index = hbmp.Index.build(codes[:1000], kind="ivf", recall=0.9)
    lists = index._segments[0].inverted
    for start in range(1000, 3000, 500):  # more codes than the lists hold, so that sizes alone would merge them
        index.add(codes[start : start + 500])
    assert index.kind == "ivf"
    assert index._segments[0].inverted is lists
    assert len(index._segments[0]) == 1000
