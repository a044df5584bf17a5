"""Fits that are stopped anywhere continue and give the model that they would have given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hbmp
from hbmp._core import storage
from hbmp._training import checkpoints, resuming
from hbmp.app import cli
from hbmp.functions import MLP, Kernel, Linear, Network

RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 12)).astype(np.float32)
CLASSES = RNG.integers(0, 6, 240)
LABELS = (RNG.random((240, 40)) < 0.1).astype(np.uint8)
PICTURES = RNG.integers(0, 256, (96, 8, 8, 3), dtype=np.uint8)
LABELS[:, 0] |= LABELS.sum(axis=1) == 0
KINDS = {
    "linear, classes": (hbmp.HBMP(8, function=Linear(epochs=3), random_state=0), CLASSES),
    "linear, labels that outnumber the bits": (hbmp.HBMP(8, function=Linear(epochs=3), random_state=0), LABELS),
    "mlp": (hbmp.HBMP(8, function=MLP(hidden=(8,), epochs=3), random_state=0), CLASSES),
    "kernel": (hbmp.HBMP(8, function=Kernel(n_anchors=20, linear=Linear(epochs=3)), random_state=0), CLASSES),
    "network": (
        hbmp.HBMP(
            8, function=Network("tiny", epochs=2, batch_size=32, channels_last=True, device="cpu"), random_state=0
        ),
        CLASSES,
    ),
    "no labels": (hbmp.HBMP(12, random_state=0), None),
    "no labels, layers": (hbmp.HBMP(32, random_state=0), None),
}


SEVERAL = ("linear, labels that outnumber the bits", "network")  # at even and odd steps; at the end of an epoch


class Stopped(BaseException):
    """A kill: nothing catches it."""


def stop_after(n_writes, patch):
    """Stop after so many entries were written; the list of their names."""
    written = []

    def counting(write, place_of):
        def counted(*arguments):
            write(*arguments)
            written.append(Path(place_of(*arguments)).name.partition("-")[0])
            if len(written) == n_writes:
                raise Stopped

        return counted

    patch.setattr(storage, "save", counting(storage.save, lambda value, path: path))
    patch.setattr(
        checkpoints.Checkpoints, "save", counting(checkpoints.Checkpoints.save, lambda self, state: self.path)
    )
    return written


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_is_stopped_anywhere_gives_the_same_model(kind, tmp_path, monkeypatch):
    model, y = KINDS[kind]
    rows = PICTURES if kind == "network" else X
    y = None if y is None else y[: len(rows)]
    straight = model.fit(rows, y).project(rows)
    with monkeypatch.context() as patch, hbmp.resumable(tmp_path / "whole", seconds=0):
        written = stop_after(-1, patch)
        model.fit(rows, y)
    assert len(written) >= 3
    middle = len(written) // 2
    for stop in (middle, middle + 1) if kind in SEVERAL else (middle,):
        folder = tmp_path / f"stop {stop}"
        with monkeypatch.context() as patch:
            stop_after(stop, patch)
            with pytest.raises(Stopped), hbmp.resumable(folder, seconds=0):
                model.fit(rows, y)
        assert resuming.something_kept(folder)
        with monkeypatch.context() as patch:
            rest = stop_after(-1, patch)
            with hbmp.resumable(folder, seconds=0):
                model.fit(rows, y)
        assert len(rest) <= len(written) - stop
        np.testing.assert_array_equal(model.project(rows), straight)
        assert not folder.exists()


def test_other_data_or_settings_find_nothing_and_damage_counts_as_nothing(tmp_path, monkeypatch):
    model, y = KINDS["linear, classes"]
    straight = model.fit(X, y).project(X)
    with monkeypatch.context() as patch:
        written = stop_after(9, patch)
        with pytest.raises(Stopped), hbmp.resumable(tmp_path / "parts", seconds=0):
            model.fit(X, y)
    assert {"results", "training.safetensors"} == set(written)
    for path in (tmp_path / "parts").rglob("*.*"):
        path.write_bytes(path.read_bytes()[:-9])
    (tmp_path / "parts" / "notes.txt").touch()
    with monkeypatch.context() as patch:
        again = stop_after(-1, patch)
        with hbmp.resumable(tmp_path / "parts", seconds=0):
            other = hbmp.HBMP(8, function=Linear(epochs=3), random_state=1).fit(X, y)
            model.fit(X, y)
    assert len(again) > 2 * len(written) - 3
    np.testing.assert_array_equal(model.project(X), straight)
    assert not np.array_equal(other.project(X), straight)
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["notes.txt"]  # not ours, so it stays


def test_a_mistake_leaves_nothing_and_a_full_disk_leaves_what_there_is(tmp_path):
    def failing(error):
        with hbmp.resumable(tmp_path / "parts", seconds=0):
            assert resuming.kept(lambda: np.arange(3), "facts").tolist() == [0, 1, 2]
            raise error

    for error, left in ((ValueError, False), (OSError, True)):
        with pytest.raises(error):
            failing(error)
        assert resuming.something_kept(tmp_path / "parts") == left
    assert resuming.kept(lambda: "nothing is kept outside a block") == "nothing is kept outside a block"


def test_quick_work_is_not_kept(tmp_path):
    with hbmp.resumable(tmp_path / "parts"):
        KINDS["linear, classes"][0].fit(X, CLASSES)
        assert not (tmp_path / "parts").exists()


KILLED = """
import os, signal
from hbmp._training import checkpoints, resuming
from hbmp.app import cli
save, seconds, saved = checkpoints.Checkpoints.save, resuming._Place.__init__, []
def counted(self, state):
    save(self, state)
    saved.append(state)
    if len(saved) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoints.Checkpoints.save = counted
resuming._Place.__init__ = lambda self, folder, _: seconds(self, folder, 0.0)
cli.main({words!r})
"""


def test_hbmp_fit_continues_after_a_kill_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("y.npy", CLASSES)
    words = ["fit", "x.npy", "--labels", "y.npy", "--bits", "8", "-o", "m"]
    script = KILLED.format(words=[*words, "--set", 'function=["linear",{"epochs":3}]'])
    assert subprocess.run([sys.executable, "-c", script], check=False, capture_output=True).returncode == -9
    assert resuming.something_kept("m.parts")
    assert not Path("m").exists()
    words += ["--set", 'function=["linear",{"epochs":3}]']
    with monkeypatch.context() as patch:
        patch.setattr(hbmp.HBMP, "fit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert cli.main(words) == 130
    said = "Interrupted. No model was saved. Run the same command again to continue from m.parts.\n"
    assert capsys.readouterr().err == said
    with monkeypatch.context() as patch:
        saved = stop_after(-1, patch)
        assert cli.main(words) == 0
    assert 0 < len(saved) - 1 < 9  # one is the model
    assert not Path("m.parts").exists()
    assert cli.main([*words[:-3], "straight", *words[-2:]]) == 0
    np.testing.assert_array_equal(hbmp.load("m").project(X), hbmp.load("straight").project(X))
