"""A database finds by features what its index finds by codes, keeps what items carry, and comes back from disk."""

from __future__ import annotations

import itertools
import os
import sqlite3

import numpy as np
import pytest
from sklearn.datasets import load_digits

import hbmp
from hbmp import hamming
from hbmp._core.filters import conditions
from hbmp.database import Database, blocks, encode
from hbmp.database.database_file import DatabaseFile

X, Y = (part[:300] for part in load_digits(return_X_y=True))
MODEL = hbmp.get_method("pca_sign")(12, random_state=0).fit(X[:200])
NAMES = [f"sku {number}" for number in range(300)]
ITEMS = [
    {
        "title": f"digit {label} №{number}",
        "brand": "sony" if label % 3 else None,
        "price": number / 4,
        "even": not label % 2,
    }
    for number, label in enumerate(Y.tolist())
]


def brute_force(queries, k, allowed=None, n_bits=12):
    """Distance to every item by a double loop, ties by id."""
    codes, items = MODEL.transform(queries)[:, :n_bits], MODEL.transform(X)[:, :n_bits]
    found = []
    for code in codes:
        distances = [int(sum(a != b for a, b in zip(code, item, strict=True))) for item in items]
        chosen = range(len(items)) if allowed is None else allowed
        found.append(sorted(chosen, key=lambda place: (distances[place], place))[:k])
    return found


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "shop.db"


def test_search_is_brute_force_over_the_models_codes():
    database = Database.build(MODEL, X)
    distances, ids = database.search(X[:5], 7)
    assert ids.tolist() == brute_force(X[:5], 7)
    assert (distances[:, 0] == 0).all()
    scored, _ = database.search(X[:5], 3, real_valued=True)
    every = hamming.distances(MODEL.project(X[:5]), MODEL.transform(X))
    np.testing.assert_allclose(scored, np.sort(every, axis=1)[:, :3], rtol=1e-6)
    assert database.search(X[:5], 7, n_bits=5)[1].tolist() == brute_force(X[:5], 7, n_bits=5)


def test_text_ids_payload_filters_and_subsets(place):
    database = Database.build(MODEL, X, ids=NAMES, labels=Y, payload=ITEMS, path=place)
    assert database.id_type is str
    assert database.columns == {"title": "text", "brand": "text", "price": "float", "even": "bool"}
    wheres = [
        {"brand": "sony"},
        {"brand": ["sony", "canon"], "even": True},
        {"price": {">=": 10, "<": 20}},
        {"price": {"!=": 1}, "label": [3, 4]},
        {"brand": {">": 5}},
        {"title": {">": "digit 8"}},
        {"price": {"<": "a"}},
        {"brand": []},
    ]
    rows = [{**item, "label": int(label)} for item, label in zip(ITEMS, Y, strict=True)]
    for where in wheres:
        allowed = [n for n, row in enumerate(rows) if all(c.holds(row[c.column]) for c in conditions(where))]
        distances, found = database.search(X[:4], 6, where=where)
        expected = [[NAMES[n] for n in row] + [None] * (6 - len(row)) for row in brute_force(X[:4], 6, allowed)]
        assert found.tolist() == expected
        assert np.isinf(distances[:, len(allowed) :]).all()
    few = [NAMES[n] for n in (7, 3, 250)]
    assert database.search(X[:2], 4, ids=[*few, "nobody"])[1].tolist() == [
        [NAMES[n] for n in row] + [None] for row in brute_force(X[:2], 4, [7, 3, 250])
    ]
    even = [n for n in (7, 3, 250) if ITEMS[n]["even"]]
    both = database.search(X[:1], 3, ids=few, where={"even": True})[1][0].tolist()
    assert both == [NAMES[n] for n in brute_force(X[:1], 3, even)[0]] + [None] * (3 - len(even))
    assert database.payload_of(["sku 5", "nobody"]) == [ITEMS[5], None]
    facets = database.facets()
    assert set(facets) == {"even", "label"}  # titles and prices are too many, and the brand has one value
    for name, column in (("even", [item["even"] for item in ITEMS]), ("label", Y.tolist())):
        assert dict(facets[name]) == {value: column.count(value) for value in column}
        assert facets[name] == sorted(facets[name], key=lambda pair: (-pair[1], pair[0]))
    with pytest.raises(ValueError, match="No column called 'colour'"):
        database.search(X[:1], where={"colour": "red"})


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_rescoring_ranks_by_the_kept_vectors(kind, metric):
    vectors = np.random.default_rng(0).standard_normal(X.shape).astype(np.float32) * 3
    model = hbmp.get_method("lsh")(12, random_state=0).fit(vectors)
    database = Database.build(model, vectors, ids=NAMES, vectors=kind)
    queries = vectors[:5] + 0.1
    distances, found = database.search(queries, 4, rescore=300, metric=metric)
    exact, places = hbmp.rescore(queries, np.tile(np.arange(300), (5, 1)), vectors, k=4, metric=metric)
    np.testing.assert_allclose(distances, exact, rtol=0.02, atol=0.02)
    if kind == "float32":
        assert found.tolist() == [[NAMES[n] for n in row] for row in places]
    for real_valued, finer in ((None, True), (True, True), (False, False)):  # real-valued by default
        few = database.search(queries, 4, rescore=10, real_valued=real_valued)[1]
        near = database.search(queries, 10, real_valued=finer)[1]
        assert all(set(row) <= set(candidates) for row, candidates in zip(few, near, strict=True))
    with pytest.raises(ValueError, match="build it with vectors='float16'"):
        Database.build(model, vectors).search(queries, rescore=10)


