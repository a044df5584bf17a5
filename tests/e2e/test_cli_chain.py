"""The verbs one after the other in an empty directory: fit, encode, index, search, evaluate, export."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

import hbmp
from hbmp import datasets, export, hamming, metrics
from hbmp.app import cli

X, Y = load_digits(return_X_y=True)
X = X.astype(np.float32)
QUICK = ["--set", 'function=["linear", {"epochs": 5}]']


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A directory with a user's files, and with the model and the database that two commands make of them."""
    folder = tmp_path_factory.mktemp("chain")
    np.save(folder / "features.npy", X[:1200])
    (folder / "labels.csv").write_text("label\n" + "".join(f"{label}\n" for label in Y[:1200]))
    np.save(folder / "queries.npy", X[1200:1300])
    np.save(folder / "query-labels.npy", Y[1200:1300])
    np.save(folder / "ids.npy", np.arange(5000, 6200))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["fit", "features.npy", "--labels", "labels.csv", "--bits", "12", "-o", "model", *QUICK]) == 0
        words = ["index", "model", "features.npy", "--labels", "labels.csv", "--ids", "ids.npy", "-o", "db"]
        assert cli.main(words) == 0
    return folder


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def run(*words, capsys):
    """What a command prints, parsed; everything else is an error here."""
    assert cli.main([*map(str, words), "--json"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)


CHAIN = """
import shlex, sys
from importlib import import_module
from hbmp import cli
from hbmp._core import progress
progress.SECONDS_BETWEEN_LINES = float("inf")  # a busy machine may take more than ten seconds
for verb in ("fit", "encode", "index", "search", "add", "remove", "evaluate", "export"):
    words = shlex.split(import_module(f"hbmp.app.commands.{verb}").EXAMPLE)[1:]
    status = cli.main(words + (sys.argv[1:] if verb == "fit" else []))
    if status:
        sys.exit(f"{verb} ended with {status}")
"""


def test_the_examples_of_the_help_pages_run_one_after_the_other_in_an_empty_directory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CHAIN, *QUICK], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for said in (
        "digits-16: HBMP of 16 bits",
        "codes.npy: 1,797 codes",
        "digits-db: 1,797 items",
        "codes.csv: hex",
        "it now has 3,591 items",
    ):
        assert said in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"digits-16", "codes.npy", "digits-db", "codes.csv"}


def test_the_model_is_the_one_python_would_fit(folder):
    model = hbmp.load("model")
    rows = hbmp.evaluation.hold_out(X[:1200], Y[:1200]).database
    again = hbmp.HBMP(12, function=hbmp.functions.Linear(epochs=5), random_state=0).fit(X[rows], Y[rows])
    np.testing.assert_array_equal(model.transform(X), again.transform(X))


def test_the_card_says_where_the_model_comes_from(folder):
    card = (folder / "model" / "card.md").read_text(encoding="utf-8")
    labels = np.array(Y[:1200])
    checksum = datasets.Data(name="features", labels=labels, features=X[:1200]).checksum()
    found = hbmp.evaluate(hbmp.load("model"), X[:1200], Y[:1200])
    assert checksum in card
    assert f"{found.scores['map.weighted']:.4f}" in card
    assert found.split.checksum in card
    assert "The queries were held out; the model was fitted on the other rows." in card
    assert "hbmp fit features.npy --labels labels.csv --bits 12 -o model --set " in card
    assert "Cakir, He & Sclaroff, ECCV 2018" in card
    assert {path.name for path in (folder / "model").iterdir()} == {"model.json", "arrays.safetensors", "card.md"}


def test_fitting_again_replaces_model_and_card(folder, capsys):
    words = ["fit", "features.npy", "--method", "pca_sign", "-o", "second"]
    assert run(*words, "--bits", 8, "--holdout", 0, capsys=capsys)["scores"] == {}
    assert "every row was used for fitting" in (folder / "second" / "card.md").read_text()
    done = run(*words, "--bits", 4, "--holdout", 200, "--cutoff", 50, capsys=capsys)
    assert done["rows"] == 1000
    assert "ndcg-scaled@50" in done["scores"]  # without labels neighbours are near in the features
    assert "PCASign, 4 bits" in (folder / "second" / "card.md").read_text()
    assert hbmp.load("second").n_bits == 4


