"""A database finds by features what its index finds by codes, and comes back from disk as it was."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

import hbmp
from hbmp import hamming
from hbmp.database import Database, encode

X, Y = (part[:300] for part in load_digits(return_X_y=True))
MODEL = hbmp.get_method("pca_sign")(12, random_state=0).fit(X[:200])


def brute_force(queries, k):
    """Distance to every item by a double loop, ties by id."""
    codes, items = MODEL.transform(queries), MODEL.transform(X)
    found = []
    for code in codes:
        distances = [int(sum(a != b for a, b in zip(code, item, strict=True))) for item in items]
        found.append(sorted(range(len(items)), key=lambda place: (distances[place], place))[:k])
    return found


def test_search_is_brute_force_over_the_models_codes():
    database = Database.build(MODEL, X)
    distances, ids = database.search(X[:5], 7)
    assert ids.tolist() == brute_force(X[:5], 7)
    assert (distances[:, 0] == 0).all()
    scored, _ = database.search(X[:5], 3, real_valued=True)
    every = hamming.distances(MODEL.project(X[:5]), MODEL.transform(X))
    np.testing.assert_allclose(scored, np.sort(every, axis=1)[:, :3], rtol=1e-6)


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
    for found, expected in zip(after.search(X[:9], 5), before.search(X[:9], 5), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert after.source == {"name": "digits"}
    assert {path.name for path in (tmp_path / "deep" / "db").iterdir()} == {
        "database.json",
        "index.hbmp",
        "items.npz",
        "model",
    }
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["db"]


def test_only_a_database_is_replaced(tmp_path):
    Database.build(MODEL, X[:50]).save(tmp_path / "db")
    Database.build(MODEL, X[:60]).save(tmp_path / "db")
    assert len(Database.load(tmp_path / "db")) == 60
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear")
    with pytest.raises(ValueError, match="exists and is not a database; choose another name"):
        Database.build(MODEL, X[:50]).save(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["diary.txt"]


def test_a_damaged_or_missing_database_gives_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"is not a database: it has no database\.json"):
        Database.load(tmp_path)
    Database.build(MODEL, X[:50]).save(tmp_path / "db")
    described = tmp_path / "db" / "database.json"
    described.write_text(json.dumps({**json.loads(described.read_text()), "format": 99}))
    with pytest.raises(ValueError, match=r"format 99; this version reads up to 2\. Upgrade"):
        Database.load(tmp_path / "db")
    described.write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        Database.load(tmp_path / "db")
    for name, content in (("one", X[:40]), ("two", X[:50])):
        Database.build(MODEL, content).save(tmp_path / name)
    (tmp_path / "two" / "index.hbmp").replace(tmp_path / "one" / "index.hbmp")
    with pytest.raises(ValueError, match="50 codes but 40 ids"):
        Database.load(tmp_path / "one")
    (tmp_path / "two" / "items.npz").replace(tmp_path / "one" / "items.npz")
    with pytest.raises(ValueError, match=r"items\.npz does not match its SHA-256 digest"):
        Database.load(tmp_path / "one")


def test_wrong_items_give_a_sentence():
    with pytest.raises(ValueError, match="300 rows but 5 labels"):
        Database.build(MODEL, X, labels=Y[:5])
    with pytest.raises(ValueError, match="Ids must be distinct"):
        Database.build(MODEL, X, ids=np.zeros(len(X), dtype=int))
    with pytest.raises(ValueError, match="Features must have shape"):
        Database.build(MODEL, X[0])


def test_blocks_give_the_codes_of_the_whole(monkeypatch):
    monkeypatch.setattr("hbmp.database.encoding._ROWS", 64)
    codes = MODEL.transform(X)
    np.testing.assert_array_equal(encode(MODEL, X), codes)
    packed = np.zeros((len(X), 2), dtype=np.uint8)
    np.testing.assert_array_equal(hamming.unpack(encode(MODEL, X, out=packed), 12), codes)
