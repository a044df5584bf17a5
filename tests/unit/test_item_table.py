"""Tables of items: every format gives the same rows, whole or in blocks, and mistakes are named."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hbmp.app.inputs import read_data
from hbmp.app.inputs.cells import as_values
from hbmp.app.inputs.item_table import ItemTable
from hbmp.app.inputs.texts import holds_texts

BODIES = ["a cat, on\nthe sofa", 'a "dog"', "", "bank loan", "ünï"]
SECTIONS = ["pets", "pets", "none", "money", "none"]
NUMBERS = [3, 1, 4, 1, 5]


@pytest.fixture
def tables(tmp_path):
    """The same five items as CSV, TSV, Parquet and JSON lines."""
    import csv

    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"number": n, "body": b, "section": s} for n, b, s in zip(NUMBERS, BODIES, SECTIONS, strict=True)]
    for ending, delimiter in ((".csv", ","), (".tsv", "\t")):
        with open(tmp_path / f"t{ending}", "w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet", row_group_size=2)
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return sorted(tmp_path.iterdir())


def test_every_format_gives_the_same_rows(tables):
    for path in tables:
        table = ItemTable(path)
        assert len(table) == 5, path.name
        assert table.names == ("number", "body", "section"), path.name
        assert table.texts("body") == BODIES, path.name
        assert table.texts() == BODIES, path.name
        blocks = list(table.text_blocks("body", 2))
        assert [text for block in blocks for text in block] == BODIES
        assert max(map(len, blocks)) <= 2
        assert table.payload()["number"] == NUMBERS, path.name
        assert table.payload()["section"] == SECTIONS, path.name


def test_texts_and_labels_of_a_table(tables):
    for path in tables:
        data = read_data(path, "section", column="body", images=True)
        assert (list(data.texts), data.labels.tolist(), len(data)) == (BODIES, SECTIONS, 5)
        assert data.features is None
        assert read_data(path, images=True).labels is None
    np.testing.assert_array_equal(read_data(tables[0], "number", column="body", images=True).labels, NUMBERS)


def test_the_checksum_covers_every_text(tables):
    data = read_data(tables[0], images=True)
    again = read_data(tables[-1], images=True)
    assert data.checksum() == again.checksum()
    other = type(data)("x", labels=None, texts=[*data.texts[:-1], "x"])
    assert other.checksum() != data.checksum()


def test_labels_may_be_lists_in_a_cell_or_a_file(tmp_path):
    (tmp_path / "t.csv").write_text("text,tags\na cat,pets;home\na loan,\n")
    data = read_data(tmp_path / "t.csv", "tags", images=True)
    assert data.label_names == ("home", "pets")
    np.testing.assert_array_equal(data.labels, [[1, 1], [0, 0]])
    (tmp_path / "t.jsonl").write_text('{"text": "a cat", "tags": ["pets"]}\n{"text": "b", "tags": []}\n')
    np.testing.assert_array_equal(read_data(tmp_path / "t.jsonl", "tags", images=True).labels, [[1], [0]])
    (tmp_path / "labels.txt").write_text("x\ny\n")
    found = read_data(tmp_path / "t.csv", tmp_path / "labels.txt", images=True)
    assert found.labels.tolist() == ["x", "y"]


def test_plain_text_has_one_text_per_line(tmp_path):
    (tmp_path / "lines.txt").write_text("one\n\ntwo, three\n", encoding="utf-8")
    assert list(read_data(tmp_path / "lines.txt", images=True).texts) == ["one", "", "two, three"]


def test_a_text_of_any_length_is_read_and_the_limit_of_csv_stays(tmp_path):
    import csv

    before = csv.field_size_limit()
    (tmp_path / "t.csv").write_text("text\n" + "a" * 200_000)
    assert len(ItemTable(tmp_path / "t.csv").texts()[0]) == 200_000
    assert csv.field_size_limit() == before


def test_features_are_not_mistaken_for_texts(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "flies.csv").write_text("wing,body\n1.5,2.5\n2.5,3.5\n")
    assert not holds_texts(tmp_path / "flies.csv", None)
    assert read_data(tmp_path / "flies.csv", images=True).features.shape == (2, 2)
    parquet.write_table(pa.table({"vector": [[1.0, 2.0]], "text": ["a"]}), tmp_path / "v.parquet")
    assert not holds_texts(tmp_path / "v.parquet", None)
    assert list(read_data(tmp_path / "v.parquet", column="text", images=True).texts) == ["a"]


def test_cells_of_csv_become_numbers_only_where_nothing_is_lost():
    assert as_values(["1", "", "-20"]) == [1, None, -20]
    assert as_values(["1", "2.5", "1e3"]) == [1.0, 2.5, 1000.0]
    assert as_values(["007", "12"]) == ["007", "12"]
    assert as_values(["1.2.3", "nan", ""]) == ["1.2.3", "nan", None]
    assert as_values(["", ""]) == [None, None]


@pytest.mark.parametrize(
    ("name", "text", "column", "sentence"),
    [
        ("t.csv", "title,body\na,b\n", "bdy", "has no column 'bdy'. Did you mean 'body'? It has title, body."),
        ("t.csv", "a,b\nx,y\n", "c", "has no column 'c'. It has a, b."),
        ("t.csv", "text,b\nx,y,z\n", None, "Record 2 of "),
        ("t.csv", "text,text\nx,y\n", None, "has two columns 'text'"),
        ("t.csv", "", "text", "is empty; the first line must contain the column names"),
        ("t.csv", "text\n", "text", "holds no texts"),
        ("t.jsonl", '{"a": "x", "b": "y"}\n', None, "has the columns a, b; choose the text column with --column."),
        ("t.jsonl", '{"text": "x"}\n{"text": 3}\n', None, "Row 2 of column 'text'"),
        ("t.jsonl", "{\n", None, "Line 1 of "),
        ("t.jsonl", "[1]\n", None, "is a list, not an object"),
        ("t.parquet", "no", "text", "cannot be read as Parquet"),
        ("t.npy", "no", "text", "is not a table of items"),
    ],
)
def test_mistakes_are_named(name, text, column, sentence, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises((ValueError, LookupError)) as raised:
        read_data(tmp_path / name, column=column, images=True)
    assert sentence in str(raised.value)


def test_texts_are_refused_where_features_are_needed(tmp_path):
    (tmp_path / "t.csv").write_text("text\na\n")
    with pytest.raises(ValueError, match="holds texts, but this command needs features"):
        read_data(tmp_path / "t.csv")
