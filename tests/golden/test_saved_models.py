"""Models and databases saved by earlier versions give the same answers today; `make_golden_models.py` wrote them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hbmp

FOLDER = Path(__file__).parent
MODELS = sorted(path.parent for path in FOLDER.glob("models/format-*/*/model.json"))
DATABASES = sorted(path.parent for path in FOLDER.glob("databases/format-*/*/answers.npz"))


def name_of(folder: Path) -> str:
    return f"{folder.parent.name}-{folder.name}"


def the_users_network():
    """What the models called `network-of-the-user` were fitted with; its code is not saved."""
    from torch import nn

    return nn.AdaptiveAvgPool2d(4)


def loaded(folder: Path, load):
    own = folder.name in ("network-of-the-user", "images")
    place = folder / "db" if (folder / "db").exists() else folder  # databases are one file from format 3 on
    return load(place, module=the_users_network()) if own else load(place)


def as_input(array: np.ndarray):
    return hbmp.Images.from_array(array) if array.dtype == np.uint8 else array


@pytest.mark.parametrize("folder", MODELS, ids=name_of)
def test_an_old_model_gives_the_same_answers(folder):
    model, answers = loaded(folder, hbmp.load), np.load(folder / "answers.npz")
    X = as_input(answers["inputs"])
    np.testing.assert_array_equal(model.transform(X), answers["codes"])
    size = np.abs(answers["scores"]).max()
    np.testing.assert_allclose(model.project(X), answers["scores"], rtol=1e-5, atol=1e-5 * size)
    np.testing.assert_allclose(model.bit_weights_, answers["bit_weights"], rtol=1e-12)
    if "labels" in answers:
        np.testing.assert_array_equal(model.codes_for(answers["labels"]), answers["label_codes"])


@pytest.mark.parametrize("folder", MODELS, ids=name_of)
def test_the_recorded_answers_can_tell_models_apart(folder):
    answers = np.load(folder / "answers.npz")
    assert len(answers["codes"]) >= 2
    assert len(np.unique(answers["codes"], axis=0)) > 1
    assert np.abs(answers["scores"]).min() > 0


@pytest.mark.parametrize("folder", DATABASES, ids=name_of)
def test_an_old_database_gives_the_same_answers(folder):
    database, answers = loaded(folder, hbmp.Database.load), np.load(folder / "answers.npz")
    distances, ids = database.search(as_input(answers["inputs"]), 5)
    np.testing.assert_allclose(distances, answers["distances"], rtol=1e-6)
    np.testing.assert_array_equal(ids, answers["ids"])
    np.testing.assert_array_equal([database.labels_of(row) for row in ids], answers["labels"])
    np.testing.assert_array_equal(database.codes(), answers["codes"])


@pytest.mark.parametrize("folder", [folder for folder in DATABASES if folder.name == "images"], ids=name_of)
def test_an_old_database_of_images_finds_its_files(folder):
    database = loaded(folder, hbmp.Database.load)
    assert all(Path(path).is_file() for path in database.paths_of(database.ids))
