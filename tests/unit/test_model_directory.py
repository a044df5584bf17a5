"""Model directories under kills, damage, concurrent saves and concurrent reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import hbmp
from hbmp._core import catalog, model_directory, saved_names

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4)).astype(np.float32)


def fitted(n_bits):
    return hbmp.get_method("lsh")(n_bits, random_state=0).fit(X)


@pytest.fixture
def folder(tmp_path):
    fitted(4).save(tmp_path / "model")
    return tmp_path / "model"


# Kills itself at event number N of a save: opening, syncing or renaming a file of the model.
KILLED = """
    import os, signal, sys
    import numpy as np, hbmp
    model = hbmp.get_method("lsh")(8, random_state=0)
    model.fit(np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32))
    left = [int(sys.argv[2])]
    def hook(event, args):
        if event in ("open", "os.rename", "os.remove", "os.mkdir") and sys.argv[1] in str(args[0]):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    model.save(sys.argv[1])
"""


def save_killed_at(folder, event) -> bool:
    """Whether the save was killed before it ended."""
    words = [sys.executable, "-c", textwrap.dedent(KILLED), str(folder), str(event)]
    return subprocess.run(words, check=False, timeout=120).returncode == -signal.SIGKILL


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("event", [1, 3, 5, 6])
def test_a_killed_save_leaves_a_whole_model_and_does_not_block_the_next(event, folder):
    assert save_killed_at(folder, event)
    assert hbmp.load(folder).n_bits in (4, 8)
    fitted(6).save(folder)
    assert hbmp.load(folder).n_bits == 6
    assert len(list(folder.iterdir())) == 2  # leftovers are gone


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_first_save_leaves_no_model_and_does_not_block_the_next(tmp_path):
    assert save_killed_at(tmp_path / "model", 3)
    with pytest.raises(ValueError, match=r"it has no model\.json"):
        hbmp.load(tmp_path / "model")
    fitted(6).save(tmp_path / "model")
    assert hbmp.load(tmp_path / "model").n_bits == 6
    assert len(list((tmp_path / "model").iterdir())) == 2


def test_an_unfinished_card_does_not_block_the_next_save(folder):
    (folder / "card.md").write_text("of the model before")
    (folder / ".card.md.0123abcd.part").write_text("half")
    fitted(6).save(folder)
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("name", ["model.json", "arrays.safetensors"])
def test_a_flipped_byte_gives_the_same_answers_or_one_sentence(name, folder):
    whole, scores = (folder / name).read_bytes(), fitted(4).project(X)
    refused = 0
    for place in range(len(whole)):
        (folder / name).write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        try:
            found = hbmp.load(folder).project(X)
        except ValueError as error:
            assert "Save it again" in str(error) or "Upgrade hbmp" in str(error)  # noqa: PT017
            refused += 1
        else:
            np.testing.assert_array_equal(found, scores)
    assert refused > len(whole) / 2


@pytest.mark.parametrize("depth", [900, 200_000])
def test_nested_json_is_refused_in_one_sentence(depth, folder):
    nested = "[" * depth + "]" * depth
    (folder / "model.json").write_text(f'{{"format": 1, "model": {nested}}}')
    if depth > 1000:
        with pytest.raises(ValueError, match="Save it again"):
            hbmp.load(folder)
        return
    (folder / "model.json").write_text(
        json.dumps({"format": 1, "model": {"class": "methods/lsh", "params": {"n_bits": 3}, "state": [nested]}})
    )
    with pytest.raises(ValueError, match="Save it again"):
        hbmp.load(folder)


def test_a_reader_meets_one_model_while_others_save(folder):
    code = """
        import sys
        import numpy as np, hbmp
        X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
        models = [hbmp.get_method("lsh")(n, random_state=0).fit(X) for n in (4, 8)]
        for turn in range(60):
            models[turn % 2].save(sys.argv[1])
    """
    words = [sys.executable, "-c", textwrap.dedent(code), str(folder)]
    expected = {n: fitted(n).project(X) for n in (4, 8)}
    writers = [subprocess.Popen(words) for _ in range(2)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        model = hbmp.load(folder)
        np.testing.assert_array_equal(model.project(X), expected[model.n_bits])
        reads += 1
    assert [writer.returncode for writer in writers] == [0, 0]
    assert reads > 0
    assert hbmp.load(folder).n_bits in (4, 8)


def test_a_model_replaced_by_one_of_the_same_text_is_read_again(folder, monkeypatch):
    expected, calls = hbmp.load(folder).project(np.zeros((1, 4), np.float32)), []
    read_once = model_directory._read_once

    def replaced_twice(path, text):
        calls.append(text)
        if len(calls) < 3:  # another process saved the same model before its arrays were read
            copy = path.with_name("copy.json")
            copy.write_bytes(text)
            copy.replace(path / model_directory.DESCRIPTION)
            raise ValueError("the arrays are of another save")
        return read_once(path, text)

    monkeypatch.setattr(model_directory, "_read_once", replaced_twice)
    np.testing.assert_array_equal(hbmp.load(folder).project(np.zeros((1, 4), np.float32)), expected)
    assert len(set(calls)) == 1


@pytest.mark.parametrize("name", saved_names.PARTS)
def test_every_part_has_a_class_of_that_stable_name(name):
    assert saved_names.name_of(saved_names.class_of(name)) == name


@pytest.mark.parametrize("kind", saved_names.FOLDERS)
def test_everything_in_the_catalog_has_a_stable_name(kind):
    for name in catalog.names(kind):
        assert saved_names.name_of(catalog.load(kind, name)) == f"{kind}/{name}"


def test_names_of_format_1_lead_to_stable_names():
    assert saved_names.class_of("hbmp.methods.itq:ITQ") is hbmp.get_method("itq")
    for former, name in saved_names.FORMAT_1.items():
        assert saved_names.class_of(former) is saved_names.class_of(name)
