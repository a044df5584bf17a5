"""The stores against real engines, PostgreSQL, embedded Milvus, SQLite and LanceDB, with the same tests for all."""

from __future__ import annotations

import itertools
import json
import runpy
import threading
from pathlib import Path

import numpy as np
import pytest
from shown import blocks, is_shown, run
from stores_common import assert_nearest, clustered, double_loop

import hbmp
from hbmp import stores

_NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=["pgvector", "milvus", "sqlite_vec", "lancedb"])
def open_engine(request, short_folder):
    """Opens a store of this engine under a name; PostgreSQL compares with every row unless told otherwise."""

    def opener(n_bits, name, **options):
        if request.param == "pgvector":
            url = request.getfixturevalue("postgres")
            return stores.PGVector(n_bits, url, table=name, **{"index": "flat"} | options)
        if request.param == "sqlite_vec":
            return stores.SQLiteVec(n_bits, short_folder / "codes.sqlite", table=name, **options)
        if request.param == "lancedb":
            return stores.LanceDB(n_bits, short_folder / "codes.lancedb", table=name, **options)
        return stores.Milvus(n_bits, short_folder / "milvus.db", collection=name, **options)

    return opener


@pytest.fixture
def open_store(open_engine):
    """Opens stores, under a name of this test unless told one, and closes them after it."""
    own_name = f"codes_{next(_NUMBERS)}"
    opened = []

    def opener(n_bits, name=own_name, **options):
        opened.append(open_engine(n_bits, name, **options))
        return opened[-1]

    yield opener
    for store in opened:
        store.close()


@pytest.fixture(scope="module")
def filled(open_engine):
    """A store of the first 20 codes of 16 bits, for tests that change nothing."""
    with open_engine(16, "filled") as store:
        store.add(clustered(16)[0][:20], np.arange(20))
        yield store


@pytest.mark.parametrize("n_bits", [13, 64])
def test_plain_search_is_the_double_loop(open_store, n_bits):
    codes, queries = clustered(n_bits)
    ids = np.arange(1000, 1000 + len(codes))[::-1]
    store = open_store(n_bits)
    store.add(codes, ids, batch_size=150)
    assert store.count() == len(codes)
    table = double_loop(queries, codes, np.ones(n_bits))
    for candidates in ("auto", "hamming", "product"):
        assert_nearest(store.search(queries, 10, candidates=candidates), table, ids, 10)


def test_weighted_search_is_the_double_loop_with_negative_and_heavy_tailed_weights(open_store):
    codes, queries = clustered(24)
    weights = np.random.default_rng(1).standard_cauchy(24)
    assert (weights < 0).any()
    store = open_store(24)
    store.add(codes, np.arange(len(codes)))
    table = double_loop(queries, codes, weights)
    assert_nearest(store.search(queries, 10, bit_weights=weights), table, range(len(codes)), 10)


def test_real_valued_queries_are_the_double_loop(open_store):
    codes, signs = clustered(24)
    rng = np.random.default_rng(2)
    scores = signs * rng.exponential(size=signs.shape)
    weights = rng.exponential(size=24)
    store = open_store(24)
    store.add(codes, np.arange(len(codes)))
    for given in (None, weights):
        table = double_loop(scores, codes, np.ones(24) if given is None else given)
        assert_nearest(store.search(scores, 10, bit_weights=given), table, range(len(codes)), 10)


def test_hamming_candidates_are_ranked_again_by_weight_and_more_of_them_find_more(open_store):
    codes, queries = clustered(24)
    weights = np.random.default_rng(3).standard_cauchy(24)
    table = double_loop(queries, codes, weights)
    store = open_store(24)
    store.add(codes, np.arange(len(codes)))

    def found(oversample):
        distances, ids = store.search(queries, 5, bit_weights=weights, candidates="hamming", oversample=oversample)
        np.testing.assert_allclose(distances, np.take_along_axis(table, ids, axis=1), rtol=1e-5, atol=1e-5)
        return np.mean(distances <= np.sort(table, axis=1)[:, 4:5] + 1e-5)

    assert found(1) < found(len(codes)) == 1


def test_ties_come_in_the_order_of_ids(open_store):
    store = open_store(8)
    store.add(np.ones((6, 8)), [5, 3, 9, 1, 7, 2])
    for weights in (None, np.linspace(1, 2, 8)):
        _, ids = store.search(np.ones((1, 8), int), 6, bit_weights=weights)
        assert ids.tolist() == [[1, 2, 3, 5, 7, 9]]