def test_codes_are_the_models(folder, capsys):
    codes = hbmp.load("model").transform(X[:1200])
    assert run("encode", "model", "features.npy", "-o", "codes.npy", capsys=capsys)["rows"] == 1200
    np.testing.assert_array_equal(np.load("codes.npy"), codes)
    run("encode", "model", "features.npy", "-o", "packed.npy", "--packed", capsys=capsys)
    np.testing.assert_array_equal(hamming.unpack(np.load("packed.npy"), 12), codes)


def test_codes_of_any_size_go_to_parquet_and_a_second_run_finds_them_done(folder, capsys):
    pytest.importorskip("pyarrow")
    from hbmp.encode import read_codes

    first = run("encode", "model", "features.npy", "-o", "parts", capsys=capsys)
    assert "1 Parquet parts, 0 of them from an earlier run" in first["kind"]
    assert (
        "1 of them from an earlier run" in run("encode", "model", "features.npy", "-o", "parts", capsys=capsys)["kind"]
    )
    codes = np.concatenate([codes for _, codes in read_codes("parts")])
    np.testing.assert_array_equal(codes, hbmp.load("model").transform(X[:1200]))


def test_search_finds_what_the_index_finds(folder, capsys):
    found = run("search", "db", "queries.npy", "--rows", 3, 7, "-k", 4, capsys=capsys)
    model = hbmp.load("model")
    index = hbmp.Index(12, bit_weights=model.bit_weights_).add(model.transform(X[:1200]), np.arange(5000, 6200))
    distances, ids = index.search(model.transform(X[[1203, 1207]]), 4)
    assert [query["query"] for query in found] == [3, 7]
    assert [[hit["id"] for hit in query["results"]] for query in found] == ids.tolist()
    for query, row in zip(found, distances, strict=True):
        assert [hit["distance"] for hit in query["results"]] == pytest.approx(row.tolist())
    for hit in found[0]["results"]:
        assert hit["label"] == str(Y[hit["id"] - 5000])
    assert cli.main(["search", "db", "queries.npy", "--rows", "3", "-k", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[3].strip() for line in lines[2:]] == [str(number) for number in ids[0]]


def test_more_results_than_items_end_where_the_items_end(folder, capsys, tmp_path):
    np.save(tmp_path / "few.npy", X[:3])
    run("index", "model", tmp_path / "few.npy", "-o", tmp_path / "few", capsys=capsys)
    (query,) = run("search", tmp_path / "few", "queries.npy", "--rows", 0, "-k", 10, "--real-valued", capsys=capsys)
    assert sorted(hit["id"] for hit in query["results"]) == [0, 1, 2]
    assert {hit["label"] for hit in query["results"]} == {None}


def test_evaluate_gives_the_metrics_own_number(folder, capsys):
    words = ["evaluate", "model", "features.npy", "--labels", "labels.csv"]
    own = run(*words, "--query-data", "queries.npy", "--query-labels", "query-labels.npy", capsys=capsys)
    model = hbmp.load("model")
    codes = model.transform(X[1200:1300]), model.transform(X[:1200])
    expected = metrics.mean_average_precision(*codes, Y[1200:1300], Y[:1200], bit_weights=model.bit_weights_)
    assert own["scores"]["map.weighted"] == pytest.approx(expected)
    drawn = run(*words, "--queries", 0.25, "--seed", 3, "--cutoff", 10, capsys=capsys)
    assert "300 queries drawn evenly over classes" in drawn["caption"]
    assert set(drawn["scores"]) == {f"map@10{end}" for end in ("", ".tie-aware", ".weighted", ".weighted.tie-aware")}


@pytest.mark.parametrize("form", ["bytes", "int8", "hex", "sql", "faiss", "onnx"])
def test_exports_hold_the_same_codes(form, folder, capsys):
    if form == "onnx":
        pytest.importorskip("onnx")
    done = run("export", "db", "--to", form, "-o", f"out.{form}", capsys=capsys)
    assert done == {"output": f"out.{form}", "form": form, "bytes": (folder / f"out.{form}").stat().st_size}
    model = hbmp.load("model")
    codes, ids = model.transform(X[:1200]), np.arange(5000, 6200)
    if form in ("bytes", "int8"):
        stored = np.load(f"out.{form}")
        back = getattr(export, f"from_{form}")(stored["codes"], int(stored["n_bits"]))
        np.testing.assert_array_equal(back, codes)
        np.testing.assert_array_equal(stored["ids"], ids)
    elif form == "hex":
        with open("out.hex", newline="") as file:
            lines = list(csv.DictReader(file))
        np.testing.assert_array_equal(export.from_hex([line["code"] for line in lines], 12), codes)
        assert [int(line["id"]) for line in lines] == ids.tolist()
    elif form == "sql":
        assert (folder / "out.sql").read_text() == "".join(f"{part}\n" for part in export.to_sql(codes, ids))
    elif form == "faiss":
        import faiss

        assert faiss.read_index("out.faiss").ntotal == 1200
    else:
        onnxruntime = pytest.importorskip("onnxruntime")
        session = onnxruntime.InferenceSession("out.onnx", providers=["CPUExecutionProvider"])
        (given,) = session.run(["codes"], {"features": X[:50]})
        assert (given == codes[:50]).mean() > 0.999


def test_a_model_alone_is_enough_for_onnx(folder, capsys):
    pytest.importorskip("onnx")
    assert run("export", "model", "--to", "onnx", "-o", "alone.onnx", capsys=capsys)["bytes"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fit", "absent.npy", "-o", "m"], "There is no file absent.npy."),
        (["fit", "features.npy", "-o", "m", "--method", "hbmb"], "No method called 'hbmb'. Did you mean 'hbmp'?"),
        (
            ["fit", "features.npy", "-o", "m", "--set", "shceme=greedy"],
            "has no setting 'shceme'. Did you mean 'scheme'?",
        ),
        (["fit", "features.npy", "-o", "m", "--holdout", "lots"], "'lots' is neither a number of rows nor a fraction"),
        (["fit", "features.npy", "-o", "m", "--bits", "0"], "n_bits must be a positive whole number, found 0."),
        (["fit", "photos", "-o", "m"], "photos/cat.jpg cannot be read as an image"),
        (["fit", "features.npy", "-o", "m", "--epochs", "3"], "--epochs is for images, and features.npy holds"),
        (["compare", "--data", "photos"], "photos is a folder of images, but this command needs features"),
        (["index", "model", "photos", "-o", "d"], "photos holds images, but the model takes vectors of 64 features"),
        (["search", "db", "photos/cat.jpg"], "photos/cat.jpg is an image, but the model takes vectors of 64 features"),
        (["search", "db", "photos/dog.jpg"], "There is no file photos/dog.jpg."),
        (["encode", "nowhere", "features.npy", "-o", "c.npy"], "nowhere is not a saved model: it has no model.json."),
        (["encode", "model", "narrow.npy", "-o", "c.npy"], "X has 3 features, but HBMP is expecting 64"),
        (["encode", "model", "features.npy", "-o", "no/c.npy"], "There is no folder no to write c.npy into"),
        (["index", "model", "features.npy", "-o", "photos"], "exists and is not a database"),
        (
            ["search", "model", "queries.npy"],
            "model is a model, not a database. Make one with `hbmp index model DATA -o DB`.",
        ),
        (["search", "db", "queries.npy", "--rows", "100"], "queries.npy has rows 0 to 99, found [100] in --rows."),
        (["search", "db", "queries.npy", "-k", "0"], "k must be a whole number, at least 1, found 0."),
        (["evaluate", "model", "features.npy", "--query-labels", "labels.csv"], "--query-labels needs --query-data."),
        (
            ["export", "model", "--to", "hex", "-o", "c.csv"],
            "model is a model, not a database. Make one with `hbmp index model DATA -o DB`.",
        ),
        (["export", "db", "--to", "hex", "-o", "db"], "db is a database; choose another name."),
        (["export", "db", "--to", "tape", "-o", "c"], "invalid choice: 'tape'"),
        (["export", "db", "--to", "sql", "--table", "a b", "-o", "c"], "found 'a b'."),
    ],
)
def test_mistakes_are_one_sentence_exit_two_and_leave_nothing(words, sentence, folder, capsys):
    (folder / "photos").mkdir(exist_ok=True)
    (folder / "photos" / "cat.jpg").write_bytes(b"")
    np.save(folder / "narrow.npy", X[:5, :3])
    before = {path.name for path in folder.iterdir()}
    assert cli.main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert sentence in told.err
    assert told.err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == before
