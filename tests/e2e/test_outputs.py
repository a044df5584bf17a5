"""Outputs are checked before the work begins, disk space is reserved, and databases are replaced only on demand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hbmp
from hbmp.app import cli
from hbmp.app.outputs import check_folder, new_npy

X = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
SIZE = 64 << 10  # bytes of the small disk


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("features.npy", X)
    hbmp.get_method("lsh")(16, random_state=0).fit(X).save("model")
    return tmp_path


def refused(*words, capsys):
    """The sentence of a command that is refused."""
    assert cli.main(list(words)) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.count("\n") == 1
    return found.err


def test_a_new_array_is_one_that_numpy_reads_and_its_blocks_are_allocated(tmp_path, monkeypatch):
    for name in ("fallocate", "zeros"):
        path = tmp_path / f"{name}.npy"
        codes = new_npy(path, np.int8, (3000, 1000), path)
        assert path.stat().st_blocks * 512 >= 3_000_000
        codes[:] = 7
        codes.flush()
        assert (np.load(path) == 7).all()
        monkeypatch.delattr(os, "posix_fallocate", raising=False)  # the second round
    assert new_npy(tmp_path / "none.npy", np.int8, (0, 16), "none").shape == (0, 16)


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", place], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    yield place
    subprocess.run(["umount", place], check=True)


def test_encoding_to_a_full_disk_is_one_sentence_and_leaves_nothing(folder, small_disk):
    np.save("features.npy", np.tile(X, (20, 1)))  # 8,000 codes of 16 signs: 128,000 bytes
    output = small_disk / "codes.npy"
    done = subprocess.run(
        [sys.executable, "-m", "hbmp", "encode", "model", "features.npy", "-o", output],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done  # a bus error ends with -7
    assert done.stderr == f"{output} needs 128,000 bytes, which could not be reserved: No space left on device.\n"
    assert list(small_disk.iterdir()) == []


def test_an_output_is_refused_before_the_data_are_read(folder, capsys):
    Path("file").write_text("")
    missing = "no-such-features.npy"
    for words in (
        ["fit", missing, "-o", "file/model"],
        ["encode", "model", missing, "-o", "file/parts"],
        ["encode", "model", missing, "-o", "file/codes.npy"],
        ["index", "model", missing, "-o", "file/db"],
    ):
        sentence = refused(*words, capsys=capsys)
        assert "file" in sentence
        assert missing not in sentence


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="is read-only"):
        check_folder(tmp_path / "deep" / "model")


def test_index_replaces_a_database_only_on_demand(folder, capsys):
    assert cli.main(["index", "model", "features.npy", "-o", "db"]) == 0
    capsys.readouterr()
    np.save("fewer.npy", X[:100])
    sentence = refused("index", "model", "fewer.npy", "-o", "db", capsys=capsys)
    assert sentence == "db is a database already; pass --replace to replace it, or choose another name.\n"
    assert len(hbmp.Database.load("db")) == 400
    assert cli.main(["index", "model", "fewer.npy", "-o", "db", "--replace"]) == 0
    assert len(hbmp.Database.load("db")) == 100
