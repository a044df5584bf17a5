"""Models on disk: whole or not at all, and nothing but models."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from small_models import small

import hbmp
from hbmp.functions import Linear


@pytest.fixture(scope="module")
def saved(blobs, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    small().fit(*blobs).save(path)
    return path


@pytest.fixture
def copied(saved, tmp_path):
    """A copy of the saved model to spoil."""
    return shutil.copytree(saved, tmp_path / "model")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_directory_that_is_no_model_is_left_alone(blobs, tmp_path):
    other = tmp_path / "photos"
    other.mkdir()
    (other / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(ValueError, match="photos is not a model directory, or holds more"):
        small().fit(*blobs).save(other)
    assert contents(tmp_path) == {"cat.jpg": b"cat"}


def test_a_file_in_the_way_is_left_alone(blobs, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ValueError, match="is not a model directory"):
        small().fit(*blobs).save(tmp_path / "notes")
    assert contents(tmp_path) == {"notes": b"mine"}


def test_a_save_that_fails_leaves_the_old_model_whole(blobs, copied, monkeypatch):
    before = contents(copied)
    model = small(12).fit(*blobs)

    def out_of_space(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", out_of_space)
    with pytest.raises(OSError, match="No space left"):
        model.save(copied)
    assert contents(copied) == before
    assert [path.name for path in copied.parent.iterdir()] == ["model"]  # nothing half-written beside it
    monkeypatch.undo()
    model.save(copied)
    assert hbmp.load(copied).n_bits == 12
    assert [path.name for path in copied.parent.iterdir()] == ["model"]


def test_what_a_file_cannot_hold_is_named_before_anything_is_written(blobs, tmp_path):
    model = small().fit(*blobs)
    model.secret_ = object()
    with pytest.raises(ValueError, match=r"model.secret_ is a object, which a saved model cannot hold"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def rewrite(folder, change):
    content = json.loads((folder / "model.json").read_text())
    change(content)
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    content["sha256"] = hashlib.sha256(text.encode()).hexdigest()  # digests detect damage; anybody can write them
    (folder / "model.json").write_text(json.dumps(content))


@pytest.mark.parametrize("name", ["os:system", "subprocess:Popen", "hbmpx.evil:Model", "sklearn.svm:SVC"])
def test_a_class_from_elsewhere_is_refused(name, copied):
    rewrite(copied, lambda content: content["model"].update({"class": name}))
    with pytest.raises(ValueError, match=f"contains {name}, which is not part of hbmp; it is not loaded"):
        hbmp.load(copied)


def test_a_newer_format_is_refused(copied):
    rewrite(copied, lambda content: content.update({"format": 3}))
    with pytest.raises(ValueError, match=r"was saved in format 3; this version reads up to 2\. Upgrade hbmp\."):
        hbmp.load(copied)


@pytest.mark.parametrize("name", ["arrays.safetensors", "model.json"])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.95])
def test_a_file_cut_short_is_refused_in_one_sentence(name, share, copied):
    whole = (copied / name).read_bytes()
    (copied / name).write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ValueError, match=r"cannot be read as a model .* may be cut short or damaged\. Save it"):
        hbmp.load(copied)


def test_a_place_without_a_model_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere is not a saved model: it has no model\.json"):
        hbmp.load(tmp_path / "nowhere")


def test_an_unfitted_model_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        small().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_json_among_other_files_is_left_alone(blobs, tmp_path):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "model.json").write_text("{}")
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="holds more than a model"):
        hbmp.HBMP(4, function=Linear(epochs=1), random_state=0).fit(*blobs).save(folder)
    assert (folder / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"format": 1}',
        '{"format": "1", "model": 3}',
        '{"format": 1, "model": {"class": "hbmp.experiments.report:write", "params": {}, "state": {}}}',
        '{"format": 1, "model": {"class": "hbmp.nowhere:Thing", "params": {}, "state": {}}}',
        '{"format": 1, "model": {"class": "hbmp.functions.linear:Linear", "params": {"depth": 3}, "state": {}}}',
        '{"format": 1, "model": {"class": "hbmp._training.losses:NAMES", "params": {}, "state": {}}}',
    ],
)
def test_a_model_json_that_makes_no_sense_is_refused_in_one_sentence(content, blobs, tmp_path):
    hbmp.HBMP(4, function=Linear(epochs=1), random_state=0).fit(*blobs).save(tmp_path / "model")
    (tmp_path / "model" / "model.json").write_text(content)
    with pytest.raises(ValueError, match=r"Save it again|not a part models are made of"):
        hbmp.load(tmp_path / "model")
