"""Items with names on the command line: index with a payload, search with conditions, add, remove."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

import hbmp
from hbmp.app import cli
from hbmp.app.carried import carried
from hbmp.app.inputs import read_data

X, Y = (part[:200] for part in load_digits(return_X_y=True))
X = X.astype(np.float32)
ROWS = [
    {"sku": f"{number:03}", "title": f"digit {label}, no. {number}", "price": number / 2, "label": f"d{label}"}
    for number, label in enumerate(Y.tolist())
]


def csv(rows):
    lines = [",".join(rows[0]), *(",".join(f'"{value}"' for value in row.values()) for row in rows)]
    return "\n".join(lines) + "\n"


def json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(name, rows):
    """A table in the format that its name asks for."""
    if name.endswith(".parquet"):
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(rows), name)
    else:
        with open(name, "w", encoding="utf-8") as file:
            file.write(csv(rows) if name.endswith(".csv") else json_lines(rows))
    return name


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    hbmp.get_method("lsh")(24, random_state=0).fit(X).save("model")
    return tmp_path


def run(*words, capsys):
    """What a command prints, parsed."""
    assert cli.main([*map(str, words), "--json"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)


def refused(*words, capsys):
    assert cli.main(list(map(str, words))) == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


@pytest.mark.parametrize("name", ["items.csv", "items.jsonl", "items.parquet"])
def test_items_carry_the_columns_of_a_table(folder, name, capsys):
    write(name, ROWS)
    words = ["index", "model", "x.npy", "--payload", name, "--ids", "sku", "--vectors", "float32", "-o", "db"]
    about = run(*words, capsys=capsys)
    assert about["columns"] == {"title": "text", "price": "float"}
    assert (about["items"], about["labels"], about["vectors"]) == (200, True, "float32")
    with hbmp.Database.load("db") as database:
        assert database.ids.tolist() == [row["sku"] for row in ROWS]  # 007 stays a text
        assert database.payload_of(["007"]) == [{"title": ROWS[7]["title"], "price": 3.5}]
        assert database.labels_of(["007"]) == [f"d{Y[7]}"]
        np.testing.assert_array_equal(database.vectors_of(["007"]), X[[7]])
    where = ["--where", "label=d3", "price>=10", "price<60"]
    (found,) = run("search", "db", "x.npy", "--rows", 7, "-k", 300, *where, "--rescore", 50, capsys=capsys)
    allowed = [row for row in ROWS if row["label"] == "d3" and 10 <= row["price"] < 60]
    near = {row["sku"]: 1 - cosine(X[7], X[int(row["sku"])]) for row in allowed}
    assert [hit["id"] for hit in found["results"]] == sorted(near, key=near.get)
    assert [hit["distance"] for hit in found["results"]] == pytest.approx(sorted(near.values()), abs=1e-5)
    assert found["results"][0]["payload"]["title"].startswith("digit 3")
    few = run("search", "db", "--like", "007", "-k", 2, "--ids", "007", "009", "011", capsys=capsys)
    assert {hit["id"] for hit in few[0]["results"]} == {"009", "011"}


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_a_table_of_results_is_cut_to_its_room(folder, capsys):
    rows = [{**row, "title": f"{row['title']} {'very long | ' * 40}\nend"} for row in ROWS]
    write("items.jsonl", rows)
    run("index", "model", "x.npy", "--payload", "items.jsonl", "--ids", "sku", "-o", "db", capsys=capsys)
    assert cli.main(["search", "db", "x.npy", "--rows", "7", "-k", "3", "--columns", "price", "title"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "|",
        *" | ".join(["query", "rank", "id", "distance", "label", "price", "title"]).split(),
        "|",
    ]
    assert len(lines) == 5
    assert max(map(len, lines)) <= 160
    assert all(line.count("|") == 8 for line in lines)
    assert lines[2].split("|")[3].strip() == "007"
    assert "no. 7 very long" in lines[2]
    assert lines[2].endswith("… |")
    assert "No column called 'size'" in refused("search", "db", "x.npy", "--columns", "size", capsys=capsys)


def test_add_and_remove_by_ids_files_and_conditions(folder, capsys):
    write("items.csv", ROWS[:100])
    np.save("first.npy", X[:100])
    run("index", "model", "first.npy", "--payload", "items.csv", "--ids", "sku", "-o", "db", capsys=capsys)
    write("more.jsonl", ROWS[90:])
    np.save("more.npy", X[90:])
    add = ["add", "db", "more.npy", "--payload", "more.jsonl", "--ids", "sku"]
    sentence = refused(*add, capsys=capsys)
    assert "10 of the 110 ids are already in the database, for example '090'" in sentence
    assert run(*add, "--replace", capsys=capsys) == {"database": "db", "added": 110, "replaced": 10, "items": 200}
    with hbmp.Database.load("db") as database:
        assert set(database.ids.tolist()) == {row["sku"] for row in ROWS}
        np.testing.assert_array_equal(database.codes(["007", "150"]), database.model.transform(X[[7, 150]]))
        assert database.payload_of(["150"]) == [{"title": ROWS[150]["title"], "price": 75.0}]
    dry = run("remove", "db", "--where", "price<5", "--dry-run", capsys=capsys)
    assert dry == {"database": "db", "removed": 10, "items": 200, "dry_run": True}
    assert run("remove", "db", "--where", "price<5", capsys=capsys)["items"] == 190
    assert run("remove", "db", "007", "100", "101", "nobody", capsys=capsys)["removed"] == 2
    (folder / "gone.txt").write_text("102\n103\n\n")
    assert run("remove", "db", "--ids", "gone.txt", capsys=capsys)["removed"] == 2
    (folder / "gone.csv").write_text("id,why\n104,old\n0105,no\n")
    assert run("remove", "db", "--ids", "gone.csv", capsys=capsys)["removed"] == 1
    assert run("remove", "db", "150", "--where", "label=d99", capsys=capsys)["removed"] == 0
    assert "No items given" in refused("remove", "db", capsys=capsys)
    assert "--replace finds items by their ids" in refused("add", "db", "x.npy", "--replace", capsys=capsys)


def test_integer_ids_conditions_of_each_kind_and_unlabelled_databases(folder, capsys):
    rows = [
        {"id": number * 3, "open": number % 2 == 0, "name": f"n{number}", "stars": number % 5} for number in range(200)
    ]
    write("items.parquet", rows)
    run("index", "model", "x.npy", "--payload", "items.parquet", "-o", "db", capsys=capsys)
    cases = {
        ("open=true",): lambda row: row["open"],
        ("open!=true", "stars=3"): lambda row: not row["open"] and row["stars"] == 3,
        ('name=["n7", "n8"]',): lambda row: row["name"] in ("n7", "n8"),
        ("stars=[1, 4]", "open=no"): lambda row: row["stars"] in (1, 4) and not row["open"],
        ("stars>1", "stars<=3"): lambda row: 1 < row["stars"] <= 3,
    }
    for words, holds in cases.items():
        (found,) = run("search", "db", "--like", 9, "-k", 200, "--where", *words, capsys=capsys)
        assert {hit["id"] for hit in found["results"]} == {row["id"] for row in rows if holds(row)} - {9}
    for words, sentence in {
        ("open=perhaps",): "write true or false",
        ("stars=many",): "compares a column of numbers, found 'many'",
        ("open",): "Conditions have the form COLUMN=VALUE",
        ("stars=1", "stars=2"): "stars= is given twice",
        ("stars=[1,", "open=yes"): "is not JSON",
        ("size=3",): "No column called 'size'",
    }.items():
        assert sentence in refused("search", "db", "--like", 9, "--where", *words, capsys=capsys)
    assert "The database has no item 10" in refused("search", "db", "--like", 10, capsys=capsys)
    assert "either queries, or --like" in refused("search", "db", capsys=capsys)
    assert "built" not in refused("search", "db", "x.npy", "--rescore", 5, capsys=capsys)
    assert run("remove", "db", 3, 6, 7, capsys=capsys)["removed"] == 2
    assert run("add", "db", "x.npy", "--ids", write("new.csv", [{"id": n + 1000} for n in range(200)]), capsys=capsys)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--payload", "few.csv"], "x.npy has 200 items but few.csv has 3 rows; give one row per item."),
        (["--payload", "none.csv"], "There is no file none.csv."),
        (["--payload", "x.npy"], "x.npy is not a table of items; tables end in"),
        (["--payload", "items.csv", "--columns", "size"], "items.csv has no column 'size'; it has"),
        (["--payload", "items.csv", "--ids", "nr"], "nr is neither a file nor a column of items.csv"),
        (["--payload", "score.csv"], "score.csv has a column 'score', a name that is reserved for results; rename it"),
        (["--columns", "title"], "--columns names columns of a table of items: pass the table with --payload."),
        (["--ids", "few.csv"], "x.npy has 200 items but few.csv has 3 ids; pass one id per item."),
        (["--ids", "none.txt"], "The id file none.txt does not exist."),
        (["--ids", "half.npy"], "Ids must be whole numbers or strings, one per row; half.npy holds float64"),
        (["--payload", "twice.csv", "--ids", "sku"], "Ids must be distinct, found 'a' more than once."),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(folder, words, sentence, capsys):
    write("items.csv", ROWS)
    write("few.csv", [{"id": number} for number in range(3)])
    write("score.csv", [{"score": 1}] * 200)
    write("twice.csv", [{"sku": "a"}] * 200)
    np.save("half.npy", np.arange(200) / 2)
    before = {path.name for path in folder.iterdir()}
    assert sentence in refused("index", "model", "x.npy", "-o", "db", *words, capsys=capsys)
    assert {path.name for path in folder.iterdir()} == before


def test_a_payload_finds_its_pictures_by_their_names(folder):
    from PIL import Image

    names = [f"{number}.png" for number in range(6)]
    (folder / "photos").mkdir()
    for name in names:
        Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(folder / "photos" / name)
    data = read_data("photos", images=True)
    rows = [{"file": name, "title": f"picture {name}", "id": f"p{name[0]}"} for name in reversed(names)]
    found = carried(data, "photos", payload=write("photos.csv", rows))
    assert found.ids == [f"p{number}" for number in range(6)]
    assert found.payload == {"title": [f"picture {name}" for name in names]}
    with pytest.raises(ValueError, match=r"has no row for the image 5\.png; its column 'file' names the files"):
        carried(data, "photos", payload=write("short.csv", rows[1:]))
    with pytest.raises(ValueError, match=r"6 images but titles\.csv has 5 rows; give one row per image, or a column"):
        carried(data, "photos", payload=write("titles.csv", [{"title": "a"}] * 5))
