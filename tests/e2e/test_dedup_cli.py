"""`hbmp dedup` on texts, pictures and features: groups, reports, what is kept, and new items against old ones."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from hbmp.app import cli

WORDS = tuple("amber birch cloud delta ember frost grove haven iron jade kite lunar maple night ocean pearl".split())  # noqa: SIM905


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """300 texts; rows 300 to 309 repeat the first ten with a word more."""
    rng = np.random.default_rng(0)
    rows = [" ".join(rng.choice(WORDS, 12)) for _ in range(300)]
    rows += [f"{row} end" for row in rows[:10]]
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps({'body': row, 'id': 7})}\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    return rows


def lengths(texts):
    """An encoder of the user's own: one number per word."""
    return [[text.split().count(word) for word in WORDS] for text in texts]


def run(*words, capsys):
    """What a command prints, parsed; everything else is an error here."""
    assert cli.main([*map(str, words), "--json"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)


ENCODER = ("--encoder", f"{__name__}:lengths")


def test_texts_are_grouped_and_every_report_has_the_groups(texts, tmp_path, capsys):
    reports = ["-o", "g.html", "g.json", "g.csv", "--unique", "left.txt"]
    told = run("dedup", "t.jsonl", *ENCODER, "--threshold", "0.93", *reports, capsys=capsys)
    wanted = {(i, 300 + i) for i in range(10)}
    assert {tuple(each["row"] for each in group) for group in told["groups"]} == wanted
    assert json.loads((tmp_path / "g.json").read_text()) == told
    with open(tmp_path / "g.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["item"] for line in lines if line["kept"] == "0"] == [str(300 + i) for i in range(10)]
    left = (tmp_path / "left.txt").read_text().split()
    assert left == [str(row) for row in range(300)]
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert page.count('class="item text') == 20
    assert texts[3] in page
    assert texts[303] in page
    assert "http" not in page


def test_the_largest_is_kept_and_a_summary_is_printed(texts, capsys):
    assert cli.main(["dedup", "t.jsonl", *ENCODER, "--threshold", "0.93", "--keep", "largest"]) == 0
    told = capsys.readouterr().out
    assert "10 groups of near-duplicates with 10 items to remove, among 310 items" in told
    assert "|     1 |     2 | 300        | 0" in told


def test_new_texts_against_old_ones(texts, tmp_path, capsys):
    lines = (tmp_path / "t.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "old.jsonl").write_text("".join(lines[:300]))
    (tmp_path / "new.jsonl").write_text("".join([*lines[300:305], json.dumps({"body": "frost frost frost"})]))
    words = ["dedup", "new.jsonl", "--against", "old.jsonl", *ENCODER, "--threshold", "0.93"]
    told = run(*words, "--unique", "left.txt", capsys=capsys)
    assert [[(each["item"], each["old"]) for each in group] for group in told["groups"]] == [
        [(str(i), True), (str(i), False)] for i in range(5)
    ]
    assert (tmp_path / "left.txt").read_text() == "5\n"


def test_the_threshold_of_features_is_calibrated_and_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((800, 32)).astype(np.float32)
    np.save("x.npy", np.concatenate([X, X[:30] * 2 + 0.05]))
    told = run("dedup", "x.npy", "--false-positives", "1e-7", "-o", "g.html", capsys=capsys)
    assert (len(told["groups"]), told["removed"], told["rate"]) == (30, 30, 1e-7)
    assert 0.6 < told["threshold"] < 0.95
    assert told["expected_false_pairs"] == pytest.approx(1e-7 * 830 * 829 / 2)
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert "One in 10,000,000" in page
    assert cli.main(["dedup", "x.npy"]) == 0
    assert "pairs are similar; by chance, about 4.1 unrelated pairs would be." in capsys.readouterr().out


def test_pictures_side_by_side(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    digits = [
        Image.fromarray((pixels * 15.9).astype(np.uint8)).resize((40, 40)) for pixels in load_digits().images[:40]
    ]
    for number, digit in enumerate(digits):
        digit.save(f"pictures/{number:02}.png")
    for number in range(3):
        digits[number].resize((60, 60)).save(f"pictures/{number:02}-large.png")
    told = run(
        "dedup",
        "pictures",
        "--backbone",
        "tiny",
        "--threshold",
        "0.8",
        "--keep",
        "largest",
        "-o",
        "g.html",
        capsys=capsys,
    )
    found = [[each["item"] for each in group] for group in told["groups"]]
    assert all([f"{number:02}-large.png", f"{number:02}.png"] in found for number in range(3))
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg;base64,") == sum(map(len, found))
    assert 'class="item kept"' in page


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["dedup", "absent.npy"], "There is no file absent.npy."),
        (["dedup", "x.npy", "-o", "g.pdf"], "Reports must end in .html, .json, .csv; found g.pdf."),
        (["dedup", "x.npy", "-o", "no/g.csv"], "There is no folder no to write g.csv into"),
        (["dedup", "x.npy", "--encoder", "wordllama"], "x.npy contains features, which need no encoder."),
        (["dedup", "x.npy", "--keep", "largest"], "Feature rows have no size; use --keep first."),
        (["dedup", "x.npy"], "5 items are too few to estimate"),
        (["dedup", "x.npy", "--against", "t.txt"], "x.npy and t.txt contain rows and texts; both must be"),
        (["dedup", "x.npy", "--threshold", "2"], "A threshold is a similarity between 0 and 1, found 2.0."),
    ],
)
def test_mistakes_are_one_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.eye(5, dtype=np.float32))
    (tmp_path / "t.txt").write_text("a\nb\n")
    assert cli.main(words) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert sentence in told.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.txt", "x.npy"]
