"""Detail bits in `HBMP`: label bits stay as they are, and items of a class can be told apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from small_models import small

import hbmp
from hbmp import hamming, metrics
from hbmp.app.card import write_card
from hbmp.app.web.codes import class_codes
from hbmp.experiments.codes import Codes, first_bits
from hbmp.functions import Linear, Network, Trees
from hbmp.methods.hbmp.detail import TIE_BREAKING
from hbmp.methods.hbmp.plan import DataFacts, resolve

TRAINED, INDEXED = slice(700), slice(1100)
QUERIES = slice(1100, 1500)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.astype(np.float32), y


def fitted(digits, n_bits, detail_bits=0, **settings):
    X, y = digits
    settings = {"function": Linear(epochs=30), "feature_share": 0.5, **settings}
    return small(n_bits, detail_bits=detail_bits, **settings).fit(X[TRAINED], y[TRAINED])


@pytest.fixture(scope="module")
def label_model(digits):
    return fitted(digits, 32)


@pytest.fixture(scope="module")
def model(digits):
    return fitted(digits, 32, 10)


def class_map(model, digits, scores=None):
    X, y = digits
    codes = model.transform(X)
    queries = codes if scores is None else scores
    labels = y[QUERIES], y[INDEXED]
    return metrics.mean_average_precision(
        queries[QUERIES], codes[INDEXED], *labels, bit_weights=model.bit_weights_, ties="average"
    )


def recall_in_class(model, digits, scores=None):
    X, y = digits
    codes = model.transform(X)
    queries = codes if scores is None else scores
    return metrics.neighbour_recall(
        queries[QUERIES],
        codes[INDEXED],
        X[QUERIES],
        X[INDEXED],
        query_labels=y[QUERIES],
        database_labels=y[INDEXED],
        bit_weights=model.bit_weights_,
        ties="average",
    )


def test_by_default_there_are_none(digits, label_model):
    X, y = digits
    given = {name: value for name, value in label_model.get_params(deep=False).items() if name != "detail_bits"}
    same = hbmp.HBMP(**given).fit(X[TRAINED], y[TRAINED])
    np.testing.assert_array_equal(same.project(X), label_model.project(X))
    np.testing.assert_array_equal(same.bit_weights_, label_model.bit_weights_)
    assert same.detail_bits == same.detail_bits_ == 0
    assert same.encoder_.detail is None
    assert hbmp.HBMP.paper(16).detail_bits == 0


def test_the_first_bits_are_those_of_a_code_without_details(digits, label_model, model):
    X, _ = digits
    assert model.detail_bits_ == model.plan_.extra_bits == 10
    assert model.transform(X).shape == (len(X), 32)
    np.testing.assert_array_equal(model.transform(X)[:, :22], label_model.transform(X)[:, :22])
    np.testing.assert_allclose(model.project(X)[:, :22], label_model.project(X)[:, :22], rtol=0.01)
    np.testing.assert_array_equal(model.weights_for(22), label_model.weights_for(22))
    np.testing.assert_array_equal(model.codebook_.codes, label_model.codebook_.codes[:, :22])
    np.testing.assert_array_equal(model.codes_for([3, 7]), label_model.codes_for([3, 7])[:, :22])


def test_items_of_a_class_are_told_apart_and_classes_as_before(digits, label_model, model):
    X, _ = digits
    before, after = (each.transform(X[INDEXED]) for each in (label_model, model))
    assert metrics.distinct_codes(after) > 2 * metrics.distinct_codes(before)
    assert metrics.self_first_share(after) > 2 * metrics.self_first_share(before)
    recall = recall_in_class(model, digits)
    assert recall > 1.8 * recall_in_class(label_model, digits)
    assert recall_in_class(model, digits, model.project(X)) > recall
    assert class_map(model, digits) > class_map(label_model, digits) - 0.015


def test_signs_of_real_valued_scores_are_the_code(digits, model):
    X, _ = digits
    np.testing.assert_array_equal(hamming.signs(model.project(X)), model.transform(X))


def test_details_together_weigh_less_than_an_average_label_bit(model):
    label, detail = model.bit_weights_[:22], model.bit_weights_[22:]
    assert detail.sum() == pytest.approx(TIE_BREAKING * label.mean())
    assert (detail > 0).all()


def test_weights_of_any_number_of_bits(model):
    weights = {k: model.weights_for(k) for k in (1, 12, 22, 23, 32)}
    assert [len(found) for found in weights.values()] == list(weights)
    np.testing.assert_array_equal(weights[32], model.bit_weights_)
    np.testing.assert_array_equal(weights[23], model.bit_weights_[:23])
    np.testing.assert_allclose(weights[22], model.bit_weights_[:22])
    assert not np.allclose(weights[12], model.bit_weights_[:12])  # refitted to the shorter code
    for k in (0, 33):
        with pytest.raises(ValueError, match="k must lie between"):
            model.weights_for(k)


def test_an_index_is_searched_by_label_bits_and_by_class(digits, model):
    X, y = digits
    index = hbmp.Index(32, bit_weights=model.bit_weights_).add(model.transform(X[INDEXED]))
    classes = model.codes_for(np.arange(10))
    assert classes.shape == (10, 22)
    _, ids = index.search(classes, 10, n_bits=22, bit_weights=model.weights_for(22))
    assert (y[ids] == np.arange(10)[:, None]).mean() > 0.9
    distances, _ = index.search(model.transform(X[:50]), 1)
    np.testing.assert_array_equal(distances, 0)


def test_a_saved_model_gives_the_same(digits, model, tmp_path):
    X, _ = digits
    model.save(tmp_path / "model")
    loaded = hbmp.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.project(X), model.project(X))
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.bit_weights_, model.bit_weights_)
    np.testing.assert_array_equal(loaded.weights_for(25), model.weights_for(25))
    assert loaded.detail_bits_ == 10
    assert loaded.plan_.unexplained == model.plan_.unexplained


def test_a_new_fit_forgets_the_details(digits, model):
    X, y = digits
    again = clone(model).fit(X[TRAINED], y[TRAINED])
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    again.set_params(detail_bits=0).fit(X[TRAINED], y[TRAINED])
    assert again.detail_bits_ == 0
    assert again.plan_.unexplained == ()


def test_auto_is_chosen_on_held_out_rows_and_kept_in_plan_and_card(digits, tmp_path):
    X, y = digits
    model = fitted(digits, 32, "auto", function=Linear(epochs=5))
    plan = model.plan_
    assert 4 <= model.detail_bits_ <= 24  # an eighth of 32 bits is always taken
    assert plan.detail_bits == model.detail_bits_
    assert plan.detail_total >= TIE_BREAKING
    assert plan.detail_total_real >= TIE_BREAKING
    assert len(plan.unexplained) == 3
    assert 1 == plan.unexplained[0] > plan.unexplained[1] > plan.unexplained[2] > 0
    assert model.codebook_.n_bits == model.plan_.n_label_bits == 32 - model.detail_bits_
    assert len(model.bit_weights_) == 32
    data = hbmp.datasets.load("digits")
    card = write_card(tmp_path, model, data, fit_seconds=1.0, n_train=700).read_text(encoding="utf-8")
    rows = {" ".join(line.replace("|", " ").split()) for line in card.splitlines()}
    assert f"detail_bits {model.detail_bits_}" in rows
    assert "detail_bits 'auto'" in rows
    assert any(row.startswith("unexplained [1.0, ") for row in rows)
    np.testing.assert_array_equal(clone(model).fit(X[TRAINED], y[TRAINED]).transform(X), model.transform(X))


def test_auto_spares_bits_that_bring_nothing():
    """Three clusters far apart need two label bits."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = (rng.normal(size=(3, 12)) * 20)[y] + rng.normal(size=(300, 12))
    model = small(16, detail_bits="auto", function=Linear(epochs=30), feature_share=0).fit(X, y)
    assert model.detail_bits_ >= 8
    codes = model.transform(X)
    assert metrics.self_retrieval_map(codes, y, bit_weights=model.bit_weights_) > 0.99
    assert metrics.self_first_share(codes) > 0.9


