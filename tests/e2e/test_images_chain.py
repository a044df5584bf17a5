"""A folder of images through the verbs: fit, index, search, evaluate, serve, and what happens when it goes wrong."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from serving import serving
from sklearn.datasets import load_digits

import hbmp
from hbmp.app import cli
from hbmp.database.item_files import ItemFiles

N_ITEMS, N_QUERIES = 500, 40
DIGITS, CLASSES = load_digits(return_X_y=True)
NETWORK = {"backbone": "tiny", "epochs": 30, "lr": 3e-3, "backbone_lr": 3e-3, "augmentation": "none", "batch_size": 32}
FIT = ["fit", "photos", "--bits", "16", "-o", "model", "--set", f"function={json.dumps(['network', NETWORK])}"]


def save_digit(number, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    grey = Image.fromarray((DIGITS[number].reshape(8, 8) * 15.9).astype(np.uint8))
    grey.resize((40, 36), Image.Resampling.BICUBIC).save(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Photos in folders of their classes, queries in a loose folder, a model and a database by two commands."""
    folder = tmp_path_factory.mktemp("images")
    for number in range(N_ITEMS):
        save_digit(number, folder / "photos" / f"digit {CLASSES[number]}" / f"{number:03}.png")
    for number in range(N_ITEMS, N_ITEMS + N_QUERIES):
        save_digit(number, folder / "queries" / f"{number}.png")
    (folder / "photos" / "notes.txt").write_text("no image")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(FIT) == 0
        assert cli.main(["index", "model", "photos", "-o", "db"]) == 0
    return folder


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def copied(made, tmp_path, monkeypatch):
    """A copy of everything, to break; its database knows where it is."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    hbmp.Database.load("db").save("db")
    return tmp_path / "here"


def run(*words, capsys):
    """What a command prints, parsed; everything else is an error here."""
    assert cli.main([*map(str, words), "--json"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)


def refused(*words, capsys):
    """The one sentence of a command that must fail as a mistake does."""
    capsys.readouterr()
    assert cli.main([str(word) for word in words]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    return told.err


def test_a_query_file_finds_its_like_and_the_paths_are_files(folder, capsys):
    queries = sorted(Path("queries").iterdir())
    found = run("search", "db", *queries, "-k", 5, capsys=capsys)
    assert [answer["query"] for answer in found] == [str(path) for path in queries]
    right = []
    for answer, number in zip(found, range(N_ITEMS, N_ITEMS + N_QUERIES), strict=True):
        for hit in answer["results"]:
            assert Path(hit["path"]).is_file()
            assert Path(hit["path"]).parent == Path("photos") / hit["label"]
        right.append(np.mean([hit["label"] == f"digit {CLASSES[number]}" for hit in answer["results"]]))
    assert np.mean(right) > 0.8
    (alone,) = run("search", "db", "photos/digit 3/003.png", "-k", N_ITEMS, "--real-valued", capsys=capsys)
    assert "photos/digit 3/003.png" in [hit["path"] for hit in alone["results"]]
    assert cli.main(["search", "db", "queries/500.png", "-k", "2"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in told[0].split("|")[1:-1]] == ["query", "rank", "id", "distance", "label", "path"]
    assert len(told) == 4


def test_the_database_holds_the_models_codes_with_labels_and_files(folder):
    database, images = hbmp.Database.load("db"), hbmp.Images.from_folder("photos")
    np.testing.assert_array_equal(database.codes(), hbmp.load("model").transform(images))
    assert database.labels_of(database.ids) == images.labels.tolist()
    assert database.files.names() == images.names
    assert database.paths_of([0, 10**6]) == ["photos/digit 0/000.png", None]
    assert not Path("db.parts").exists()
    card = Path("model/card.md").read_text(encoding="utf-8")
    assert "| labels             | one class per row" in card
    same = hbmp.Database.build(hbmp.load("model"), "photos")  # the same in Python
    np.testing.assert_array_equal(same.codes(), database.codes())
    assert same.paths_of([7]) == database.paths_of([7])


def test_held_out_images_score_as_queries_brought_along_do(folder, capsys):
    found = run("evaluate", "model", "photos", "--queries", 50, capsys=capsys)
    assert found["scores"]["map"] > 0.7  # these were trained on
    Path("query-labels.txt").write_text("".join(f"digit {label}\n" for label in CLASSES[N_ITEMS:][:N_QUERIES]))
    words = ["evaluate", "model", "photos", "--query-data", "queries", "--query-labels", "query-labels.txt"]
    found = run(*words, capsys=capsys)
    images, queries = hbmp.Images.from_folder("photos"), hbmp.Images.from_folder("queries")
    model = hbmp.load("model")
    truth = hbmp.metrics.mean_average_precision(
        model.transform(queries),
        model.transform(images),
        [f"digit {label}" for label in CLASSES[N_ITEMS:][:N_QUERIES]],
        images.labels,
    )
    assert found["scores"]["map"] == pytest.approx(truth)
    assert truth > 0.5


def test_images_in_parquet_go_through_the_same_verbs(folder, tmp_path, capsys):
    """Bytes as Hugging Face keeps them, in one file or several, with labels beside; only paths are missing."""
    images = hbmp.Images.from_folder("photos")
    rows = [{"image": {"bytes": Path(file).read_bytes(), "path": None}} for file in images.files]
    table = pa.Table.from_pylist(rows).append_column("label", pa.array(images.labels.tolist()))
    pq.write_table(table, tmp_path / "photos.parquet")
    (tmp_path / "parts").mkdir()
    for part in range(2):
        pq.write_table(table.slice(250 * part, 250), tmp_path / "parts" / f"{part}.parquet")
    for place in ("photos.parquet", "parts"):
        done = run("index", "model", tmp_path / place, "-o", tmp_path / f"{place}.db", capsys=capsys)
        assert done["items"] == N_ITEMS
        database = hbmp.Database.load(tmp_path / f"{place}.db")
        np.testing.assert_array_equal(database.codes(), hbmp.Database.load("db").codes())
        assert database.labels_of(database.ids) == images.labels.tolist()
    queries = [{"image": path.read_bytes()} for path in sorted(Path("queries").iterdir())]
    pq.write_table(pa.Table.from_pylist(queries), tmp_path / "queries.parquet")
    found = run("search", tmp_path / "photos.parquet.db", tmp_path / "queries.parquet", "-k", 3, capsys=capsys)
    expected = run("search", "db", "queries", "-k", 3, capsys=capsys)
    for answer, same in zip(found, expected, strict=True):
        assert [hit["id"] for hit in answer["results"]] == [hit["id"] for hit in same["results"]]
    scores = [
        run("evaluate", "model", place, "--queries", 50, capsys=capsys)["scores"]
        for place in ("photos", tmp_path / "photos.parquet")
    ]
    assert scores[0]["map"] == pytest.approx(scores[1]["map"])
    told = refused("compare", "--data", tmp_path / "photos.parquet", capsys=capsys)
    assert "holds images, but this command needs features" in told


def test_a_table_of_labels_names_the_images_that_count(copied, capsys):
    lines = [(f"digit {CLASSES[number]}/{number:03}.png", f"n{CLASSES[number]};all") for number in (40, 3, 17)]
    Path("some.csv").write_text("file,label\n" + "".join(f"{file},{label}\n" for file, label in lines))
    done = run("index", "model", "photos", "--labels", "some.csv", "-o", "few", capsys=capsys)
    assert (done["items"], done["labels"], done["images"]) == (3, True, True)
    database = hbmp.Database.load("few")
    assert database.files.names() == [file for file, _ in lines]
    assert database.labels_of([0]) == [f"all;n{CLASSES[40]}"]
    images = hbmp.Images.from_files([file for file, _ in lines], "photos")
    np.testing.assert_array_equal(database.codes(), hbmp.load("model").transform(images))
    shutil.copy("some.csv", "photos/labels.csv")
    assert run("index", "model", "photos", "-o", "few", "--replace", capsys=capsys)["items"] == 3
    np.save("ids.npy", [30, 20, 10])
    run("index", "model", "photos", "--ids", "ids.npy", "-o", "few", "--replace", capsys=capsys)
    assert hbmp.Database.load("few").paths_of([10, 30]) == [f"photos/{lines[2][0]}", f"photos/{lines[0][0]}"]
    loose = run("index", "model", "queries", "-o", "loose", capsys=capsys)
    assert (loose["items"], loose["labels"]) == (N_QUERIES, False)


def test_a_stopped_run_goes_on_and_ends_in_the_same_database(folder, capsys, monkeypatch):
    from hbmp.app import indexing

    monkeypatch.setattr(indexing, "_PER_PART", 200)
    calls = []

    class Stopped(indexing._Reporting):
        def transform(self, X):
            calls.append(len(X))
            if len(calls) == 3:  # the sample, one part, and in the midst of the second
                raise KeyboardInterrupt
            return super().transform(X)

    with monkeypatch.context() as patch:
        patch.setattr(indexing, "_Reporting", Stopped)
        assert cli.main(["index", "model", "photos", "-o", "again"]) == 130
    assert capsys.readouterr().err == "Interrupted. Run the same command again to continue.\n"
    assert calls == [64, 200, 200]
    assert not Path("again").exists()
    sentence = refused("index", "model", "queries", "-o", "again", capsys=capsys)
    assert "again.parts contains codes from an interrupted run with a different model or different images" in sentence
    assert cli.main(["index", "model", "photos", "-o", "again"]) == 0
    assert "200 of them were encoded by an earlier run." in capsys.readouterr().out
    assert not Path("again.parts").exists()
    again, first = hbmp.Database.load("again"), hbmp.Database.load("db")
    np.testing.assert_array_equal(again.codes(), first.codes())
    assert again.files.names() == first.files.names()


def test_images_are_found_again_where_they_or_the_database_have_gone(copied, monkeypatch):
    assert hbmp.Database.load("db").paths_of([0]) == ["photos/digit 0/000.png"]
    there = copied.parent / "there"
    copied.rename(there)  # both together
    monkeypatch.chdir(there)
    assert hbmp.Database.load("db").paths_of([0]) == ["photos/digit 0/000.png"]
    hbmp.Database.load("db").save("db")
    shutil.move("db", there.parent / "alone")  # the database by itself
    monkeypatch.chdir(there.parent)
    assert hbmp.Database.load("alone").paths_of([0]) == ["there/photos/digit 0/000.png"]
    monkeypatch.chdir("/")
    assert hbmp.Database.load(there.parent / "alone").files.folder == there / "photos"


def test_a_database_that_names_files_outside_its_folder_is_refused(copied):
    database = hbmp.Database.load("db")
    names, codes = database.files.names(), database.codes()
    for name in ("../secret.png", "/etc/secret.png", "a/../../b.png", "a..b.png"):
        files = ItemFiles("photos", [name, *names[1:]])
        found = hbmp.Database.of_codes(database.model, codes, files=files, path="other", replace=True)
        if name == "a..b.png":
            assert found.files.name(0) == name
            continue
        for look in (lambda: found.files, lambda: found.paths_of([0])):  # noqa: B023
            with pytest.raises(ValueError, match="outside its folder of images"):
                look()


def test_mistakes_are_one_sentence(copied, capsys):
    np.save("features.npy", DIGITS[:50].astype(np.float32))
    Path("broken.jpg").write_bytes(b"no image")
    before = set(Path().iterdir())
    for words, sentence in [
        (["index", "model", "features.npy", "-o", "x"], "features.npy holds features, but the model takes images"),
        (["search", "db", "features.npy"], "features.npy holds features, but the model takes images"),
        (["evaluate", "model", "features.npy"], "features.npy holds features, but the model takes images"),
        (["encode", "model", "features.npy", "-o", "c.npy"], "features.npy holds features, but the model takes images"),
        (["search", "db", "broken.jpg"], "broken.jpg cannot be read as an image; use another file."),
        (["search", "db", "nowhere.jpg"], "There is no file nowhere.jpg."),
        (["search", "db", "queries/500.png", "notes.txt"], "There is no file notes.txt."),
        (["search", "db", "queries/500.png", "photos/notes.txt"], "photos/notes.txt is not an image"),
        (
            ["fit", "queries", "--method", "csq", "-o", "x"],
            "The images of queries have no labels, from which 'csq' learns",
        ),
        (["fit", "photos", "--method", "itq", "-o", "x"], "ITQ learns from feature vectors, found images."),
        (["fit", "photos", "--backbone", "tiniest", "-o", "x"], "No backbone called 'tiniest'"),
        (["index", "model", "photos", "-o", "photos/db"], "is inside the source"),
        (
            ["serve", "--index", "db", "--images", "queries"],
            "does not hold digit 0/000.png, the first image of the database",
        ),
        (["fit", "photos", "--epochs", "2", *FIT[4:]], "--epochs and function= in --set both choose"),
    ]:
        assert sentence in refused(*words, capsys=capsys)
        assert set(Path().iterdir()) == before
    hbmp.get_method("lsh")(8).fit(DIGITS).save("other")
    assert "photos holds images, but the model takes vectors of 64" in refused(
        "index", "other", "photos", "-o", "x", capsys=capsys
    )


@pytest.mark.filterwarnings("default:.* of .* images could not be read")
def test_broken_images_are_refused_by_name_or_left_out(copied, capsys):
    broken = Path("photos/digit 4/004.png")
    broken.write_bytes(b"no image")
    sentence = refused("index", "model", "photos", "-o", "x", capsys=capsys)
    assert "digit 4/004.png cannot be read as an image" in sentence
    assert "or pass --on-error skip to skip such images." in sentence
    assert "pass --on-error skip" in refused("evaluate", "model", "photos", capsys=capsys)
    assert cli.main(["encode", "model", "photos", "--on-error", "skip", "-o", "codes.npy"]) == 0
    assert f"codes.npy: {N_ITEMS - 1} codes" in capsys.readouterr().out
    shutil.rmtree("x.parts", ignore_errors=True)
    assert cli.main(["index", "model", "photos", "--on-error", "skip", "-o", "x", "--json"]) == 0
    told = capsys.readouterr()
    done = json.loads(told.out)
    assert (done["items"], done["skipped"]) == (N_ITEMS - 1, ["digit 4/004.png"])
    assert told.err == f"1 of {N_ITEMS} images could not be read and were left out: digit 4/004.png.\n"
    database = hbmp.Database.load("x")
    assert "digit 4/004.png" not in database.files.names()
    labels = database.labels_of(database.ids)
    assert labels == [name.split("/")[0] for name in database.files.names()]
    quick = ["--set", f"function={json.dumps(['network', {**NETWORK, 'epochs': 1}])}"]
    assert "digit 4/004.png cannot be read" in refused("fit", "photos", "-o", "y", *quick, capsys=capsys)
    assert cli.main(["fit", "photos", "-o", "y", "--on-error", "skip", "--holdout", "0", *quick]) == 0
    assert f"fitted on {N_ITEMS - 1} images" in capsys.readouterr().out


@pytest.fixture(scope="module")
def served(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    with serving(folder / "model", "--index", folder / "db", "--no-map") as url, httpx.Client(base_url=url) as http:
        yield http, folder


def test_an_upload_finds_its_like_and_items_show_their_image(served):
    http, folder = served
    database, queries = hbmp.Database.load(folder / "db"), hbmp.Images.from_folder(folder / "queries")
    truth = database.search(queries, 10, real_valued=True)[1]
    right = []
    for row in range(10):
        content = (folder / "queries" / queries.names[row]).read_bytes()
        answer = http.post("/search", files={"image": content}, data={"k": "10", "mode": "real"}).json()
        assert [hit["id"] for hit in answer["results"]] == truth[row].tolist()
        right.append(np.mean([hit["label"] == f"digit {CLASSES[N_ITEMS + row]}" for hit in answer["results"]]))
    assert np.mean(right) > 0.7
    images = hbmp.Images.from_folder(folder / "photos")
    assert [hit["name"] for hit in answer["results"]] == [images.names[hit["id"]] for hit in answer["results"]]
    item = http.get("/items/123").json()
    assert (item["name"], item["label"]) == (images.names[123], images.labels[123])
    picture = http.get(f"/{item['picture']}")
    pixels = np.asarray(Image.open(io.BytesIO(picture.content)))
    np.testing.assert_array_equal(pixels, images.decode([123], 112)[0])
    assert str(folder) not in http.get("/info").text  # strangers need not know where things lie
    by_item = http.post("/search", json={"id": 123, "mode": "real", "k": 3})
    assert by_item.status_code == 200


def test_a_file_that_has_gone_is_told_and_its_item_still_found(served):
    http, folder = served
    name = http.get("/items/77").json()["name"]
    (folder / "photos" / name).unlink()
    answer = http.get("/items/77/picture")
    assert answer.status_code == 404
    assert answer.json()["detail"] == (
        f"The image of {name} is missing or cannot be read; restore it, or index the folder again."
    )
    assert http.get("/items/77").json()["name"] == name
    assert http.post("/search", json={"id": 77, "k": 3}).status_code == 200
    assert (
        "input of this item is not available" in http.post("/search", json={"id": 77, "mode": "real"}).json()["detail"]
    )


def test_images_that_have_moved_are_named_to_the_server(copied, capfd):
    Path("photos").rename("elsewhere")
    with serving("--index", "db", "--no-map") as url:
        assert "image/svg" in httpx.get(f"{url}/items/0/picture").headers["content-type"]
    assert "are no longer in" in capfd.readouterr().err
    with serving("--index", "db", "--images", "elsewhere", "--no-map") as url:
        assert httpx.get(f"{url}/items/0/picture").headers["content-type"] == "image/png"
