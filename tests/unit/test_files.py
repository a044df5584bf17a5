"""Files that are written beside and renamed: several writers at once, and what a killed one leaves."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from hbmp._core.files import beside, write_if_absent, write_into_place

WRITER = """
import sys, time
from hbmp._core.files import beside

with beside(sys.argv[1]) as part:
    part.write_text("half")
    print(flush=True)
    time.sleep(60)
"""


def names(folder):
    return sorted(item.name for item in folder.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="needs locks on open files")
def test_leftovers_of_a_killed_writer_go_with_the_next_write_and_those_of_a_living_one_stay(tmp_path):
    path = tmp_path / "a.txt"
    foreign = tmp_path / f".other.txt.{0:032x}.part"
    foreign.write_text("of another file")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    writer.stdout.readline()
    write_into_place(path, "whole")
    assert len(names(tmp_path)) == 3
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    write_into_place(path, "again")
    assert names(tmp_path) == [foreign.name, "a.txt"]
    assert path.read_text() == "again"


def test_a_block_that_fails_leaves_what_was_there(tmp_path):
    write_into_place(tmp_path / "a.txt", "before")

    def interrupted():
        with beside(tmp_path / "a.txt") as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "before"


def test_a_file_has_the_rights_of_any_new_file(tmp_path):
    write_into_place(tmp_path / "a.txt", "a")
    (tmp_path / "b.txt").write_text("b")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


@pytest.mark.parametrize("links", [True, False])
def test_of_many_first_writers_one_succeeds(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError("no links here")))
        assert write_if_absent(tmp_path / "a.txt", "1")
        assert not write_if_absent(tmp_path / "a.txt", "2")
        return
    written = []

    def write(number):
        if write_if_absent(tmp_path / "a.txt", f"{number}"):
            written.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(tmp_path / "a.txt").read_text()] == [str(number) for number in written]
    assert names(tmp_path) == ["a.txt"]