@pytest.mark.parametrize("detail_bits", [6, "auto"])
def test_multi_label(digits, detail_bits, tmp_path):
    X, y = digits
    labels = np.eye(10, dtype=np.uint8)[y]
    labels[:, 0] |= X[:, 20] > 10
    model = small(24, detail_bits=detail_bits).fit(X[TRAINED], labels[TRAINED])
    codes = model.transform(X[INDEXED])
    assert model.encoder_.queries is not None
    assert model.detail_bits_ == 6 or detail_bits == "auto"
    np.testing.assert_array_equal(hamming.signs(model.project(X[INDEXED])), codes)
    n_label = 24 - model.detail_bits_
    assert metrics.distinct_codes(codes) >= metrics.distinct_codes(codes[:, :n_label])
    assert model.codes_for(labels[:2]).shape == (2, n_label)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(hbmp.load(tmp_path / "model").transform(X[INDEXED]), codes)


def test_functions_that_learn_bits_one_by_one(digits):
    X, _ = digits
    model = fitted(digits, 12, 4, function=Trees(n_trees=3))
    np.testing.assert_array_equal(hamming.signs(model.project(X)), model.transform(X))
    assert model.transform(X).shape[1] == 12


@pytest.mark.parametrize("detail_bits", [-1, 8, 9, True, 2.5, "some", None])
def test_numbers_that_leave_no_label_bit_are_refused(detail_bits, blobs):
    with pytest.raises(ValueError, match="detail_bits must be 'auto' or a number of bits from 0 to n_bits - 1 = 7"):
        small(8, detail_bits=detail_bits).fit(*blobs)