def test_adding_removing_and_updating_is_the_same_as_building_anew(place):
    rng = np.random.default_rng(0)
    database = Database.build(
        MODEL, X[:50], ids=NAMES[:50], labels=Y[:50], payload=ITEMS[:50], vectors="float32", path=place
    )
    mirror = {name: (X[n], int(Y[n]), ITEMS[n]) for n, name in enumerate(NAMES[:50])}
    for step in range(25):
        free = [n for n in range(300) if NAMES[n] not in mirror]
        new = rng.choice(free, min(len(free), int(rng.integers(1, 20))), replace=False)
        database.add(X[new], ids=[NAMES[n] for n in new], labels=Y[new], payload=[ITEMS[n] for n in new])
        mirror |= {NAMES[n]: (X[n], int(Y[n]), ITEMS[n]) for n in new}
        gone = rng.choice(sorted(mirror), 7, replace=False).tolist()
        assert database.remove([*gone, "nobody"]) == 7
        mirror = {name: item for name, item in mirror.items() if name not in gone}
        changed = rng.choice(sorted(mirror), 3, replace=False).tolist()
        database.update(changed, X=X[step : step + 3], labels=[9, 9, 9], payload=[{"price": step}] * 3)
        for row, name in enumerate(changed):
            mirror[name] = (X[step + row], 9, {**mirror[name][2], "price": float(step)})
    for found in (database, Database.load(place)) if place else (database,):
        names = found.ids.tolist()
        assert sorted(names) == sorted(mirror)
        np.testing.assert_array_equal(found.codes(), MODEL.transform(np.array([mirror[name][0] for name in names])))
        assert found.payload_of(names) == [mirror[name][2] for name in names]
        assert found.labels.tolist() == [mirror[name][1] for name in names]
        distances, _ = found.search(X[:3], 1, rescore=len(names), metric="l2")
        table = np.array([mirror[name][0] for name in names])
        exact = np.linalg.norm(table[None] - X[:3, None], axis=2)
        np.testing.assert_allclose(distances[:, 0], exact.min(axis=1), atol=1e-4)
    if place:
        assert database._store.rows("SELECT count(*) FROM blocks")[0][0] < 12  # the log is merged as it grows


