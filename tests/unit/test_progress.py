"""Progress: positions of nested stages, the time left, and what a terminal, a notebook and a log file show."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import hbmp
from hbmp._core import progress
from hbmp._core.progress import clock, counted, parts, shown, stage, steps, tracked
from hbmp.functions import Linear


class Recorder:
    """A display that keeps what it was told."""

    def __init__(self):
        self.seen, self.closed = [], False

    def update(self, name, position, left, facts):
        self.seen.append((name, round(position, 6), left, dict(facts)))

    def close(self):
        self.closed = True

    @property
    def positions(self):
        return [position for _, position, _, _ in self.seen]


@pytest.fixture(autouse=True)
def no_lines_of_progress():
    """Here lines are wanted."""


@pytest.fixture
def display(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(progress, "_display", lambda title: recorder)
    return recorder


@pytest.fixture
def time(monkeypatch):
    """A clock that stands still until it is set."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


def test_stages_parts_and_steps_cover_the_whole(display):
    with shown("work"):
        with stage("first", until=0.4):
            for _ in parts(range(4)):
                pass
        with stage("second", until=0.8), steps(4, "row") as done:
            done(1, loss="0.5")
            done(3)
        with stage("third"), stage("inner", until=0.5):
            pass
    assert display.positions == sorted(display.positions)
    assert display.closed
    assert {0.1, 0.2, 0.3, 0.4, 0.5, 0.8, 0.9, 1.0} <= set(display.positions)
    assert ("second", 0.5, None, {"rows": "1 of 4", "loss": "0.5"}) in display.seen
    assert ("second", 0.8, None, {"rows": "4 of 4", "loss": "0.5"}) in display.seen
    assert list(dict.fromkeys(name for name, *_ in display.seen)) == ["first", "work", "second", "third"]


def test_only_the_outermost_is_shown_and_counted_steps_are_not_divided(display):
    with counted("comparing", 2) as done:
        for _ in range(2):
            with shown("fit"), stage("training"), steps(100) as inner:
                inner(100)
            assert list(tracked("trees", [1, 2])) == [1, 2]
            done()
    assert display.positions == [0.5, 1.0]
    assert {name for name, *_ in display.seen} == {"comparing"}


def test_work_that_stops_early_goes_on_behind_it(display):
    with shown("work"):
        with stage("search", until=0.5):
            for number in parts(range(10)):
                if number == 2:
                    break
        with stage("rest"):
            pass
    assert display.positions == sorted(display.positions)
    assert display.positions[-1] == 1


def test_an_error_ends_the_display(display):
    with pytest.raises(KeyError), shown("work"), stage("first"):
        raise KeyError
    assert display.closed
    with shown("again"):  # it is the outermost again
        pass


def test_time_left_follows_the_pace_of_the_stage(display, time):
    with shown("work"):
        with stage("quick", until=0.5):
            time.now = 1.0
        with stage("slow"), steps(10) as done:
            time.now = 3.0
            done()  # 2 seconds for 0.05 of the whole
    lefts = {position: left for _, position, left, _ in display.seen}
    assert lefts[0.5] == pytest.approx(1.0)
    assert lefts[0.55] == pytest.approx(0.45 / 0.05 * 2)
    assert lefts[1.0] == 0


def test_other_processes_and_quiet_work_show_nothing(display, monkeypatch):
    with shown("quiet", False), stage("first"), steps(3) as done:
        done(3)
    monkeypatch.setenv("RANK", "1")  # not the first of several that train together
    with shown("work"), stage("first"):
        pass
    monkeypatch.delenv("RANK")
    with shown("work"):
        monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a process that was forked here
        with stage("forked"), steps(1) as done:
            done()
        assert list(parts([1, 2])) == [1, 2]
    assert display.seen == []