def test_without_labels_auto_is_none_and_a_number_is_refused(blobs):
    X, _ = blobs
    params = hbmp.HBMP(8, detail_bits="auto").get_params(deep=False)
    for facts in (DataFacts(5000), DataFacts(150, n_classes=3)):
        assert resolve(params, facts).detail_bits == 0
    assert resolve(params, DataFacts(5000, n_classes=3)).detail_bits == "auto"
    assert hbmp.HBMP(8, detail_bits="auto", random_state=0).fit(X).detail_bits_ == 0
    for affinity in ("auto", "distance_levels"):
        with pytest.raises(ValueError, match=r"Without labels every bit .* Leave detail_bits at 0, or use 'auto'"):
            small(8, detail_bits=3, affinity=affinity).fit(X)


def test_the_page_of_class_codes_shows_label_bits(digits, model):
    X, y = digits
    shown = class_codes(hbmp.Database.build(model, X[:50], labels=y[:50]))
    assert np.shape(shown["codes"]) == (10, 22)
    label = model.codebook_.codes
    expected = hamming.distances(label, label, model.bit_weights_[:22])
    np.testing.assert_allclose(shown["distances"], expected, atol=1e-3)


def test_a_prefix_of_an_experiment_may_end_among_the_details(digits, model):
    X, _ = digits
    codes = Codes(model.transform(X[:20]), model.transform(X[:30]), model.bit_weights_, None, {}, {})
    for n_bits in (12, 22, 28):
        cut = first_bits(codes, model, n_bits)
        assert cut.database.shape == (30, n_bits)
        np.testing.assert_array_equal(cut.bit_weights, model.weights_for(n_bits))
        assert cut.facts["relative_residual"] == model.codebook_.relative_residuals[min(n_bits, 22)]


@pytest.fixture(scope="module")
def pictures(digits):
    """The same digits as pictures, and a network on them with detail bits."""
    X, y = digits
    images = hbmp.Images(np.repeat((X * 15).astype(np.uint8).reshape(-1, 8, 8, 1), 3, axis=3))
    network = Network("tiny", epochs=8, augmentation="none", batch_size=64, lr=3e-3, backbone_lr=3e-3, device="cpu")
    model = small(32, detail_bits=16, function=network).fit(images[TRAINED], y[TRAINED])
    return images, y, model


def test_details_of_a_network_come_from_the_layer_before_its_head(pictures):
    images, _, model = pictures
    scores, features = model.function_.project_with_features(images)
    np.testing.assert_allclose(scores, model.function_.project(images), atol=1e-4)
    head = [model.function_.weights_[f"head.{name}"] for name in ("weight", "bias")]
    np.testing.assert_allclose(features @ head[0].T + head[1], scores, atol=1e-3)
    codes = model.transform(images)
    np.testing.assert_array_equal(hamming.signs(model.project(images)), codes)
    expected = model.encoder_.detail.project(features, codes[:, :16].astype(np.float32))
    np.testing.assert_array_equal(codes[:, 16:], hamming.signs(expected))


def test_a_network_tells_items_of_a_class_apart(pictures):
    images, y, model = pictures
    codes = model.transform(images)
    features = model.function_.project_with_features(images)[1]
    labels = {"query_labels": y[QUERIES], "database_labels": y[INDEXED]}

    def recall(n_bits):
        task = codes[QUERIES, :n_bits], codes[INDEXED, :n_bits], features[QUERIES], features[INDEXED]
        return metrics.neighbour_recall(*task, bit_weights=model.weights_for(n_bits), ties="average", **labels)

    assert metrics.self_first_share(codes[INDEXED]) > 2 * metrics.self_first_share(codes[INDEXED, :16])
    assert recall(32) > 1.5 * recall(16)


def test_a_saved_network_has_the_same_details(pictures, tmp_path):
    images, _, model = pictures
    model.save(tmp_path / "model")
    loaded = hbmp.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(images[:200]), model.transform(images[:200]))
    assert loaded.detail_bits_ == 16
    assert len(loaded.plan_.unexplained) == 3


def test_a_network_takes_an_eighth_of_long_codes_and_as_many_extra_bits_as_before():
    params = hbmp.HBMP(32, detail_bits="auto").get_params(deep=False)
    many = DataFacts(5000, images=True, n_classes=10)
    plan = resolve(params, many)
    assert (plan.detail_bits, plan.n_label_bits, plan.detail_total) == (4, 28, TIE_BREAKING)
    assert plan.n_label_bits + plan.extra_bits == 48
    assert resolve({**params, "n_bits": 31}, many).detail_bits == 0
    assert resolve({**params, "detail_bits": 0}, many).extra_bits == 16
