"""The demo as a new user runs it: on the real digits, twice, with a report that stands alone and a database to open."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from html.parser import HTMLParser

import numpy as np
import pytest
from serving import serving

import hbmp
from hbmp.app import cli, demo
from hbmp.app.demo import data as demo_data
from hbmp.app.demo import page as demo_page

WORDS = ["demo", "-o", "out", "--bits", "8", "16", "--rows", "500", "--data-dir", "nothing", "--device", "cpu"]


class Page(HTMLParser):
    """Elements opened and closed in order, what they point at, and their texts by id."""

    empty = {"meta", "img", "br", "hr", "link", "input"}

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


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder it ran in, and what it said."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, run(folder, *WORDS)


def test_it_says_what_it_found_and_where_it_is(ran):
    folder, done = ran
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads((folder / "out" / "demo.json").read_text(encoding="utf-8"))
    (digits,) = told["data"]
    assert digits["table"] in done.stdout
    assert set(digits["scores"]) == set(demo.METHODS)
    assert len(demo.METHODS) == 7
    for method, scores in digits["scores"].items():
        assert set(scores) == {"8", "16"}
        assert f"{scores['16']:.3f}" in digits["table"], method
    assert digits["scores"]["hbmp"]["16"] > digits["scores"]["itq"]["16"] + 0.1
    assert digits["standing"] in done.stdout
    assert "CIFAR-10 is left out" in done.stdout
    assert "out/report.html" in done.stdout
    assert "replaced" not in done.stdout


def test_the_report_stands_alone_and_has_every_part(ran):
    folder, _ = ran
    text = (folder / "out" / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert (page.open, page.astray) == ([], [])
    assert all(pointer.startswith(("#", "data:")) for pointer in page.pointers)
    assert {pointer[1:] for pointer in page.pointers if pointer.startswith("#")} <= set(page.ids)
    assert not re.search(r"@import|<script|<link|<iframe|url\((?!#)", text)
    assert {f"digits-{part}" for part in demo_page.SECTIONS} <= set(page.ids)
    assert page.tags.count("svg") == 6
    assert page.tags.count("img") == 1
    assert "prefers-color-scheme:dark" in text
    assert 'name="viewport"' in text
    scores = json.loads((folder / "out" / "demo.json").read_text(encoding="utf-8"))["data"][0]["scores"]
    cells = re.findall(r"<td[^>]*>(?:<b>)?([\d.]+)(?:</b>)?</td>", text)
    assert {f"{score:.3f}" for by_length in scores.values() for score in by_length.values()} <= set(cells)


def test_the_retrieval_picture_has_green_and_red_frames(ran):
    """Counted in the picture itself: every hit and every miss has a frame of its colour."""
    import base64
    import io

    from PIL import Image

    folder, _ = ran
    text = (folder / "out" / "report.html").read_text(encoding="utf-8")
    png = base64.b64decode(re.search(r'<img [^>]*src="data:image/png;base64,([^"]+)"', text)[1])
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    green, red = ((np.abs(pixels - colour).sum(axis=2) < 12).sum() for colour in ((43, 138, 62), (200, 64, 47)))
    hits, total = map(int, re.search(r"Correct: hbmp (\d+) of (\d+)", text).groups())
    rival = int(re.search(r"Correct: hbmp \d+ of \d+, itq (\d+) of", text)[1])
    right = hits + rival
    assert 0 < right < 2 * total
    assert green / (green + red) == pytest.approx(right / (2 * total), abs=0.03)


def test_the_database_answers_as_printed(ran):
    folder, done = ran
    told = json.loads((folder / "out" / "demo.json").read_text(encoding="utf-8"))["data"][0]
    words = shlex.split(re.search(r"Search: +(.*)", done.stdout)[1])
    found = run(folder, *words[words.index("search") :], "--json", "-k", str(demo.N_SHOWN))
    answers = [[hit["label"] for hit in query["results"]] for query in json.loads(found.stdout)]
    assert answers == [query["nearest"] for query in told["queries"]]
    assert [row.count(query["label"]) for row, query in zip(answers, told["queries"], strict=True)] == [
        query["hits"] for query in told["queries"]
    ]
    digits = demo_data.at_hand("nothing", rows=500)[0][0]
    database = hbmp.Database.load(folder / "out" / "db")
    assert database.labels.tolist() == [str(digits.labels[number]) for number in database.ids]


def test_the_web_app_opens_as_printed(ran, monkeypatch):
    folder, done = ran
    words = shlex.split(re.search(r"Web app: +(.*)", done.stdout)[1])
    served = words[words.index("serve") + 1 :]
    assert served[:3] == ["out/model", "--index", "out/db"]
    told = json.loads((folder / "out" / "demo.json").read_text(encoding="utf-8"))["data"][0]
    monkeypatch.chdir(folder)
    with serving(*served, "--no-map") as address:
        with urllib.request.urlopen(f"{address}/") as answer:
            assert b"<html" in answer.read()
        question = {"vector": np.load("out/queries.npy")[0].tolist(), "k": demo.N_SHOWN}
        request = urllib.request.Request(
            f"{address}/search", json.dumps(question).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            found = json.loads(answer.read())["results"]
    assert [hit["label"] for hit in found] == told["queries"][0]["nearest"]


def test_a_second_run_replaces_its_own_files_and_no_others(ran, monkeypatch, capsys):
    folder, _ = ran
    monkeypatch.chdir(folder)
    monkeypatch.setattr(demo, "METHODS", ("hbmp", "itq", "lsh"))  # quicker; the first run had all of them
    (folder / "out" / "notes.txt").write_text("mine")
    before = {path.name for path in (folder / "out").iterdir()}
    assert cli.main([*(word for word in WORDS if word != "16"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["replaced"]
    assert told["bits"] == [8]
    assert json.loads((folder / "out" / "demo.json").read_text(encoding="utf-8")) == told
    assert {path.name for path in (folder / "out").iterdir()} == before
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


def test_wrong_asking_is_told_before_anything_runs(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert cli.main(["demo", "-o", str(tmp_path / "new"), "--bits", "1"]) == 2
    assert cli.main(["demo", "-o", str(tmp_path / "new"), "--rows", "20"]) == 2
    assert capsys.readouterr().err.count("\n") == 3
    assert not (tmp_path / "new").exists()


def test_features_of_cifar10_are_found_and_drawn_evenly(tmp_path):
    random = np.random.default_rng(0)
    folder = tmp_path / "cifar10-efficientnet-lite0"
    folder.mkdir()
    labels = np.repeat(np.arange(10, dtype=np.uint8), 600)
    np.save(folder / "features.npy", random.standard_normal((6000, 4)).astype(np.float16))
    np.save(folder / "labels.npy", labels)
    (digits, cifar), note = demo_data.at_hand(tmp_path)
    assert note == ""
    assert digits.name == "digits"
    assert np.bincount(cifar.labels).tolist() == [400] * 10
    assert cifar.images is None
    assert (cifar.queries, cifar.train) == (200, 1200)
    fewer = cifar.cut(1000, seed=0)
    assert (len(fewer.features), fewer.queries, fewer.train) == (1000, 50, 300)
    assert np.bincount(fewer.labels).tolist() == [100] * 10
    assert set(cifar.looks()) == set(cifar.names)
    rows = {row.tobytes(): label for row, label in zip(np.load(folder / "features.npy"), labels, strict=True)}
    drawn = zip(cifar.features.astype(np.float16), cifar.labels, strict=True)
    assert all(rows[row.tobytes()] == label for row, label in drawn)
