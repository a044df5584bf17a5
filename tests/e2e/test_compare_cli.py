"""`hbmp compare` as a user runs it: files in, a table on stdout, progress and mistakes on stderr."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hbmp.app import cli

X, Y = (part[:300] for part in load_digits(return_X_y=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty directory with a user's files in it."""
    monkeypatch.chdir(tmp_path)
    np.save("features.npy", X.astype(np.float32))
    (tmp_path / "labels.csv").write_text("label\n" + "".join(f"digit {label}\n" for label in Y))
    return tmp_path


def compare(*words):
    return cli.main(["compare", "--data", "features.npy", "--labels", "labels.csv", *words])


def test_the_table_is_on_stdout_and_nothing_else(folder):
    words = ["--methods", "pca_sign", "--bits", "8", "100", "--queries", "0.2", "--seed", "4"]
    done = subprocess.run(
        [sys.executable, "-m", "hbmp", "compare", "--data", "features.npy", "--labels", "labels.csv", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("| mAP, tie-aware |")
    assert "n_bits=100 needs 100 features" in done.stdout
    assert "features: 300 rows of 64 features. 60 queries drawn evenly over classes" in done.stdout
    assert "seed 4" in done.stdout


def test_features_come_first_or_by_name_but_once(folder, capsys):
    rest = ["--labels", "labels.csv", "--methods", "lsh", "--bits", "8"]
    told = []
    for words in (["features.npy"], ["--data", "features.npy"]):
        assert cli.main(["compare", *words, *rest]) == 0
        told.append(capsys.readouterr().out.splitlines()[2])
    assert told[0] == told[1]
    for words, found in (([], "none"), (["features.npy", "--data", "b.npy"], "features.npy and --data b.npy")):
        assert cli.main(["compare", *words, *rest]) == 2
        assert f"one set of features, found {found}." in capsys.readouterr().err


def test_files_and_json_hold_the_same_scores(folder, capsys):
    pytest.importorskip("matplotlib")
    words = ["--methods", "pca_sign", "--bits", "4", "8", "--json", "--csv", "rows.csv", "--plot", "scores.png"]
    assert compare(*words) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    with open("rows.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["map.tie-aware"]) for line in lines] == [row["scores"]["map.tie-aware"] for row in found["rows"]]
    assert (folder / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert found["split"]["queries"] == 30
    assert {path.name for path in folder.iterdir()} == {"features.npy", "labels.csv", "rows.csv", "scores.png"}


def test_own_queries_with_label_lists_meet_in_the_same_columns(folder, capsys):
    """The second file has other labels than the first: columns are matched by name, not by place."""
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    (folder / "lists.txt").write_text("".join(f"{names[label]};all\n" for label in Y[:250]))
    few = np.flatnonzero(np.isin(Y[250:], (3, 8))) + 250
    np.save("queries.npy", X[few])
    np.save("database.npy", X[:250])
    (folder / "queries.txt").write_text("".join(f"{names[label]};\n" for label in Y[few]))
    words = ["--data", "database.npy", "--labels", "lists.txt", "--query-data", "queries.npy"]
    words += ["--query-labels", "queries.txt", "--methods", "pca_sign", "--bits", "8", "--json"]
    assert cli.main(["compare", *words]) == 0
    found = json.loads(capsys.readouterr().out)

    import hbmp
    from hbmp import metrics

    model = hbmp.get_method("pca_sign")(8, random_state=0).fit(X[:250])
    codes = model.transform(X[few]), model.transform(X[:250])
    expected = metrics.mean_average_precision(*codes, Y[few], Y[:250])
    assert found["rows"][0]["scores"]["map"] == pytest.approx(expected)


def test_a_bar_goes_to_stderr_where_that_is_a_terminal(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert compare("--methods", "pca_sign", "--bits", "8") == 0
    told = capsys.readouterr()
    assert "comparing" in told.err
    assert "pca_sign, 8 bits" in told.err
    assert "comparing" not in told.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--methods", "pca_sing"], "No method called 'pca_sing'. Did you mean 'pca_sign'?"),
        (["--bits", "0"], "A code length must be a whole number of at least 1, found 0."),
        (["--queries", "many"], "'many' is neither a number of rows nor a fraction below 1."),
        (["--csv", "nowhere/rows.csv"], "There is no folder nowhere to write rows.csv into; make it first."),
        (["--plot", "scores.doc"], "scores.doc has no suffix of a picture format"),
        (["--labels", "absent.csv"], "There is no labels file absent.csv."),
        (["--data", "absent.npy"], "There is no file absent.npy."),
        (["--data", "photo.jpg"], "There is no file photo.jpg."),
        (["--query-labels", "labels.csv"], "--query-labels needs --query-data."),
        (["--device", "gpu"], "device must be 'auto', 'cpu' or 'cuda', found 'gpu'."),
    ],
)
def test_mistakes_are_one_sentence_and_exit_two(words, sentence, folder, capsys):
    assert compare(*words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert sentence in told.err
    assert told.err.count("\n") == 1
