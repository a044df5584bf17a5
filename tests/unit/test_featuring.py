"""Vectors in a file, a block at a time: a stopped run is resumed only where what it left is right."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from filelock import FileLock

from hbmp import encoders
from hbmp.app import cli
from hbmp.encode.featuring import ItemSource, write_features

TEXTS = ["a", "bb", "", "dddd", "eeeee"]


def lengths(texts):
    return [[len(text), 1] for text in texts]


def more_lengths(texts):
    return [[len(text), 2] for text in texts]


def written(path, n_blocks=3, function=lengths, stamp="s"):
    """The rows that an earlier run had finished; fewer blocks stop the run."""
    blocks = [TEXTS[:2], TEXTS[2:4], TEXTS[4:]][:n_blocks]
    source = ItemSource(5, 2, lambda start: iter(blocks[start // 2 :]), stamp)
    return write_features(encoders.get(function), source, path, dtype="float32")


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """What a run leaves after two of its three blocks."""
    monkeypatch.setattr("hbmp.encode.featuring._SECONDS", -1)
    with pytest.raises(ValueError, match="4 items were found but 5 expected"):
        written(tmp_path / "x.npy", n_blocks=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy.part", "x.npy.part.json"]
    return tmp_path / "x.npy"


def test_a_run_that_was_stopped_before_the_last_rename_is_finished(tmp_path, monkeypatch):
    monkeypatch.setattr("hbmp.encode.featuring._SECONDS", -1)
    path = tmp_path / "x.npy"
    real = os.replace

    def refuse(source, target):
        if str(target) == str(path):
            raise OSError(30, "Read-only file system")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(OSError, match="Read-only"):
            written(path)
    assert written(path) == 5
    check(path)


def check(path):
    np.testing.assert_array_equal(np.load(path), lengths(TEXTS))
    assert [other.name for other in path.parent.iterdir()] == ["x.npy"]


def test_a_stopped_run_is_resumed(stopped):
    assert written(stopped) == 4
    check(stopped)


def test_rows_that_do_not_match_their_checksum_are_computed_again(stopped):
    part = stopped.with_name("x.npy.part")
    whole = bytearray(part.read_bytes())
    whole[-30] ^= 1
    part.write_bytes(whole)
    assert written(stopped) == 0
    check(stopped)


@pytest.mark.parametrize("size", [0, 50, 130])
def test_a_part_that_is_cut_short_is_computed_again(stopped, size):
    os.truncate(stopped.with_name("x.npy.part"), size)
    assert written(stopped) == 0
    check(stopped)


@pytest.mark.parametrize("note", ["", "[]", "[" * 100_000, '{"rows": 4}', '{"rows": 99, "crc": 0, "run": RUN}'])
def test_a_note_that_cannot_be_is_no_progress(stopped, note):
    place = stopped.with_name("x.npy.part.json")
    place.write_text(note.replace("RUN", json.dumps(json.loads(place.read_text())["run"])))
    assert written(stopped) == 0
    check(stopped)


@pytest.mark.parametrize("other", [{"stamp": "other items"}, {"function": more_lengths}])
def test_another_run_is_not_mixed_in(stopped, other):
    with pytest.raises(ValueError, match="an interrupted run with different data or a different encoder"):
        written(stopped, **other)


def test_two_runs_do_not_write_one_file(tmp_path):
    with FileLock(tmp_path / ".x.npy.lock"), pytest.raises(ValueError, match="is being written by another run"):
        written(tmp_path / "x.npy")
    assert written(tmp_path / "x.npy") == 0
    check(tmp_path / "x.npy")


def test_a_function_has_the_same_name_in_every_process():
    assert encoders.get(lengths).about() == f"{__name__}:lengths for texts"
    assert encoders.get(lengths).code() != encoders.get(more_lengths).code()


def test_a_picture_that_is_changed_in_place_is_not_resumed(tmp_path, capsys, monkeypatch):
    Image = pytest.importorskip("PIL.Image")
    (tmp_path / "p").mkdir()
    for number in range(3):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / "p" / f"{number}.png")
    words = ["features", str(tmp_path / "p"), "--backbone", "tiny", "-o", str(tmp_path / "x.npy")]

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hbmp.encode.featuring._checksum", interrupted)
        assert cli.main(words) == 130
    assert "continue from the vectors in" in capsys.readouterr().err
    Image.new("RGB", (8, 8), (99, 0, 0)).save(tmp_path / "p" / "1.png")
    assert cli.main(words) == 2
    assert "an interrupted run with different data" in capsys.readouterr().err
