"""The demo as a new user runs it: on real texts, twice, with a report that stands alone and a database to search."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
from serving import serving

import hbmp
from hbmp.app import cli, demo
from hbmp.app.demo import data as demo_data

WORDS = ["demo", "-o", "out", "--bits", "8", "16", "--rows", "400", "--device", "cpu"]


class Page(HTMLParser):
    """Elements opened and closed in order, what they point at, and their texts by id."""

    empty = {"meta", "img", "br", "wbr", "hr", "link", "input"}

    def __init__(self, text):
        super().__init__()
        self.open, self.astray, self.pointers, self.ids, self.tags = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append(tag)
        self.pointers += [values[key] for key in values if key.split(":")[-1] in ("src", "href", "srcset", "data")]
        self.ids += [values["id"]] if "id" in values else []
        if tag not in self.empty:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.empty:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag == "p" and self.open[-1] != "p":
            return
        if not self.open or self.open.pop() != tag:
            self.astray.append(tag)


def run(folder, *words):
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "HBMP_DATA": ""}
    command = [sys.executable, "-m", "hbmp", *words]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def names(folder):
    """Files and folders, without what SQLite keeps beside an open database."""
    return {path.name for path in folder.iterdir()} - {"db-wal", "db-shm"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder it ran in, what it printed, and what it wrote for programs."""
    folder = tmp_path_factory.mktemp("demo")
    done = run(folder, *WORDS)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, json.loads((folder / "out" / "demo.json").read_text(encoding="utf-8"))


def test_it_says_what_it_found_and_where_it_is(ran):
    _, printed, told = ran
    assert told["table"] in printed
    assert told["alternatives"] in printed
    assert told["recommendation"] in printed
    assert list(told["scores"]) == sorted(demo.METHODS, key=lambda name: -sum(told["scores"][name].values()))
    for method, scores in told["scores"].items():
        assert set(scores) == {"8", "16"}
        assert f"{scores['16']:.3f}" in told["table"], method
    assert told["scores"]["hbmp"]["16"] > told["scores"]["itq"]["16"] + 0.1
    assert told["scores"]["hbmp"]["16"] > told["baselines"]["floats, cosine"]["score"]
    assert "out/report.html" in printed
    assert "replaced" not in printed


def test_the_report_stands_alone_and_has_every_part(ran):
    folder, _, told = ran
    text = (folder / "out" / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert (page.open, page.astray) == ([], [])
    assert all(pointer.startswith(("#", "data:")) for pointer in page.pointers)
    assert {pointer[1:] for pointer in page.pointers if pointer.startswith("#")} <= set(page.ids)
    assert not re.search(r"@import|<script|<link|<iframe|url\((?!#)", text)
    assert page.tags.count("svg") == 4
    assert 'name="viewport"' in text
    cells = re.findall(r"<td[^>]*>(?:<b>)?([\d.]+)(?:</b>)?</td>", text)
    assert {f"{score:.3f}" for by_length in told["scores"].values() for score in by_length.values()} <= set(cells)
    for search in told["searches"]:
        assert search["sentence"] in text
        whole = text.replace("<wbr>", "")
        assert all(f">{name}<" in whole for names in search["found"].values() for name in names)


def test_searches_find_what_they_should(ran):
    """Codes find the part of the package; vectors order what is in it."""
    _, _, told = ran
    found = next(each["found"] for each in told["searches"] if each["sentence"].startswith("cross-validation"))
    for kind, names in found.items():
        assert sum(name.startswith("sklearn.") for name in names) >= 3, kind


def test_the_database_answers_as_printed(ran):
    folder, _, told = ran
    words = shlex.split(next(line for words, line in told["commands"].items() if "sentence" in words))
    found = run(folder, *words[words.index("search") :], "--json", "--real-valued")
    assert found.returncode == 0, found.stderr
    (answer,) = json.loads(found.stdout)
    by_codes = next(names for kind, names in told["searches"][0]["found"].items() if kind.startswith("codes of"))
    assert [hit["id"] for hit in answer["results"]] == by_codes
    with hbmp.Database.load(folder / "out" / "db") as database:
        assert len(database) == told["items"]
        assert database.labels_of(by_codes[:1]) == [by_codes[0].rpartition(".")[0]]
        assert len(database.payload_of(by_codes[:1])[0]["text"]) >= 60


def test_the_web_app_opens_as_printed(ran, monkeypatch):
    folder, _, told = ran
    words = shlex.split(next(line for words, line in told["commands"].items() if "browser" in words))
    served = words[words.index("serve") + 1 :]
    assert served[:3] == ["out/model", "--index", "out/db"]
    monkeypatch.chdir(folder)
    with serving(*served, "--no-map") as address, urllib.request.urlopen(f"{address}/") as answer:
        assert b"<html" in answer.read()


def test_a_second_run_replaces_its_own_files_and_no_others(ran, monkeypatch, capsys):
    folder, _, _ = ran
    monkeypatch.chdir(folder)
    monkeypatch.setattr(demo, "METHODS", ("hbmp", "itq"))  # quicker; the first run had all of them
    (folder / "out" / "notes.txt").write_text("mine")
    before = names(folder / "out")
    assert cli.main([*(word for word in WORDS if word != "16"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["replaced"]
    assert told["bits"] == [8]
    assert json.loads((folder / "out" / "demo.json").read_text(encoding="utf-8")) == told
    assert names(folder / "out") == before
    assert (folder / "out" / "notes.txt").read_text() == "mine"
    assert "The files of an earlier demo in out were replaced." in demo.text(told)
    assert hbmp.load(folder / "out" / "model").n_bits == 8


@pytest.mark.parametrize("name", ["report.html", "model"])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=f"holds {name}, but no demo wrote it; choose another --output"):
        demo.run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_wrong_settings_are_refused_before_anything_runs(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert cli.main(["demo", "-o", str(tmp_path / "new"), "--bits", "1"]) == 2
    assert cli.main(["demo", "-o", str(tmp_path / "new"), "--rows", "20"]) == 2
    assert capsys.readouterr().err.count("\n") == 3
    assert not (tmp_path / "new").exists()


def test_texts_are_descriptions_in_parts_that_have_enough_of_them():
    texts = demo_data.documentation()
    counts = Counter(texts.labels)
    assert min(counts.values()) >= 20
    assert len(counts) >= 15
    assert len(set(texts.names)) == len(texts) > 1500
    assert {"scipy.signal", "sklearn.metrics", "numpy.polynomial"} <= set(counts)
    assert all(name.startswith(f"{label}.") for name, label in zip(texts.names, texts.labels, strict=True))
    assert min(map(len, texts.texts)) >= 60
    (medfilt,) = texts.texts[texts.names == "scipy.signal.medfilt"]
    assert medfilt.startswith("Perform a median filter")
    fewer = texts.drawn(300, seed=0)
    assert len(fewer) == 300
    assert np.isin(fewer.names, texts.names).all()
    assert set(fewer.labels) == set(counts)  # drawn evenly
