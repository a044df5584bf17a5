"""`hbmp.rescore`: candidates of any index, ranked by the original vectors."""

from __future__ import annotations

import numpy as np
import pytest

import hbmp
from hbmp.index import rescoring

DISTANCES = {
    "cosine": lambda q, v: 1 - q @ v / np.linalg.norm(q) / np.linalg.norm(v),
    "ip": lambda q, v: -(q @ v),
    "l2": lambda q, v: np.linalg.norm(q - v),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def by_hand(queries, candidates, vectors, k, metric):
    """A double loop over queries and candidates."""
    distances, ids = [], []
    for query, row in zip(queries, candidates, strict=True):
        distinct = [int(id_) for id_ in dict.fromkeys(row.tolist()) if id_ >= 0]
        found = sorted(((DISTANCES[metric](query, vectors[id_]), place) for place, id_ in enumerate(distinct)))[:k]
        padding = k - len(found)
        distances.append([distance for distance, _ in found] + [np.inf] * padding)
        ids.append([distinct[place] for _, place in found] + [-1] * padding)
    return np.array(distances), np.array(ids)


@pytest.mark.parametrize("metric", sorted(DISTANCES))
@pytest.mark.parametrize("block", [1, 50, 1 << 22])
def test_equals_a_double_loop(rng, metric, block, monkeypatch):
    monkeypatch.setattr(rescoring, "_VALUES_AT_ONCE", block)
    vectors, queries = rng.standard_normal((40, 6)), rng.standard_normal((9, 6))
    candidates = rng.integers(-5, 40, (9, 15))  # repeats and padding among them
    candidates[3] = -1
    distances, ids = hbmp.rescore(queries, candidates, vectors, k=12, metric=metric)
    wanted_distances, wanted_ids = by_hand(queries, candidates, vectors, 12, metric)
    np.testing.assert_array_equal(ids, wanted_ids)
    np.testing.assert_allclose(distances, wanted_distances, rtol=1e-6)
    assert distances.dtype == np.float32
    assert ids.dtype == np.int64


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_memory_maps_of_small_types(rng, dtype, tmp_path):
    table = (rng.standard_normal((30, 8)) * 40).astype(dtype)
    np.save(tmp_path / "vectors.npy", table)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    queries, candidates = rng.standard_normal((4, 8)).astype(np.float32), np.tile(np.arange(30), (4, 1))
    for metric in DISTANCES:
        _, ids = hbmp.rescore(queries, candidates, mapped, k=30, metric=metric)
        wanted = by_hand(queries.astype(float), candidates, table.astype(float), 30, metric)[1]
        np.testing.assert_array_equal(ids, wanted)


def test_a_callable_gets_each_id_once_and_no_padding(rng):
    table, asked = rng.standard_normal((50, 4)), []

    def fetch(ids):
        asked.append(ids)
        return table[ids]

    queries, candidates = rng.standard_normal((5, 4)), rng.integers(-1, 50, (5, 20))
    found = hbmp.rescore(queries, candidates, fetch, k=5)
    np.testing.assert_array_equal(found[1], hbmp.rescore(queries, candidates, table, k=5)[1])
    (ids,) = asked
    np.testing.assert_array_equal(ids, np.unique(candidates[candidates >= 0]))


def test_equal_distances_keep_the_order_of_the_candidates():
    vectors = np.array([[1.0, 0], [1, 0], [0, 1], [2, 0]])
    assert hbmp.rescore([[3.0, 0]], [[3, 2, 1, 0]], vectors, k=4)[1].tolist() == [[3, 1, 0, 2]]
    np.testing.assert_array_equal(hbmp.rescore([[3.0, 0]], [[1]], vectors, k=1)[0], [[0]])


def test_zeros_have_cosine_zero():
    distances, ids = hbmp.rescore([[1.0, 0]], [[0, 1]], np.array([[0.0, 0], [-1, 0]]), k=2)
    assert ids.tolist() == [[0, 1]]
    assert distances.tolist() == [[1, 2]]


def test_all_items_as_candidates_give_the_true_neighbours(rng):
    """Codes propose four times as many candidates, and the vectors find more of the true ten among them."""
    X = rng.standard_normal((400, 16)).astype(np.float32)
    queries = X[:50] + 0.3 * rng.standard_normal((50, 16)).astype(np.float32)
    model = hbmp.get_method("lsh")(32, random_state=0).fit(X)
    index = hbmp.Index(32).add(model.transform(X))
    everything = np.tile(np.arange(400), (50, 1))
    truth = hbmp.rescore(queries, everything, X, k=10)[1]
    codes = index.search(model.transform(queries), 40)[1]
    rescored = hbmp.rescore(queries, codes, X, k=10)[1]

    def recall(found):
        return np.mean([len(set(mine) & set(true)) / 10 for mine, true in zip(found, truth, strict=True)])

    assert recall(rescored) > recall(codes[:, :10]) + 0.1
    both = [set(row) & set(true) for row, true in zip(codes, truth, strict=True)]
    assert [set(row) & set(true) for row, true in zip(rescored, truth, strict=True)] == both  # nothing is lost


def test_no_queries_and_no_candidates(rng):
    vectors = rng.standard_normal((5, 3))
    distances, ids = hbmp.rescore(np.empty((0, 3)), np.empty((0, 4), int), vectors, k=2)
    assert distances.shape == ids.shape == (0, 2)
    distances, ids = hbmp.rescore(vectors[:1], np.empty((1, 0), int), vectors, k=2)
    assert ids.tolist() == [[-1, -1]]
    assert np.isinf(distances).all()


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"metric": "dot"}, ValueError, "metric must be"),
        ({"k": 0}, ValueError, "k must be"),
        ({"k": 2.5}, ValueError, "k must be"),
        ({"candidates": [[0, 7]]}, IndexError, "Id 7 is not a row of vectors, which has 3"),
        ({"candidates": [[0.5]]}, ValueError, "whole numbers"),
        ({"candidates": [[0], [1]]}, ValueError, "one row for each of the 1 queries"),
        ({"vectors": np.ones((3, 5))}, ValueError, "dimension 2"),
        ({"vectors": np.ones(3)}, ValueError, "shape"),
        ({"vectors": lambda ids: np.ones((1, 2))}, ValueError, "2 vectors of dimension 2"),
        ({"vectors": np.full((3, 2), np.nan)}, ValueError, "finite"),
        ({"queries": [1.0, 0.0]}, ValueError, "queries must be"),
        ({"queries": [["a", "b"]]}, ValueError, "queries must be"),
    ],
)
def test_errors_say_what_is_wrong(changed, error, message):
    given = {"queries": [[1.0, 0.0]], "candidates": [[0, 1]], "vectors": np.eye(3)[:, :2], **changed}
    with pytest.raises(error, match=message):
        hbmp.rescore(given.pop("queries"), given.pop("candidates"), given.pop("vectors"), **given)