def test_an_id_written_twice_has_its_last_code(open_store):
    codes, _ = clustered(16)
    store = open_store(16)
    store.add(codes[:50], np.arange(50))
    store.add(-codes[:10], np.arange(10))
    assert store.count() == 50
    for weights in (None, np.linspace(1, 2, 16)):
        distances, _ = store.search(-codes[:10], 1, bit_weights=weights)
        assert (distances == 0).all()


def test_more_asked_than_there_is_ends_in_minus_one(open_store):
    codes, queries = clustered(16)
    store = open_store(16)
    empty_distances, empty_ids = store.search(queries, 3, bit_weights=np.ones(16))
    assert (empty_ids == -1).all()
    assert np.isinf(empty_distances).all()
    assert (store.search(queries, 3)[1] == -1).all()
    store.add(codes[:4], np.arange(4))
    distances, ids = store.search(queries[:1], 6)
    assert sorted(ids[0, :4]) == [0, 1, 2, 3]
    assert ids[0, 4:].tolist() == [-1, -1]
    assert np.isinf(distances[0, 4:]).all()


def test_many_queries_equal_one_at_a_time(open_store):
    codes, _ = clustered(16)
    store = open_store(16)
    store.add(codes, np.arange(len(codes)))
    weights = np.linspace(1, 2, 16)
    together, _ = store.search(codes, 3, bit_weights=weights)
    for row in (0, 255, 256, len(codes) - 1):
        alone, _ = store.search(codes[row : row + 1], 3, bit_weights=weights)
        np.testing.assert_array_equal(alone[0], together[row])
    assert store.search(codes[:0], 3)[1].shape == (0, 3)


def test_opened_again_it_holds_the_same(open_store):
    codes, _ = clustered(16)
    with open_store(16) as store:
        store.add(codes, np.arange(len(codes)))
    with pytest.raises(ValueError, match="closed; open it again"):
        store.count()
    again = open_store(16)
    assert again.count() == len(codes)
    assert (again.search(codes[:3], 1)[0] == 0).all()


def test_drop_removes_this_one_and_no_other(open_store):
    codes, _ = clustered(16)
    first, second = open_store(16, name="drop_first"), open_store(16, name="drop_second")
    first.add(codes[:5], np.arange(5))
    second.add(codes[:7], np.arange(7))
    first.drop()
    with pytest.raises(ValueError, match="closed"):
        first.count()
    assert second.count() == 7
    assert open_store(16, name="drop_first").count() == 0


def test_removed_codes_are_found_no_more(open_store):
    codes, queries = clustered(16)
    store = open_store(16)
    store.add(codes, np.arange(len(codes)))
    assert store.remove([3, 5, 7, 1000]) == 3
    assert store.remove([3]) == 0
    assert store.count() == len(codes) - 3
    left = np.delete(np.arange(len(codes)), [3, 5, 7])
    for weights in (np.ones(16), np.linspace(1, 2, 16)):
        table = double_loop(queries, codes[left], weights)
        assert_nearest(store.search(queries, 10, bit_weights=weights), table, left, 10)


BRANDS = ["sony", "can'on", 'a "quoted" one', "ünïcode"]
COLUMNS = {"brand": str, "price": float, "year": int, "used": bool}
CONDITIONS = {
    "equal": ({"brand": "can'on"}, lambda row: row["brand"] == "can'on"),
    "one of": ({"brand": ["sony", 'a "quoted" one']}, lambda row: row["brand"] in ("sony", 'a "quoted" one')),
    "range": ({"price": {">=": 10, "<": 30}}, lambda row: 10 <= row["price"] < 30),
    "two columns": (
        {"year": {">": 2003}, "brand": "ünïcode"},
        lambda row: row["year"] > 2003 and row["brand"] == "ünïcode",
    ),
    "not": ({"year": {"!=": 2001}}, lambda row: row["year"] != 2001),
    "number": ({"year": 2002}, lambda row: row["year"] == 2002),
    "boolean": ({"used": True}, lambda row: row["used"]),
}


