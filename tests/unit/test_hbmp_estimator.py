"""What HBMP adds to the contract of every method: neighbourhoods, codes for labels, the published variant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from small_models import affinity_behind, small

import hbmp
from hbmp.affinities import DistanceLevels, LabelOverlap, SameClass, SharedLabels
from hbmp.functions import MLP, Linear


def test_auto_affinity_follows_the_labels(blobs, label_rows):
    X, y = blobs
    labels_alone = small(feature_share=0)
    assert isinstance(affinity_behind(labels_alone.fit(X, y)), SameClass)
    assert isinstance(affinity_behind(labels_alone.fit(X, y.astype(str))), SameClass)
    assert isinstance(affinity_behind(labels_alone.fit(X, label_rows)), SharedLabels)
    assert isinstance(affinity_behind(labels_alone.fit(X, sparse.csr_matrix(label_rows))), SharedLabels)
    assert isinstance(affinity_behind(small(affinity="label_overlap").fit(X, label_rows)), LabelOverlap)


def test_without_labels_bits_rebuild_the_features(blobs, tmp_path):
    X, _ = blobs
    model = hbmp.HBMP(24, random_state=0).fit(X)  # more bits than the six features
    codes = model.transform(X)
    np.testing.assert_array_equal(codes, model.codebook_.codes)
    assert len(np.unique(model.bit_weights_)) > 1
    near = np.argsort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1:6]
    agreement = (codes * model.bit_weights_) @ codes.T.astype(float)
    found = np.argsort(-agreement, axis=1)[:, 1:11]
    assert np.mean([len(set(a) & set(b)) / 5 for a, b in zip(near, found, strict=True)]) > 0.5  # chance: 0.11
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(hbmp.load(tmp_path / "model").project(X), model.project(X))
    with pytest.raises(ValueError, match="fitted without labels; `transform` gives the code"):
        model.codes_for([0])


def test_distance_levels_make_neighbours_of_those_near_in_features(blobs):
    X, _ = blobs
    model = small(16).fit(X)
    expected = hbmp.infer_codes(
        DistanceLevels().fit(X), 16, tol=0, weighting="ridge", ridge=0.1, random_state=_drawn_seed(0)
    )
    np.testing.assert_array_equal(model.codebook_.codes, expected.codes)
    np.testing.assert_allclose(model.bit_weights_, expected.weights)
    with pytest.raises(ValueError, match="fitted without labels; `transform` gives the code"):
        model.codes_for([0])


def _drawn_seed(random_state):
    return int(np.random.default_rng(random_state).integers(2**31))


def test_targets_are_the_codes_of_each_instances_item(blobs):
    X, y = blobs
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    model = small(12, function=MLP(hidden=(32,), epochs=60), feature_share=0, label_share=0).fit(X, names)
    targets = model.codes_for(names)
    assert targets.dtype == np.int8
    assert targets.shape == (90, 12)
    assert len(np.unique(targets, axis=0)) == 4
    assert model.unmatched_ == pytest.approx((model.transform(X) != targets).mean())
    assert model.unmatched_ < 0.02


def test_codes_for_classes_never_seen(blobs):
    X, y = blobs
    model = small(12, feature_share=0).fit(X, y)
    codes = model.codebook_.encode([2, 99, -7])
    np.testing.assert_array_equal(codes[0], model.codebook_.codes[2])
    assert set(np.unique(codes)) <= {-1, 1}
    best = _least_squares_code(model, -np.ones(4))  # a class apart from all four
    assert _cost(model, codes[1], -np.ones(4)) == pytest.approx(_cost(model, best, -np.ones(4)))
    with pytest.raises(ValueError, match=r"fitted on classes like .*found .*'bee'"):
        model.codes_for(["bee"])


def test_codes_for_label_sets_never_seen(blobs, label_rows):
    X, _ = blobs
    model = small(10, item_weights=None, feature_share=0).fit(X, label_rows)
    new = np.array([[1, 0, 0, 0, 0, 1], [1, 1, 1, 1, 0, 1]])
    assert (affinity_behind(model).find(new) < 0).all()
    items = affinity_behind(model).features_
    for row, code in zip(new, model.codes_for(new), strict=True):
        target = np.where(items @ row > 0, 1.0, -1.0)
        best = _cost(model, _least_squares_code(model, target), target)
        assert best <= _cost(model, code, target) <= 1.05 * best
    with pytest.raises(ValueError, match="fitted on 6 labels; found rows of 5"):
        model.codes_for(np.zeros((1, 5), int))


def _cost(model, code, target):
    book = model.codebook_
    return sum(
        (wanted - sum(w * a * b for w, a, b in zip(book.weights, code, item, strict=True))) ** 2
        for wanted, item in zip(target, book.codes.astype(float), strict=True)
    )


def _least_squares_code(model, target):
    """The best of all codes, by trying them."""
    book = model.codebook_
    every = 1 - 2 * ((np.arange(2**book.n_bits)[:, None] >> np.arange(book.n_bits)) & 1)
    costs = ((target - (every * book.weights) @ book.codes.T.astype(float)) ** 2).sum(axis=1)
    return every[costs.argmin()]


def test_paper_is_a_citation_and_the_published_variant():
    assert hbmp.HBMP.citation == "Cakir, He & Sclaroff, ECCV 2018"
    model = hbmp.HBMP.paper(24, random_state=5)
    assert type(model) is hbmp.HBMP
    settings = model.get_params()
    published = {
        "n_bits": 24,
        "random_state": 5,
        "scheme": "regress",
        "improve": "resample",
        "restarts": 1,
        "weighting": "least-squares",
        "intercept": False,
        "refine": 0,
        "item_weights": None,
        "feature_share": 0,
        "dither": 0,
        "label_share": 0,
        "weight_share": 1,
        "function__loss": "hinge",
        "function__optimizer": "sgd",
        "function__epochs": 100,
        "function__batch_size": 256,
    }
    assert {name: settings[name] for name in published} == published
    assert isinstance(model.function, Linear)
    assert hbmp.HBMP.paper(8, scheme="constant").scheme == "constant"
    assert hbmp.HBMP.paper(8).function is not hbmp.HBMP.paper(8).function


def test_label_sets_count_as_often_as_they_occur_and_classes_once(blobs):
    X, y = blobs
    labels = np.eye(4, dtype=int)[y]
    labels[:7, 0] = 1
    by_default, counted, equal = (
        small(**settings).fit(X, labels).codebook_.item_weights
        for settings in ({}, {"item_weights": "count"}, {"item_weights": None})
    )
    np.testing.assert_array_equal(by_default, counted)
    assert np.ptp(by_default) > 0
    assert equal is None
    assert small().fit(X, y).codebook_.item_weights is None


def test_constant_scheme_is_plain_hamming(blobs):
    model = small(scheme="constant").fit(*blobs)
    np.testing.assert_array_equal(model.bit_weights_, np.ones(8))
    assert not np.allclose(small().fit(*blobs).bit_weights_, 1)


def test_without_labels_instances_are_sampled_down(blobs):
    X, y = blobs
    sampled = small(max_items=25).fit(X)
    assert sampled.codebook_.codes.shape == (25, 8)
    assert sampled.transform(X).shape == (90, 8)
    again = small(max_items=25).fit(X)
    np.testing.assert_array_equal(sampled.codebook_.codes, again.codebook_.codes)
    assert small(max_items=25).fit(X, y).codebook_.codes.shape == (4, 8)  # classes are few already
    assert small(max_items=90).fit(X).codebook_.codes.shape == (90, 8)


def test_what_is_passed_in_is_what_is_used(blobs):
    X, y = blobs
    affinity, function = SameClass(items="instances"), Linear(epochs=3)
    model = hbmp.HBMP(6, affinity=affinity, function=function, random_state=0).fit(X, y)
    assert model.codebook_.codes.shape == (90, 6)
    assert model.function is function
    assert not hasattr(function, "layers_")
    assert not hasattr(affinity, "n_items_")
    with pytest.raises(LookupError, match=r"No affinity called 'same_clas'\. Did you mean 'same_class'"):
        small(affinity="same_clas").fit(X, y)
    with pytest.raises(LookupError, match=r"No hash function called 'liner'\. Did you mean 'linear'"):
        small(function="liner").fit(X, y)
    with pytest.raises(
        ValueError, match=r"object from hbmp\.affinities, found ndarray\. A matrix .* hbmp\.infer_codes"
    ):
        small(affinity=np.eye(len(X))).fit(X, y)
    with pytest.raises(ValueError, match=r"object from hbmp\.functions, found .*hbmp\.functions\.Linear\(\)"):
        small(function=Linear).fit(X, y)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (X, y[:-3]), r"X has 90 rows but y has shape \(87,\); every row needs its label"),
        (lambda X, y: (np.where(np.arange(6) == 2, np.nan, X), y), "NaN"),
        (lambda X, y: (np.where(np.arange(6) == 2, np.inf, X), y), "infinity"),
        (lambda X, y: (X[0], y), "Expected 2D array, got 1D array"),
        (lambda X, y: (X, np.zeros(90, int)), r"y holds only one class \(.*0.*\); codes need at least two"),
        (lambda X, y: (X, np.where(y == 1, np.nan, y)), "y holds NaN or infinity"),
        (lambda X, y: (X, np.stack([y, y], axis=1)), "every value is 0 or 1; found .*For one class per instance"),
        (lambda X, y: (X, np.ones((90, 3), int)), "found 1 item; a neighbourhood needs at least two"),
        (lambda X, y: (X, np.ones((90, 2, 2))), r"y must hold one class per instance, shape \(n,\)"),
        (lambda X, y: (X, y + 0.5), "Unknown label type: y is continuous, for example"),
        (lambda X, y: (X, 3), r"y has shape \(\)"),
        (lambda X, y: (np.ones((90, 6)), None), "All instances are equal"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(spoil, message, blobs):
    model = small()
    with pytest.raises(ValueError, match=message):
        model.fit(*spoil(*blobs))


def test_other_features_than_in_training_are_refused(blobs):
    model = small().fit(*blobs)
    with pytest.raises(ValueError, match="features"):
        model.transform(blobs[0][:, :5])


def test_target_codes_of_labels_alone_have_the_constant_that_is_asked_for(label_rows):
    assert small(intercept=True).infer(label_rows).intercept != 0
    assert small().infer(label_rows).intercept == 0


def test_unknown_classes_and_label_names_are_refused(blobs):
    X, y = blobs
    words = np.array(["ant", "bee", "cat", "dog"])[y]
    model = small().fit(X, words)
    with pytest.raises(ValueError, match="No class 'nonexistent' in the training data, which have 4 classes"):
        model.codes_for(["ant", "nonexistent"])
    with pytest.raises(ValueError, match="No class 9"):
        small().fit(X, y).codes_for([9])
    lists = [[word, "animal"] if word != "cat" else [word] for word in words]
    named = small().fit(X, lists)
    with pytest.raises(ValueError, match="the label 'mouse', which training data do not have"):
        named.codes_for([["mouse"]])


def test_lists_of_label_names_are_label_sets(blobs, tmp_path):
    X, y = blobs
    lists = [["b", "a"] if kind == 0 else ["c"] if kind == 1 else {"a", "d"} for kind in y]
    rows = np.array([[name in labels for name in "abcd"] for labels in lists], dtype=int)
    by_name, by_row = small().fit(X, lists), small().fit(X, rows)
    np.testing.assert_array_equal(by_name.transform(X), by_row.transform(X))
    by_name.save(tmp_path / "model")
    loaded = hbmp.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.codes_for([["a", "b"], ["c"]]), by_row.codes_for([[1, 1, 0, 0], [0, 0, 1, 0]]))


def test_a_column_of_lists_holds_label_sets(blobs):
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    lists = [["a", "b"] if kind == 0 else [f"c{kind}"] for kind in y]
    expected = small().fit(X, lists).transform(X)
    np.testing.assert_array_equal(small().fit(X, pandas.Series(lists)).transform(X), expected)


def test_a_column_of_a_table_holds_classes(blobs):
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    words = np.array(["ant", "bee", "cat", "dog"])[y]
    expected = small().fit(X, words).transform(X)
    np.testing.assert_array_equal(small().fit(X, pandas.DataFrame({"kind": words})).transform(X), expected)


def test_sparse_features_are_features(blobs):
    X, y = blobs
    expected = small().fit(X, y).transform(X)
    model = small().fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(model.transform(sparse.csr_matrix(X)), expected)


def test_bits_have_names(blobs):
    pytest.importorskip("pandas")
    X, y = blobs
    model = small(3).fit(X, y)
    assert list(model.get_feature_names_out()) == ["hbmp0", "hbmp1", "hbmp2"]
    frame = model.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == ["hbmp0", "hbmp1", "hbmp2"]
    assert (frame.dtypes == np.int8).all()
    assert 0 <= model.score(X, y) <= 1


def test_only_real_valued_queries_ask_for_labels(blobs, label_rows, monkeypatch):
    from hbmp.methods.hbmp.label_queries import LabelQueries

    X, _ = blobs
    model = small(label_queries=True).fit(X, label_rows)
    plain = model.transform(X), model.project(X)

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(LabelQueries, "wanted", fail)
    np.testing.assert_array_equal(model.transform(X), plain[0])
    with pytest.raises(AssertionError):
        model.project(X)
