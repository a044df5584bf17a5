"""Contents that no version of hbmp writes: one sentence with the name of the file, nothing beyond the file is read."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import sys
import tarfile
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import hbmp
from hbmp import datasets, encoders
from hbmp._core.arrays import as_labels, as_names
from hbmp.app.inputs import read_labels
from hbmp.app.inputs.item_table import ItemTable
from hbmp.app.wheres import where_from_words

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
import small_encoders

X = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)


# --- weights of encoders ------------------------------------------------------------------------------------------


def test_a_token_beyond_the_table_is_refused_not_read(tmp_path):
    folder = small_encoders.write_table(tmp_path)
    save_file({"embedding.weight": np.ones((3, 24), np.float16)}, folder / "table_24.safetensors")
    with pytest.raises(ValueError, match=r"tokenizer_config\.json knows token \d+, and the table beside it has 3 rows"):
        encoders.WordLlama(folder).encode(["the sofa and a couch"])


def test_a_table_of_missing_numbers_is_refused(tmp_path):
    folder = small_encoders.write_table(tmp_path)
    save_file({"embedding.weight": np.full((15, 24), np.nan, np.float16)}, folder / "table_24.safetensors")
    with pytest.raises(ValueError, match=r"table_24\.safetensors holds infinite or missing numbers"):
        encoders.WordLlama(folder).encode(["a cat"])


def test_a_tokenizer_without_the_unknown_token_is_named(tmp_path):
    folder = small_encoders.write_table(tmp_path)
    path = folder / "tokenizer_config.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"] = {f"other{word}": at for word, at in content["model"]["vocab"].items()}
    path.write_text(json.dumps(content))
    with pytest.raises(
        ValueError, match=r"tokenizer_config\.json cannot be read as a tokenizer .*; get the file again"
    ):
        encoders.WordLlama(folder).encode(["words that no table holds"])


# --- counts, formats and parts that do not fit ---------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [3, 9])
def test_parquet_of_other_rows_than_it_names_is_refused(tmp_path, monkeypatch, n_rows):
    import pyarrow as pa
    from pyarrow import parquet

    from hbmp._core import parquet_rows

    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"x": [[1.0, 2.0]] * 6}), path)
    blocks = [np.ones((3, 2), np.float32)] * (n_rows // 3)
    monkeypatch.setattr(parquet_rows, "_blocks", lambda *_: iter(blocks))
    with pytest.raises(ValueError, match=r"x\.parquet does not hold the 6 rows that it names"):
        parquet_rows.read_rows(path, "x")


def test_an_unknown_schema_format_of_sqlite_is_damage(tmp_path):
    path = tmp_path / "db"
    model = hbmp.HBMP(8, random_state=0).fit(np.repeat(X, 5, axis=0))
    hbmp.Database.build(model, X, path=path).close()
    content = bytearray(path.read_bytes())
    content[47] = 9
    path.write_bytes(content)
    with pytest.raises(ValueError, match="db"):
        hbmp.Database.load(path)


def test_items_of_an_old_database_without_ids_are_named(tmp_path):
    folder = tmp_path / "db"
    shutil.copytree(Path(__file__).parents[1] / "golden" / "databases" / "format-1" / "features", folder)
    np.savez(folder / "items.npz", other=np.arange(120))
    with pytest.raises(ValueError, match=r"items\.npz holds no ids"):
        hbmp.Database.load(folder)


# --- networks -------------------------------------------------------------------------------------------------------


def test_a_damaged_network_is_named(tmp_path):
    path = small_encoders.write_network(tmp_path) / "onnx" / "model.onnx"
    whole = path.read_bytes()
    for damaged in (whole[:200], whole.replace(b"attention_mask", b"attention_misk")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"model\.onnx cannot be read as a .*; get the file again"):
            encoders.MiniLM(tmp_path, threads=1).encode(["a cat"])


def test_a_network_of_missing_numbers_is_named(tmp_path):
    onnx = pytest.importorskip("onnx")
    path = small_encoders.write_network(tmp_path) / "onnx" / "model.onnx"
    model = onnx.load(path)
    table = next(one for one in model.graph.initializer if one.name == "table")
    table.CopyFrom(onnx.numpy_helper.from_array(np.full((len(small_encoders.WORDS), 12), np.nan, np.float32), "table"))
    onnx.save(model, path)
    with pytest.raises(ValueError, match=r"model\.onnx cannot be read .* \(it gives infinite or missing numbers\)"):
        encoders.MiniLM(tmp_path, threads=1).encode(["a cat"])


@pytest.mark.parametrize("arrays", [{"rows": np.zeros(3, np.uint8)}, {"roles": np.zeros(3)}, {"roles": np.array("x")}])
def test_a_split_without_roles_is_named(arrays, tmp_path):
    np.savez(tmp_path / "split.npz", **arrays)
    with pytest.raises(ValueError, match=r"split\.npz cannot be read as a split"):
        hbmp.protocols.Split.load(tmp_path / "split.npz")


# --- labels and tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["+-3", "--3", "9" * 5000, "9" * 20, "1_000", "\u00b2", "nan", "-inf"])
def test_labels_that_look_like_numbers_stay_names(odd, tmp_path):
    (tmp_path / "labels.txt").write_text(f"{odd}\n7\n", encoding="utf-8")
    labels, _ = read_labels(tmp_path / "labels.txt")
    assert labels.tolist() == [odd, "7"]


@pytest.mark.parametrize(
    "odd", [np.zeros(3, "M8[s]"), np.zeros(3, complex), np.zeros(3, [("a", "f4")]), np.zeros(3, "V4")]
)
def test_labels_of_odd_types_are_refused(odd):
    with pytest.raises(ValueError, match=r"Labels must be \(n,\) classes, as numbers or texts"):
        as_labels(odd, "y.npy")
    with pytest.raises(
        ValueError,
        match=r"the names of labels must be a list; those of y\.npz have shape \(\)".replace("the", "The", 1),
    ):
        as_names({"classes": np.array("cat")}, "y.npz")


def test_json_without_end_is_a_sentence(tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"text": "a"}\n' + "[" * 200_000, encoding="utf-8")
    with pytest.raises(ValueError, match=r"Line 2 of .*texts\.jsonl is not JSON"):
        ItemTable(tmp_path / "texts.jsonl")
    with pytest.raises(ValueError, match="is not JSON"):
        where_from_words(["brand=" + "[" * 200_000], {})


def test_damaged_pages_of_texts_are_named(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"text": ["one", "two"]}), path, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    for damaged in (whole.replace(b"one", b"\xff\xfe\xfd"), whole[:4] + b"\xff" * 20 + whole[24:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"texts\.parquet cannot be read as Parquet"):
            ItemTable(path).texts()


# --- data sets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lock", ["[]", '{"a": 1}', '{"a": {"sha256": 5, "files": {}}}', '{"a": {"sha256": "0", "files": {"b": "c"}}}']
)
def test_a_record_of_downloads_that_is_none(lock, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "fetch.json").write_text(lock, encoding="utf-8")
    with pytest.raises(ValueError, match=r"fetch\.json is not a record of downloads"):
        datasets.fetch("mnist", tmp_path)


def test_damaged_archives_of_images_are_named(tmp_path):
    pytest.importorskip("PIL")
    np.savez(tmp_path / "labels.npz", names=["a"])
    with tarfile.open(tmp_path / "images.tar", "w") as tar:
        info = tarfile.TarInfo("images/a.jpg")
        info.size = 6
        tar.addfile(info, io.BytesIO(b"no jpg"))
    with pytest.raises(ValueError, match=r"a\.jpg cannot be read as an image"):
        datasets.pack_images(tmp_path)
    (tmp_path / "images.tar").write_bytes(b"no archive" * 100)
    with pytest.raises(ValueError, match=r"images\.tar cannot be read as an archive of images"):
        datasets.pack_images(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images.tar", "labels.npz"]


# --- databases ------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path):
    model = hbmp.get_method("lsh")(8, random_state=0).fit(X)
    hbmp.Database.build(
        model, X, ids=[f"i{row}" for row in range(12)], labels=np.arange(12) % 2, path=tmp_path / "shop.db"
    ).close()
    return tmp_path / "shop.db"


def forge(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def forge_fact(path, name, change):
    """Write a fact with its right checksum."""
    with closing(sqlite3.connect(path)) as connection, connection:
        value = json.loads(connection.execute("SELECT value FROM meta WHERE name = ?", [name]).fetchone()[0])
        text = json.dumps(change(value))
        connection.execute(
            "UPDATE meta SET value = ?, crc = ? WHERE name = ?", [text, zlib.crc32(f"{name}\n{text}".encode()), name]
        )


FACTS = {
    "labels": [{"kind": "classes", "type": "O"}, {"kind": "rows", "size": -1, "type": "uint8"}, {"kind": "rows"}, []],
    "columns": [[], {"a": ["text"]}, {"a": "blob"}, None],
    "vectors": [{"kind": "float32", "dimension": 0}, {"kind": "|O", "dimension": 2}, "float32"],
    "images": [{"absolute": None}, {"absolute": "/", "beside": 3}, ["/"]],
    "label_names": [None, [1], "ab"],
    "next": [-1, 2**63, 1.5, None, True],
    "ids": ["bytes", ["text"], 0],
    "source": [None, []],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in FACTS.items() for value in values])
def test_facts_that_cannot_be_are_refused(shop, name, value):
    forge_fact(shop, "facts", lambda facts: {**facts, name: value})
    with pytest.raises(
        ValueError, match=rf"shop\.db is damaged \(its facts cannot be read: the fact '{name}' cannot be"
    ):
        hbmp.Database.load(shop)


@pytest.mark.parametrize("value", [[], [8], [8, "x"], [8, [1.0] * 7], [0, []], [8, [{}] * 8], [8, [float("nan")] * 8]])
def test_bits_that_cannot_be_are_refused(shop, value):
    forge_fact(shop, "bits", lambda _: value)
    with pytest.raises(ValueError, match=r"shop\.db is damaged \(its bits cannot be read"):
        hbmp.Database.load(shop)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("numbers", b"123"),
        ("numbers", b"\xff" * 96),
        ("codes", b"12345"),
        ("removed", b"1"),
        ("first", -1),
        ("size", 10**9),
    ],
)
def test_blocks_that_cannot_be_are_refused(shop, column, value):
    from hbmp.database.blocks import _crc

    forge(shop, f"UPDATE blocks SET {column} = ?", value)
    with closing(sqlite3.connect(shop)) as connection:
        first, size, *parts = connection.execute("SELECT first, size, numbers, codes, removed FROM blocks").fetchone()
    forge(shop, "UPDATE blocks SET crc = ?", _crc(first, size, *(part or b"" for part in parts)))
    with pytest.raises(ValueError, match=r"shop\.db is damaged \(a block of codes cannot be read"):
        hbmp.Database.load(shop)


def test_items_that_name_files_of_no_folder_are_refused(shop):
    forge(shop, "UPDATE items SET file = 'a.png' WHERE number = 0")
    with hbmp.Database.load(shop) as database, pytest.raises(ValueError, match="it names no folder of files"):
        database.paths_of(["i0"])


@pytest.mark.parametrize("change", [{"source": "shop"}, {"images": ["/"]}, {"images": {"beside": 3}}])
def test_an_old_database_that_describes_itself_oddly_is_refused(change, tmp_path):
    place = old_database(tmp_path, change)
    with pytest.raises(ValueError, match=r"db cannot be read as a database of an earlier version"):
        hbmp.Database.load(place)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parts": []}, "its 'parts' is a list, not an object"),
        ({"parts": "index"}, "its 'parts' is a text, not an object"),
        ({"parts": 3}, "its 'parts' is a whole number, not an object"),
        ({"parts": None}, "its 'parts' is null, not an object"),
        ({"format": float("inf")}, "its 'format' is a fraction, not a whole number"),
        ({"format": "2"}, "its 'format' is a text, not a whole number"),
    ],
)
def test_an_old_database_with_a_list_for_an_object_is_refused(change, reason, tmp_path):
    place = old_database(tmp_path, change)
    with pytest.raises(ValueError, match=rf"db/database\.json cannot be read \({reason}\)\. Make the database again\."):
        hbmp.Database.load(place)


def old_database(tmp_path, change):
    """A database of format 2 whose description is changed and signed."""
    from hbmp._core.model_directory import digest

    golden = Path(__file__).parents[1] / "golden" / "databases" / "format-2" / "features"
    place = shutil.copytree(golden, tmp_path / "db")
    described = {**json.loads((place / "database.json").read_text(encoding="utf-8")), **change}
    (place / "database.json").write_text(json.dumps({**described, "sha256": digest(described)}), encoding="utf-8")
    return place


@pytest.mark.parametrize("name", ["model/..", "model/../../out.txt", "model/", "model//etc/passwd", "model/.hidden"])
def test_a_file_of_a_model_never_leads_out_of_its_folder(shop, name):
    forge(shop, "INSERT INTO files VALUES (?, 0, ?)", name, b"out")
    with pytest.raises(ValueError, match=r"shop\.db is damaged \(it holds a file"):
        hbmp.Database.load(shop)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ids": ["\ud800"]}, r"A text holds '\\ud800', which is not Unicode"),
        ({"labels": ["\ud800"]}, r"A text holds '\\ud800', which is not Unicode"),
        ({"payload": [{"name": "\ud800"}]}, r"A text holds '\\ud800', which is not Unicode"),
        ({"payload": [{"\ud800": 1}]}, r"A text holds '\\ud800', which is not Unicode"),
        ({"where": {"n": 2**63}}, "where compares 'n' with a whole number that does not fit in 64 bits"),
        ({"where": {"n": {"<": -(10**400)}}}, "where compares 'n' with a whole number that does not fit in 64 bits"),
        ({"where": {"name": ["a", "\ud800"]}}, r"where compares 'name' with a text that is not Unicode: '\\ud800'"),
    ],
)
def test_values_that_sqlite_cannot_keep_are_a_sentence(change, sentence):
    model = hbmp.get_method("lsh")(8, random_state=0).fit(X)
    about = {"ids": ["a"], "labels": ["x"], "payload": [{"name": "b", "n": 1}]}
    with hbmp.Database.build(model, X[:1], **about) as database:
        search = "where" in change
        arguments = {"k": 1, **change} if search else {**about, "ids": ["c"], **change}
        with pytest.raises(ValueError, match=sentence):
            (database.search if search else database.add)(X[:1], **arguments)
        assert len(database) == 1


def test_a_label_of_another_kind_is_refused_where_it_is_counted(shop):
    forge(shop, "UPDATE items SET label = ? WHERE number < 6", b"\xf6 no number")
    with hbmp.Database.load(shop) as database, pytest.raises(ValueError, match=r"its columns cannot be read"):
        database.facets()