@pytest.fixture(scope="module")
def described(open_engine):
    """A store of 200 codes of 16 bits with columns, and its rows."""
    rng = np.random.default_rng(5)
    values = {
        "brand": [BRANDS[i % 4] for i in range(200)],
        "price": rng.uniform(0, 50, 200).tolist(),
        "year": rng.integers(2000, 2008, 200),
        "used": (rng.random(200) < 0.3).tolist(),
    }
    with open_engine(16, "described", columns=COLUMNS) as store:
        store.add(clustered(16)[0][:200], np.arange(200), values=values)
        yield store, [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


@pytest.mark.parametrize("case", CONDITIONS)
def test_filtered_search_is_the_double_loop_over_matching_rows(described, case):
    store, rows = described
    where, holds = CONDITIONS[case]
    codes, queries = clustered(16)
    ids = np.array([i for i, row in enumerate(rows) if holds(row)])
    assert 5 < len(ids) < 200
    for weights in (None, np.linspace(1, 2, 16)):
        table = double_loop(queries, codes[ids], np.ones(16) if weights is None else weights)
        found = store.search(queries, 6, bit_weights=weights, where=where, oversample=20)
        assert_nearest(found, table, ids, 6)


def test_conditions_that_no_row_meets_give_nothing(described):
    store, _ = described
    for where in ({"brand": "nobody"}, {"brand": []}, {"price": {">": 1000}}):
        assert (store.search(clustered(16)[1], 3, where=where)[1] == -1).all()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"colour": "red"}, "No column called 'colour' to filter by; there are 'brand', 'price', 'year', 'used'"),
        ({"price": {"~": 3}}, "A range in where takes"),
        ({"price": {}}, "A range in where takes"),
        ({"brand": None}, "texts, numbers or booleans, found None"),
        ("brand = 'sony'", "where must map columns to values"),
    ],
)
def test_wrong_conditions_are_refused(described, where, message):
    with pytest.raises(ValueError, match=message):
        described[0].search(clustered(16)[1], 3, where=where)


def test_values_that_do_not_fit_the_columns_are_refused(described):
    store, _ = described
    good = {"brand": ["x"], "price": [1.0], "year": [2000], "used": [False]}
    wrong = {
        "The store has the column 'used'": {name: good[name] for name in ("brand", "price", "year")},
        "has no column 'colour'": {**good, "colour": ["red"]},
        "1 codes need 1 values in column 'year', found 2": {**good, "year": [1, 2]},
        "Column 'year' holds int, found 'new'": {**good, "year": ["new"]},
        "Column 'price' holds float, found True": {**good, "price": [True]},
    }
    for message, values in wrong.items():
        with pytest.raises(ValueError, match=message):
            store.add(np.ones((1, 16)), [900], values=values)
    assert store.count() == 200


def test_an_id_written_twice_has_its_last_values(open_store):
    store = open_store(16, columns={"brand": str})
    store.add(np.ones((2, 16)), [1, 2], values={"brand": ["sony", "sony"]})
    store.add(np.ones((1, 16)), [1], values={"brand": ["canon"]})
    query = np.ones((1, 16), int)
    assert store.search(query, 2, where={"brand": "canon"})[1].tolist() == [[1, -1]]
    assert store.search(query, 2, where={"brand": "sony"})[1].tolist() == [[2, -1]]
    store.close()
    again = open_store(16, columns={"brand": str})
    assert again.search(query, 2, where={"brand": "sony"})[1].tolist() == [[2, -1]]
    with pytest.raises(ValueError, match="or name another"):
        open_store(16, columns={"brand": int})


@pytest.mark.parametrize("columns", [{"id": int}, {"a b": str}, {"brand": list}])
def test_columns_that_cannot_be_are_refused(open_store, columns):
    with pytest.raises(ValueError, match=r"(?i)column"):
        open_store(16, columns=columns)


WRONG_ADDS = {
    "width": (np.ones((2, 15)), [100, 101], "must have 16 bits, found 15"),
    "zero": (np.zeros((2, 16)), [100, 101], "only -1 and \\+1, found 0"),
    "fraction": (np.full((2, 16), 0.5), [100, 101], "only -1 and \\+1, found 0.5"),
    "nan": (np.full((2, 16), np.nan), [100, 101], "only -1 and \\+1, found nan"),
    "twice": (np.ones((2, 16)), [100, 100], "found 100 more than once"),
    "few ids": (np.ones((2, 16)), [100], "2 codes need ids of shape"),
    "float ids": (np.ones((2, 16)), [0.5, 1.5], "must be whole numbers"),
    "negative ids": (np.ones((2, 16)), [-1, 1], "between 0 and"),
    "huge ids": (np.ones((2, 16)), np.array([1, 2**63], np.uint64), "between 0 and"),
    "one row": (np.ones(16), [100], "must have shape"),
}


