"""Every method, found by its file: scikit-learn's checks and the four things they miss."""

import functools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import hbmp

METHODS = hbmp.list_methods()


def smallest(name, n_bits=8, **settings):
    cls = hbmp.get_method(name)
    seeded = {"random_state": 0} if "random_state" in cls().get_params() else {}
    return cls(n_bits, **{**cls.smoke, **seeded, **settings})


@functools.cache
def made_blobs():
    X, y = make_blobs(80, n_features=12, centers=4, random_state=0)
    return X.astype(np.float32), y


@functools.cache
def fitted(name):
    """One fitted model of each method for the tests that only read it."""
    return smallest(name).fit(*made_blobs())


@pytest.fixture(scope="module")
def blobs():
    return made_blobs()


@parametrize_with_checks([smallest(name, n_bits=1) for name in METHODS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", METHODS)
def test_codes_scores_and_weights_have_the_promised_form(name, blobs):
    model = fitted(name)
    codes, scores = model.transform(blobs[0]), model.project(blobs[0])
    assert codes.dtype == np.int8
    assert codes.shape == scores.shape == (80, 8)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(codes, np.where(scores >= 0, 1, -1))
    assert model.bit_weights_.shape == (8,)
    assert np.isfinite(model.bit_weights_).all()


@pytest.mark.parametrize("name", METHODS)
def test_class_carries_its_facts(name):
    cls = hbmp.get_method(name)
    assert isinstance(cls.citation, str)
    assert cls.citation
    assert isinstance(cls.supervised, bool)
    assert len(cls.__doc__) > 40


@pytest.mark.parametrize("name", METHODS)
def test_fit_leaves_its_parameters_untouched(name, blobs):
    model = smallest(name)
    before = {key: repr(value) for key, value in model.get_params().items()}
    model.fit(*blobs)
    assert {key: repr(value) for key, value in model.get_params().items()} == before


@pytest.mark.parametrize("name", METHODS)
def test_refit_forgets_the_old_code_length(name, blobs):
    model = smallest(name).fit(*blobs)
    model.set_params(n_bits=4).fit(*blobs)
    assert model.transform(blobs[0]).shape == (80, 4)
    assert model.bit_weights_.shape == (4,)
    np.testing.assert_array_equal(model.transform(blobs[0]), smallest(name, 4).fit(*blobs).transform(blobs[0]))


@pytest.mark.parametrize("name", METHODS)
def test_saved_model_answers_the_same(name, blobs, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model")
    again = hbmp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.project(blobs[0]), model.project(blobs[0]))
    np.testing.assert_array_equal(again.bit_weights_, model.bit_weights_)
    assert repr(again) == repr(model)
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"model.json", "arrays.safetensors"}


@pytest.mark.parametrize("name", METHODS)
def test_global_generators_are_untouched(name, blobs):
    import torch

    before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    smallest(name).fit(*blobs).transform(blobs[0])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(torch_before, torch.get_rng_state())


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_bits(name, blobs):
    first, second = fitted(name), smallest(name).fit(*blobs)
    np.testing.assert_array_equal(first.project(blobs[0]), second.project(blobs[0]))


@pytest.mark.parametrize("name", [name for name in METHODS if hbmp.get_method(name).never_rises])
def test_what_should_never_rise_does_not(name, blobs):
    model = fitted(name)
    history = np.asarray(getattr(model, model.never_rises))
    assert len(history) > 1
    assert (np.diff(history) <= 1e-6 * np.abs(history[0])).all()


@pytest.mark.parametrize("name", METHODS)
def test_works_in_pipeline_clone_and_grid_search(name, blobs):
    pipeline = make_pipeline(StandardScaler(), smallest(name))
    assert clone(pipeline).fit(*blobs).transform(blobs[0]).shape == (80, 8)
    search = GridSearchCV(smallest(name), {"n_bits": [2, 8]}, cv=2, error_score="raise").fit(*blobs)
    assert search.best_params_["n_bits"] in (2, 8)
    assert 0 < search.best_score_ <= 1


@pytest.mark.parametrize("name", METHODS)
def test_label_sets_are_taken_or_refused_in_words(name, blobs):
    labels = np.eye(4, dtype=int)[blobs[1]]
    labels[::3, 0] = 1
    model = smallest(name)
    if getattr(model, "single_label", False):
        with pytest.raises(ValueError, match="class"):
            model.fit(blobs[0], labels)
    else:
        assert model.fit(blobs[0], labels).transform(blobs[0]).shape == (80, 8)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("n_bits", [0, -3, 2.5, "eight", True])
def test_impossible_lengths_are_refused(name, n_bits, blobs):
    with pytest.raises(ValueError, match="n_bits must be a positive whole number"):
        smallest(name, n_bits).fit(*blobs)


def test_unknown_method_names_the_nearest():
    with pytest.raises(LookupError, match=r"No method called 'hbmb'. Did you mean 'hbmp'\?"):
        hbmp.get_method("hbmb")