def test_lines_are_rare_and_say_when_work_ends(capsys, time):
    with shown("hbmp"), stage("training"), steps(100) as done:
        for second in range(100):
            time.now = float(second)
            done(loss="0.1")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "hbmp: training, 11%, 0:10 elapsed, 1:21 left, loss 0.1"
    assert len(lines) == 10
    assert lines[-1] == "hbmp: ended after 1:39"


def test_short_work_writes_no_line(capsys):
    with shown("hbmp"), stage("training"), steps(3) as done:
        done(3)
    assert capsys.readouterr().err == ""


def test_clock():
    assert [clock(seconds) for seconds in (0, 7.4, 59.6, 750, 3900)] == ["0:00", "0:07", "1:00", "12:30", "1:05:00"]


@pytest.fixture
def classes():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 6
    return (rng.standard_normal((6, 8))[y] + 0.3 * rng.standard_normal((240, 8))).astype(np.float32), y


def test_a_fit_names_its_stages_in_order(classes, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    settings = {"function": Linear(epochs=3), "detail_bits": "auto", "random_state": 0}
    model = hbmp.HBMP(8, verbose=True, **settings).fit(*classes)
    lines = capsys.readouterr().err.splitlines()
    named = dict.fromkeys(line.split(": ", 1)[1].split(",")[0] for line in lines if line.startswith("hbmp: "))
    stages = ["target codes", "choice of target codes", "choice of detail bits", "hash function"]
    stages += ["detail bits"] if model.detail_bits_ else []
    assert [name for name in named if not re.match(r"\d+%|ended", name)] == stages
    shares = [int(share) for share in re.findall(r"(\d+)%", "\n".join(lines))]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    quiet = hbmp.HBMP(8, **settings).fit(*classes)
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(quiet.transform(classes[0]), model.transform(classes[0]))


def test_a_fit_without_labels_and_one_of_another_method_show_progress(classes, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    X, y = classes
    hbmp.HBMP(8, verbose=True, random_state=0).fit(X)
    assert {"bits that rebuild", "recall of held-out rows"} <= stages_of(capsys)
    function = Linear(epochs=3, verbose=True)
    hbmp.get_method("orthohash")(8, function=function, verbose=True, random_state=0).fit(X, y)
    assert stages_of(capsys) >= {"hash function"}
    hbmp.infer_codes(2 * np.eye(6) - 1, 4, refine=1, progress=True)
    assert stages_of(capsys) >= {"target codes"}


def stages_of(capsys):
    """Titles and names of stages in the lines."""
    return {words for line in capsys.readouterr().err.splitlines() for words in re.split("[:,] ", line)[:2]}


FIT = """
    import numpy as np, hbmp
    rng = np.random.default_rng(0)
    y = np.arange(2100) % 30
    X = (rng.standard_normal((30, 16))[y] + rng.standard_normal((2100, 16))).astype(np.float32)
    hbmp.HBMP(8, function=hbmp.functions.Linear(epochs=60), random_state=0, verbose=True).fit(X, y)
    print("fitted")
"""


def test_a_terminal_shows_one_line_that_ends_clean():
    leader, follower = pty.openpty()
    program = subprocess.Popen([sys.executable, "-c", textwrap.dedent(FIT)], stdout=follower, stderr=follower)
    os.close(follower)
    told = b""
    try:
        while chunk := os.read(leader, 4096):
            told += chunk
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(leader)
    assert program.wait() == 0, told.decode()
    assert re.search(r"hbmp: hash function +\d+%\|", told.decode())
    assert told.decode().count("\n") == 1  # of the program's own print: the bar took no line
    assert "fitted" in told.decode().splitlines()[-1]


@pytest.mark.slow
def test_a_notebook_shows_the_bar():
    nbclient = pytest.importorskip("nbclient")
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(FIT))])
    nbclient.NotebookClient(notebook, timeout=300).execute()
    told = "".join(output.get("text", "") for output in notebook.cells[0].outputs)
    assert "hbmp" in told
    assert "%|" in told
    assert "fitted" in told