@pytest.mark.parametrize("case", WRONG_ADDS)
def test_a_wrong_add_says_why_and_changes_nothing(filled, case):
    codes, ids, message = WRONG_ADDS[case]
    with pytest.raises(ValueError, match=message):
        filled.add(codes, ids)
    assert filled.count() == 20
    assert (filled.search(clustered(16)[0][:20], 1)[0] == 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"queries": np.ones((1, 15), int)}, "must have 16 bits, found 15"),
        ({"queries": np.zeros((1, 16), int)}, "only -1 and \\+1"),
        ({"queries": np.full((1, 16), np.nan)}, "finite scores"),
        ({"bit_weights": np.ones(15)}, "bit_weights of shape"),
        ({"bit_weights": np.full(16, np.nan)}, "must be finite"),
        ({"k": 0}, "at least 1"),
        ({"oversample": 0.5}, "oversample must be at least 1"),
        ({"oversample": np.nan}, "oversample must be at least 1"),
        ({"candidates": "cosine"}, "one of auto, hamming, product"),
    ],
)
def test_a_wrong_search_says_why(filled, arguments, message):
    with pytest.raises(ValueError, match=message):
        filled.search(**{"queries": np.ones((1, 16), int), "k": 3} | arguments)


def test_another_width_is_refused_and_the_codes_stay(open_store):
    codes, _ = clustered(16)
    store = open_store(16)
    store.add(codes, np.arange(len(codes)))
    for n_bits in (15, 24):
        with pytest.raises(ValueError, match=f"store of {n_bits} bits needs .* has .*16.* own n_bits"):
            open_store(n_bits)
    assert store.count() == len(codes)


@pytest.mark.parametrize("name", ["", "a-b", "codes; DROP TABLE x", '"codes"', "1codes", "x" * 64, "a.b.c"])
def test_names_that_are_none_are_refused(open_store, name):
    with pytest.raises(ValueError, match="letters, digits and underscores"):
        open_store(16, name=name)


def test_what_a_store_cannot_be_is_refused(open_store):
    for n_bits in (0, 2.5, 100_000):
        with pytest.raises(ValueError, match="bits"):
            open_store(n_bits)


@pytest.mark.parametrize("open_engine", ["pgvector", "milvus"], indirect=True)
def test_an_unknown_kind_of_index_is_refused(open_store):
    with pytest.raises(ValueError, match="index must be"):
        open_store(16, index="annoy")


def test_agrees_with_the_index_in_memory(open_store):
    codes, queries = clustered(40, n_items=2000, n_queries=50)
    weights = np.random.default_rng(4).exponential(size=40)
    store = open_store(40)
    store.add(codes, np.arange(len(codes)))
    for given in (None, weights):
        index = hbmp.Index(40, bit_weights=given)
        index.add(codes)
        expected, _ = index.search(queries, 10)
        found, _ = store.search(queries, 10, bit_weights=given)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_searches_while_another_thread_adds(open_store):
    codes, queries = clustered(16)
    store = open_store(16)
    store.add(codes[:100], np.arange(100))
    errors = []

    def add_more():
        try:
            for start in range(100, 400, 50):
                store.add(codes[start : start + 50], np.arange(start, start + 50))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=add_more)
    thread.start()
    for _ in range(10):
        assert (store.search(queries, 5, bit_weights=np.linspace(1, 2, 16))[1] >= 0).all()
    thread.join()
    assert errors == []
    assert store.count() == 400


def test_the_page_about_stores_runs_as_it_is_written(postgres, tmp_path, monkeypatch):
    found = blocks((Path(__file__).parents[2] / "docs" / "stores.md").read_text())
    assert len(found) >= 6
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "block"}
    for number, block in enumerate(found, start=1):
        here = block._replace(code=block.code.replace("postgresql://localhost/mydb", postgres))
        printed = run(here, names, f"stores.md, block {number}")
        assert block.shown is None or is_shown(block.shown, printed), f"stores.md should show:\n{printed}"
    names["hbmp"].stores.PGVector(64, postgres, table="films").drop()


def test_the_table_on_the_page_is_the_one_that_was_measured():
    root = Path(__file__).parents[2]
    benchmark = runpy.run_path(str(root / "benchmarks" / "stores.py"), run_name="benchmark")
    rows = json.loads((root / "results" / "benchmark-stores.json").read_text())["rows"]
    assert benchmark["table"](rows) in (root / "docs" / "stores.md").read_text()