@pytest.mark.parametrize("kind", ["text", "int"])
def test_items_are_found_replaced_and_removed_by_conditions(place, kind):
    ids = NAMES if kind == "text" else list(range(7, 307))
    database = Database.build(MODEL, X, ids=ids, labels=Y, payload=ITEMS, vectors="float32", path=place)
    even = [one for one, item in zip(ids, ITEMS, strict=True) if item["even"]]
    assert database.find({"even": True}).tolist() == even
    assert database.find({}).tolist() == ids
    np.testing.assert_array_equal(database.vectors_of([ids[5], ids[2]]), X[[5, 2]])
    np.testing.assert_array_equal(database.codes([ids[5], ids[2]]), MODEL.transform(X[[5, 2]]))
    new = [*ids[:3], "new" if kind == "text" else 999]
    with pytest.raises(ValueError, match="3 of the 4 ids are already in the database"):
        database.add(X[200:204], ids=new, labels=Y[200:204], payload=ITEMS[200:204])
    with pytest.raises(ValueError, match="a payload for 1"):
        database.add(X[200:204], ids=new, labels=Y[200:204], payload=ITEMS[:1], replace=True)
    assert database.payload_of(ids[:3]) == ITEMS[:3]
    database.add(X[200:204], ids=new, labels=Y[200:204], payload=ITEMS[200:204], replace=True)
    assert len(database) == 301
    assert database.payload_of(new) == ITEMS[200:204]
    np.testing.assert_array_equal(database.vectors_of(new), X[200:204])
    np.testing.assert_array_equal(database.codes(new), MODEL.transform(X[200:204]))
    assert database.remove(new, where={"even": True}) == sum(item["even"] for item in ITEMS[200:204])
    left = database.find({"even": True})
    assert database.remove(where={"even": True}) == len(left)
    assert not database.find({"even": True}).size
    for wrong in ({}, {"where": {}}):
        with pytest.raises(ValueError, match="No items given"):
            database.remove(**wrong)
    with pytest.raises(LookupError, match="no item 'nobody'"):
        database.codes(["nobody"])


