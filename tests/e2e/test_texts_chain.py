"""From raw texts and unlabelled pictures to search by commands: features, fit, index, search, evaluate."""

from __future__ import annotations

import csv
import functools
import importlib
import inspect
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import hbmp
from hbmp.app import cli

MODULES = ("statistics", "shutil", "calendar", "random", "zipfile", "asyncio", "decimal", "socket")


@functools.cache
def descriptions():
    """(module, description) of what some modules of Python contain."""
    found = {}
    for module in MODULES:
        for _, thing in inspect.getmembers(importlib.import_module(module)):
            for item in (thing, *(vars(thing).values() if inspect.isclass(thing) else ())):
                text = inspect.getdoc(item) if callable(item) else None
                if text and len(text) > 60 and str(getattr(item, "__module__", "")).startswith(module):
                    found[" ".join(text.split())] = module
    return [(module, text) for text, module in found.items()]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Descriptions as CSV, a model of them and a database, by two commands; digits as pictures without labels."""
    pytest.importorskip("wordllama")
    folder = tmp_path_factory.mktemp("texts")
    with open(folder / "texts.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("module", "body"))
        writer.writerows(descriptions())
    (folder / "pictures").mkdir()
    for number, pixels in enumerate(load_digits().images[:60]):
        picture = Image.fromarray((pixels * 15.9).astype(np.uint8)).resize((40, 36))
        picture.save(folder / "pictures" / f"{number:02}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert (
            cli.main(["fit", "texts.csv", "--column", "body", "--bits", "128", "--method", "itq", "-o", "model"]) == 0
        )
        assert cli.main(["index", "model", "texts.csv", "-o", "db"]) == 0
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


def refused(*words, capsys):
    """The one sentence of a command that must fail as a mistake does."""
    capsys.readouterr()
    assert cli.main([str(word) for word in words]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    return told.err


def test_a_sentence_finds_the_module_that_is_about_it(folder, capsys):
    modules = [module for module, _ in descriptions()]
    for sentence, module in (
        ("middle value of a list of numbers", "statistics"),
        ("delete a folder and everything in it", "shutil"),
        ("first day of the week", "calendar"),
    ):
        found = run("search", "db", sentence, "-k", "3", capsys=capsys)
        assert [modules[int(hit["id"])] for hit in found[0]["results"]].count(module) >= 2, sentence
    both = run("search", "db", "a first text", "and a second", "-k", "1", capsys=capsys)
    assert len(both) == 2


def test_a_sentence_without_quotes_and_unmet_conditions_are_remarked_on(folder, capsys):
    assert cli.main(["search", "db", "first", "day", "-k", "1"]) == 0
    assert 'quote it: hbmp search db "first day"' in capsys.readouterr().err
    assert cli.main(["search", "db", "first day", "-k", "1"]) == 0
    assert capsys.readouterr().err == ""
    assert cli.main(["search", "db", "first day", "--where", "module=nothing"]) == 0
    assert capsys.readouterr().err == "No item meets the conditions.\n"


def test_a_fit_without_labels_reports_neighbours_alone(folder, tmp_path, capsys):
    words = ["fit", "texts.csv", "--column", "body", "--bits", "32", "--method", "itq", "-o", str(tmp_path / "m")]
    assert cli.main(words) == 0
    told = capsys.readouterr().out
    assert ", encoded by WordLlama.\n" in told
    assert "| recall@10 " in told
    assert "map" not in told
    assert "precision@10" not in told
    assert "| map " in (tmp_path / "m" / "card.md").read_text(encoding="utf-8")
    words = ["fit", "pictures", "--backbone", "tiny", "--method", "itq", "--bits", "32", "-o", str(tmp_path / "p")]
    assert cli.main(words) == 0
    assert ", encoded by tiny.\n" in capsys.readouterr().out


def test_a_fit_with_tied_results_names_detail_bits(folder, tmp_path, capsys):
    words = ["fit", "digits", "--bits", "16", "-o", str(tmp_path / "m")]
    assert cli.main([*words, "--set", "function=linear"]) == 0
    told = capsys.readouterr().out
    assert ("--set detail_bits=auto" in told) == ("all tied and" in told)


def test_the_model_remembers_its_encoder_and_the_card_names_it(folder, capsys):
    model = hbmp.load("model")
    assert model.input_encoder_.takes == "texts"
    texts = [body for _, body in descriptions()]
    np.testing.assert_array_equal(hbmp.Database.load("db").codes(), model.transform(texts))
    card = (folder / "model" / "card.md").read_text(encoding="utf-8")
    assert "WordLlama()" in card
    assert model.input_encoder_.digest_[:16] in card


def test_labels_are_a_column_and_scores_are_held_out(folder, capsys):
    words = ["fit", "texts.csv", "--column", "body", "--labels", "module", "--bits", "16", "--method", "sdh"]
    done = run(*words, "-o", "labelled", capsys=capsys)
    assert done["scores"]["map"] > 0.5
    made = run("index", "labelled", "texts.csv", "--labels", "module", "-o", "labelled-db", capsys=capsys)
    assert (made["labels"], list(made["columns"])) == (True, ["body"])  # a label is not payload too
    found = run("evaluate", "labelled", "texts.csv", "--labels", "module", capsys=capsys)
    assert found["scores"] == pytest.approx(done["scores"])


def test_features_are_the_encoders_in_any_blocks_and_a_stopped_run_resumes(folder, tmp_path, capsys, monkeypatch):
    from hbmp.encode import featuring
    from hbmp.encoders import WordLlama

    texts = [body[:40] for _, body in descriptions()] * 8
    (tmp_path / "many.jsonl").write_text("".join(f"{json.dumps({'body': text})}\n" for text in texts))
    words = ["features", tmp_path / "many.jsonl", "-o", tmp_path / "x.npy"]
    real, calls = WordLlama.encode, []

    def stopped_at_the_third_block(self, items, **more):
        calls.append(len(items))
        if len(calls) == 4:  # the first asks for the length of a vector
            raise KeyboardInterrupt
        return real(self, items, **more)

    monkeypatch.setattr(featuring, "_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(WordLlama, "encode", stopped_at_the_third_block)
        assert cli.main([str(word) for word in words]) == 130
        capsys.readouterr()
    assert len(texts) > 2048
    assert not (tmp_path / "x.npy").exists()
    assert "different data or a different encoder" in refused(*words, "--dtype", "float16", capsys=capsys)
    done = run(*words, capsys=capsys)
    assert (done["rows"], done["resumed"]) == (len(texts), 2048)
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), WordLlama().encode(texts), rtol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["many.jsonl", "x.npy"]


def test_features_and_their_encoder_give_a_model_of_texts(folder, tmp_path, capsys):
    run("features", "texts.csv", "-o", tmp_path / "x.npy", capsys=capsys)
    words = ["fit", tmp_path / "x.npy", "--method", "itq", "--bits", "128"]
    run(*words, "--encoder", "wordllama", "-o", tmp_path / "m", capsys=capsys)
    texts = [body for _, body in descriptions()]
    np.testing.assert_array_equal(hbmp.load(tmp_path / "m").transform(texts), hbmp.load("model").transform(texts))
    run(*words, "-o", tmp_path / "plain", capsys=capsys)
    told = refused("index", tmp_path / "plain", "texts.csv", "-o", tmp_path / "d", capsys=capsys)
    assert "takes vectors of 256 features and has no encoder" in told


def test_pictures_without_labels_from_end_to_end(folder, capsys):
    run("fit", "pictures", "--backbone", "tiny", "--method", "itq", "--bits", "32", "-o", "looks", capsys=capsys)
    assert hbmp.load("looks").input_encoder_.takes == "images"
    assert run("index", "looks", "pictures", "-o", "look-db", capsys=capsys)["items"] == 60
    found = run("search", "look-db", "pictures/07.png", "-k", "3", capsys=capsys)
    assert found[0]["results"][0]["path"].endswith("07.png")
    done = run("features", "pictures", "--backbone", "tiny", "-o", "p.npy", "--names", "p.txt", capsys=capsys)
    assert (done["rows"], done["features"]) == (60, 192)
    assert (folder / "p.txt").read_text().splitlines() == [f"{number:02}.png" for number in range(60)]
    codes = hbmp.load("looks").transform(np.load("p.npy"))
    np.testing.assert_array_equal(hbmp.Database.load("look-db").codes(), codes)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["features", "texts.csv", "--column", "bod", "-o", "y.npy"], "Did you mean 'body'?"),
        (["features", "texts.csv", "-o", "y.csv"], "Features are written as .npy; call the output y.npy."),
        (["features", "absent.csv", "-o", "y.npy"], "There is no file or folder absent.csv."),
        (["features", "db", "-o", "y.npy"], "db holds neither texts nor pictures"),
        (["features", "texts.csv", "--encoder", "tiny", "-o", "y.npy"], "The encoder 'tiny' is for pictures"),
        (["features", "texts.csv", "--backbone", "tiny", "-o", "y.npy"], "--backbone applies to pictures"),
        (["features", "pictures", "--encoder", "wordllama", "-o", "y.npy"], "The encoder 'wordllama' is for texts"),
        (["features", "texts.csv", "--encoder", "wordlama", "-o", "y.npy"], "Did you mean 'wordllama'?"),
        (["fit", "texts.csv", "--method", "ksh", "-o", "x"], "The texts of texts.csv have no labels, from which 'ksh'"),
        (
            ["fit", "pictures", "--epochs", "3", "--backbone", "tiny", "-o", "x"],
            "--epochs applies only to training a network",
        ),
        (["fit", "pictures", "--column", "body", "-o", "x"], "--column names a text column"),
        (["fit", "texts.csv", "--labels", "modul", "-o", "x"], "--labels modul is neither a column of texts.csv nor"),
        (["search", "db", ""], "A query is empty."),
        (["search", "model", "a"], "model is a model, not a database. Make one with `hbmp index model DATA -o DB`."),
        (["search", "db", "absent.csv"], "There is no file absent.csv."),
        (["search", "db", "pictures/01.png"], "holds images, but the model takes texts, by WordLlama()"),
        (["compare", "--data", "texts.csv"], "texts.csv holds texts, but this command needs features"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(words, sentence, folder, capsys):
    before = sorted(folder.iterdir())
    assert sentence in refused(*words, capsys=capsys)
    assert sorted(folder.iterdir()) == before


def test_the_commands_of_the_page_run_on_a_smaller_table(made, tmp_path, monkeypatch, capsys):
    """Every block of docs/texts.md that names this file, in order; short texts and few bits keep it quick."""
    text = (Path(__file__).parents[2] / "docs" / "texts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- not run:[^\n]*test_texts_chain.py[^\n]*-->\n```sh\n(.*?)```", text, flags=re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    assert {line.split()[1] for line in lines} == {"fit", "index", "search", "evaluate", "features"}
    for name, rows in (("train", descriptions()[::2]), ("test", descriptions()[1:90:3])):
        with open(tmp_path / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("section", "body"), *((module, body[:200]) for module, body in rows)])
    (tmp_path / "pictures").symlink_to(made / "pictures")
    monkeypatch.chdir(tmp_path)
    for line in lines:
        words = shlex.split(line)[1:]
        if words[0] == "fit":
            words = [*words, "--bits", "32", "--method", "sdh" if "--labels" in words else "itq"]
        if words[1] == "pictures/" and words[0] != "index":
            words += ["--backbone", "tiny"]
        assert cli.main(words) == 0, (line, capsys.readouterr().err)
    assert hbmp.load("looks").input_encoder_.takes == "images"


def test_vectors_of_another_encoder_are_refused(folder, tmp_path, capsys):
    """By their length; other weights under the same name by their digest."""
    np.save(tmp_path / "q.npy", np.zeros((1, 384), np.float32))
    assert "X has 384 features, but ITQ is expecting 256" in refused("search", "db", tmp_path / "q.npy", capsys=capsys)
