"""Every encoder, found by its file: the same vectors whatever the blocks, and a model that keeps it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import small_encoders
from sklearn.base import clone

import hbmp
from hbmp._core import catalog

NAMES = catalog.names("encoders")


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    small_encoders.install_stand_in(monkeypatch)


@pytest.fixture(params=NAMES)
def encoder(request, tmp_path):
    return small_encoders.smallest(request.param, tmp_path)


def fitted(encoder, n_bits=6):
    X = encoder.encode(small_encoders.items_for(encoder, 12))
    return hbmp.get_method("lsh")(n_bits, random_state=0).fit(X).with_encoder(encoder)


def test_vectors_are_finite_float32_one_per_item(encoder):
    items = small_encoders.items_for(encoder)
    X = encoder.encode(items)
    assert X.dtype == np.float32
    assert X.shape == (5, encoder.n_features)
    assert np.isfinite(X).all()
    assert np.ptp(X, axis=0).max() > 1e-3
    assert encoder.encode(items[:0]).shape == (0, encoder.n_features)


def test_no_item_sees_another_and_blocks_do_not_matter(encoder):
    items = small_encoders.items_for(encoder, 7)
    X = encoder.encode(items)
    alone = np.concatenate([encoder.encode(items[i : i + 1]) for i in range(7)])
    np.testing.assert_allclose(alone, X, rtol=1e-4, atol=1e-4 * np.abs(X).max())
    encoder.rows = 3
    np.testing.assert_allclose(encoder.encode(items), X, rtol=1e-4, atol=1e-4 * np.abs(X).max())


def test_an_encoder_is_a_description_that_can_be_copied(encoder):
    assert set(vars(encoder)) == set(encoder.get_params())
    items = small_encoders.items_for(encoder)
    X = encoder.encode(items)
    assert repr(clone(encoder)) == repr(encoder)
    np.testing.assert_array_equal(clone(encoder).encode(items), X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).encode(items), X)
    assert clone(encoder).get_params().keys() == encoder.get_params().keys()


def test_a_saved_model_answers_items_as_before(encoder, tmp_path):
    model, items = fitted(encoder), small_encoders.items_for(encoder, 4)
    model.save(tmp_path / "model")
    loaded = hbmp.load(tmp_path / "model", module=small_encoders.word_lengths)
    np.testing.assert_array_equal(loaded.transform(items), model.transform(items))
    np.testing.assert_array_equal(loaded.transform(items), model.transform(encoder.encode(items)))
    assert loaded.input_encoder_.same_vectors(encoder)
    assert loaded.input_encoder_.digest_ == encoder.digest_


def test_a_database_takes_items(encoder, tmp_path):
    model, items = fitted(encoder, 32), small_encoders.items_for(encoder, 12)
    database = hbmp.Database.build(model, items)
    assert database.search(items, 1)[0].max() == 0
    np.testing.assert_array_equal(database.codes(), model.transform(encoder.encode(items)))


def test_a_fit_on_other_features_forgets_the_encoder(encoder):
    model = fitted(encoder).fit(np.random.default_rng(0).standard_normal((9, 4)))
    assert not hasattr(model, "input_encoder_")


def test_the_wrong_kind_of_items_is_refused(encoder):
    model = fitted(encoder)
    wrong = ["the cat"] if encoder.takes == "images" else np.zeros((2, 9, 9, 3), np.uint8)
    with pytest.raises(ValueError, match=r"found (texts|images)"):
        model.transform(wrong)


def test_the_folder_offers_its_classes_by_name():
    assert {"custom", "image_backbone", "minilm", "sentence_transformers", "wordllama"} <= set(NAMES)
    assert isinstance(hbmp.encoders.get("wordllama", longest=10), hbmp.encoders.WordLlama)
    with pytest.raises(LookupError, match=r"No encoder called 'wordlama'. Did you mean 'wordllama'\?.*Backbones"):
        hbmp.encoders.get("wordlama")