def test_any_change_that_fails_changes_nothing(place):
    database = Database.build(MODEL, X[:50], ids=NAMES[:50], labels=Y[:50], payload=ITEMS[:50], path=place)

    def state():
        return database.ids.tolist(), database.payload_of(NAMES[:60]), database.columns, database.codes().tolist()

    before = state()
    more = {"ids": NAMES[50:60], "labels": Y[50:60], "payload": ITEMS[50:60]}
    for wrong, sentence in [
        ({"ids": NAMES[45:55]}, "5 of the 10 ids are already in the database, for example 'sku 45'"),
        ({"ids": ["a"] * 10}, "distinct, found 'a'"),
        ({"ids": range(10)}, "ids of this database are texts, found integers"),
        ({"ids": None}, "pass ids=… with one id per row"),
        ({"labels": None}, "pass one label per row"),
        ({"labels": np.eye(10)}, "labels of this database are classes, found rows of 10 labels"),
        ({"payload": ITEMS[:3]}, "10 rows but a payload for 3"),
        ({"payload": [{"new": 1}] * 9 + [{"new": "x"}]}, "Column 'new' holds values of kind int, found 'x'"),
        ({"payload": [{"price": "cheap"}] * 10}, "Column 'price' holds values of kind float, found 'cheap'"),
        ({"payload": [{"label": 1}] * 10}, "cannot have a column 'label'"),
        ({"payload": [{"new": 2**63}] * 10}, "does not fit in 64 bits"),
        ({"payload": "title"}, "A payload is a list of dicts"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            database.add(X[50:60], **{**more, **wrong})
        assert state() == before
    with pytest.raises(LookupError, match=r"1 of the 2 ids are not in the database, e\.g\. 'nobody'"):
        database.update(["sku 1", "nobody"], payload=[{"title": "x"}] * 2)
    for change in (database.index.add, database.index.add_packed, database.index.remove):
        with pytest.raises(ValueError, match="belongs to a database; use database"):
            change([1])
    assert state() == before
    database.add(X[50:60], **more)
    assert len(database) == 60


def test_another_connection_sees_each_change_and_a_replacement(tmp_path):
    path = tmp_path / "db"
    writer = Database.build(MODEL, X[:50], payload=ITEMS[:50], path=path)
    reader = Database.load(path)
    writer.add(X[50:60], payload=ITEMS[50:60])
    writer.remove([0, 1])
    assert len(reader) == 58
    assert reader.search(X[55:56], 1)[1][0, 0] == writer.search(X[55:56], 1)[1][0, 0]
    reader.update([5], payload=[{"title": "new"}])
    assert writer.payload_of([5])[0]["title"] == "new"
    other = hbmp.get_method("lsh")(8, random_state=0).fit(X)
    with pytest.raises(ValueError, match="is a database already; pass replace=True"):
        Database.build(other, X, path=path)
    Database.build(other, X, ids=NAMES, path=path, replace=True)
    for one in (reader, writer):
        assert repr(one) == "Database(300 items of 8 bits, LSH)"
        assert one.search(X[7:8], 300)[1][0].tolist().count("sku 7") == 1
    assert len(os.listdir(tmp_path)) == 3  # with the log of the two open connections
    reader.close()
    writer.close()
    assert os.listdir(tmp_path) == ["db"]


@pytest.mark.parametrize(
    ("labels", "names", "text"),
    [
        (Y, (), [str(label) for label in Y]),
        (np.array([f"digit {label}" for label in Y], dtype=object), (), [f"digit {label}" for label in Y]),
        (np.eye(10, dtype=np.uint8)[Y], (), [str(label) for label in Y]),
        (np.eye(10, dtype=np.uint8)[Y] + np.eye(10, dtype=np.uint8)[9 - Y], tuple("abcdefghij"), None),
        (None, (), [None] * len(Y)),
    ],
    ids=["numbers", "words", "sets", "named sets", "none"],
)
def test_ids_and_labels_stay_with_their_codes_and_come_back(labels, names, text, tmp_path):
    ids = np.random.default_rng(0).permutation(1000)[: len(X)]
    before = Database.build(MODEL, X, ids=ids, labels=labels, label_names=names, source={"name": "digits"})
    before.save(tmp_path / "deep" / "db")
    after = Database.load(tmp_path / "deep" / "db")
    if text is None:
        text = [";".join("abcdefghij"[place] for place in sorted({int(label), 9 - int(label)})) for label in Y]
    for database in (before, after):
        assert database.labels_of(ids) == text
        assert database.labels_of([-1, 10_000]) == [None, None]
        np.testing.assert_array_equal(database.codes(), MODEL.transform(X)[np.argsort(ids)])
        np.testing.assert_array_equal(database.ids, np.sort(ids))
        assert len(database) == len(X)
        if labels is not None:
            np.testing.assert_array_equal(database.labels, np.asarray(labels)[np.argsort(ids)])
    for found, expected in zip(after.search(X[:9], 5), before.search(X[:9], 5), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert after.source == {"name": "digits"}
    after.close()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["db"]


def test_inverted_lists_are_kept_and_follow_changes(tmp_path):
    Database.build(MODEL, X, kind="ivf", path=tmp_path / "db")
    database = Database.load(tmp_path / "db")
    assert database.index.kind == "ivf"
    database.add(X[:20], ids=range(1000, 1020))
    database.remove(range(100))
    database.update([200], X=X[:1])
    again = Database.load(tmp_path / "db")
    for one in (database, again):
        assert one.index.kind == "ivf"
        assert len(one) == 220
        np.testing.assert_array_equal(one.codes()[100], MODEL.transform(X[:1])[0])
        np.testing.assert_array_equal(one.codes()[200:], MODEL.transform(X[:20]))


def test_payloads_come_as_tables_too():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"n": [1, 2, 3], "when": pandas.to_datetime(["2026-01-01"] * 2 + [None]), "t": ["a", None, "c"]}
    )
    expected = [{"n": 1, "t": "a"}, {"n": 2, "t": None}, {"n": 3, "t": "c"}]
    for table in (frame, pyarrow.Table.from_pandas(frame), dict(frame), frame.to_dict("records")):
        found = Database.build(MODEL, X[:3], payload=table).payload_of([0, 1, 2])
        assert [{"n": row["n"], "t": row["t"]} for row in found] == expected
        assert found[2]["when"] is None
        assert found[0]["when"].startswith("2026-01-01")


def test_only_a_database_is_replaced(tmp_path):
    Database.build(MODEL, X[:50]).save(tmp_path / "db")
    Database.build(MODEL, X[:60]).save(tmp_path / "db")
    assert len(Database.load(tmp_path / "db")) == 60
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear")
    (tmp_path / "diary").write_text("dear")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE diary (text)")
    other.close()
    for name in ("mine", "diary", "other"):
        with pytest.raises(ValueError, match="exists and is not a database; choose another name"):
            Database.build(MODEL, X[:50]).save(tmp_path / name)
        with pytest.raises(ValueError, match=r"is not a database\. Make one with `hbmp index`"):
            Database.load(tmp_path / name)
    assert (tmp_path / "mine" / "diary.txt").read_text() == (tmp_path / "diary").read_text() == "dear"


def test_a_damaged_or_newer_database_gives_a_sentence(tmp_path):
    path = tmp_path / "db"
    Database.build(MODEL, X, payload=ITEMS).save(path)
    whole = path.read_bytes()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE blocks SET codes = randomblob(length(codes))")
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match=r"is damaged \(a block of codes does not match its checksum"):
        Database.load(path)
    for content, sentence in [
        (whole[: len(whole) // 2], "is damaged"),
        (whole[:60] + (99).to_bytes(4, "big") + whole[64:], r"format 99; this version reads up to 3\. Upgrade"),
        (whole[:4096] + bytes(16384) + whole[20480:], "is damaged"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=sentence):
            Database.load(path).payload_of(range(300))


def test_wrong_items_give_a_sentence():
    with pytest.raises(ValueError, match="300 rows but 5 labels"):
        Database.build(MODEL, X, labels=Y[:5])
    with pytest.raises(ValueError, match="Ids must be distinct"):
        Database.build(MODEL, X, ids=np.zeros(len(X), dtype=int))
    with pytest.raises(ValueError, match="Features must have shape"):
        Database.build(MODEL, X[0])
    with pytest.raises(ValueError, match="vectors must be one of float32, float16, int8, found 'int4'"):
        Database.build(MODEL, X, vectors="int4")
    with pytest.raises(ValueError, match="float16 cannot"):
        Database.build(MODEL, X * 1e5, vectors="float16")


def test_blocks_give_the_codes_of_the_whole(monkeypatch):
    monkeypatch.setattr("hbmp.database.encoding._ROWS", 64)
    codes = MODEL.transform(X)
    np.testing.assert_array_equal(encode(MODEL, X), codes)
    packed = np.zeros((len(X), 2), dtype=np.uint8)
    np.testing.assert_array_equal(hamming.unpack(encode(MODEL, X, out=packed), 12), codes)
    np.testing.assert_array_equal(Database.build(MODEL, X, ids=np.arange(300)[::-1]).codes()[::-1], codes)


def test_the_log_of_blocks_is_a_dictionary(monkeypatch):
    """Random writes and removals against a dict; a reader that looks now and then sees the same."""
    monkeypatch.setattr(blocks, "SIZE", 40)
    monkeypatch.setattr(blocks, "_HISTORY", 200)
    rng, truth, known, seq, generation = np.random.default_rng(0), {}, {}, 0, None
    store = DatabaseFile.create()
    for step in range(400):
        numbers = np.unique(rng.integers(0, 200, rng.integers(0, 30)))
        removed = np.setdiff1d(np.unique(rng.integers(0, 200, rng.integers(0, 12))), numbers)
        codes = rng.integers(0, 256, (len(numbers), 2)).astype(np.uint8)
        truth = {n: c for n, c in truth.items() if n not in set(removed.tolist())}
        truth |= dict(zip(numbers.tolist(), codes.tolist(), strict=True))
        with store.transaction():
            store.put("items", len(truth))
            blocks.append(store, blocks.Block(numbers, codes, removed))
        if step % 7 == 0:
            if store.get("generation", None) != generation:
                known, seq, generation = {}, 0, store.get("generation", None)
            new, seq = blocks.read(store, seq)
            known = {n: c for n, c in known.items() if n not in set(new.removed.tolist())}
            known |= dict(zip(new.numbers.tolist(), new.codes.tolist(), strict=True))
            assert known == truth
            whole, _ = blocks.read(store)
            assert dict(zip(whole.numbers.tolist(), whole.codes.tolist(), strict=True)) == truth
            assert list(itertools.pairwise(whole.numbers)) == [
                (a, b) for a, b in itertools.pairwise(whole.numbers) if a < b
            ]
    assert generation is not None  # its history was forgotten at least once
