"""What HBMP adds to the contract of every method: neighbourhoods, codes for labels, the published variant, files."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

import hbmp
from hbmp.affinities import Centred, DistanceLevels, LabelOverlap, MeanFeatures, SameClass, SharedLabels
from hbmp.functions import MLP, Linear
from hbmp.methods import _candidates, _held_out
from hbmp.methods import hbmp as hbmp_file

FAST = Linear(epochs=3)


def small(n_bits=8, **settings):
    return hbmp.HBMP(n_bits, **{"function": FAST, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(90, n_features=6, centers=4, random_state=1)
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def label_rows(blobs):
    """Label sets over six labels: one of the class and some at random, but never label 5 with label 0."""
    rows = (np.random.default_rng(0).random((90, 6)) < 0.2).astype(np.uint8)
    rows[np.arange(90), blobs[1]] = 1
    rows[rows[:, 0] == 1, 5] = 0
    return rows


def affinity_behind(model):
    return model.codebook_.affinity


def test_auto_affinity_follows_the_labels(blobs, label_rows):
    X, y = blobs
    labels_alone = small(feature_share=0)
    assert isinstance(affinity_behind(labels_alone.fit(X, y)), SameClass)
    assert isinstance(affinity_behind(labels_alone.fit(X, y.astype(str))), SameClass)
    assert isinstance(affinity_behind(labels_alone.fit(X, label_rows)), SharedLabels)
    assert isinstance(affinity_behind(labels_alone.fit(X, sparse.csr_matrix(label_rows))), SharedLabels)
    assert isinstance(affinity_behind(small(affinity="label_overlap").fit(X, label_rows)), LabelOverlap)


def test_features_speak_in_an_auto_affinity(blobs, label_rows):
    X, y = blobs
    for labels, base in ((y, SameClass()), (label_rows, SharedLabels()), (sparse.csr_matrix(label_rows), None)):
        mixed = affinity_behind(small(feature_share=0.3).fit(X, labels))
        expected = MeanFeatures(base or SharedLabels(), share=0.3).fit(X, labels)
        np.testing.assert_allclose(mixed.matrix(), expected.matrix(), atol=1e-6)


def test_labels_vote_with_the_codes_of_their_items(blobs):
    """A score is the mean of two log-odds: the function's own, and those of the code that its label scores expect."""
    X, y = blobs
    model = small(12, label_share=0.4).fit(X, y)
    outputs = model.function_.project(X)
    assert outputs.shape == (90, 12 + 4)
    for row, score in zip(outputs[:9].astype(float), model.project(X[:9]), strict=True):
        odds = np.exp(row[12:])
        expected = sum(p * code for p, code in zip(odds / odds.sum(), model.codebook_.codes.astype(float), strict=True))
        votes = np.log((1 + expected) / (1 - expected)).clip(-np.log(1999), np.log(1999))
        np.testing.assert_allclose(score, 0.6 * row[:12] + 0.4 * votes, atol=1e-4)


def test_label_sets_vote_as_often_as_they_occur(blobs, label_rows):
    X, _ = blobs
    model = small(12, label_share=1).fit(X, label_rows)
    sets, counts = np.unique(label_rows, axis=0, return_counts=True)
    for row, score in zip(model.function_.project(X[:9])[:, 12:].astype(float), model.project(X[:9]), strict=True):
        likelihoods = [
            np.prod([1 / (1 + np.exp(-z if on else z)) for z, on in zip(row, labels, strict=True)]) * count**0.5
            for labels, count in zip(sets, counts, strict=True)
        ]
        expected = likelihoods @ model.codes_for(sets).astype(float) / np.sum(likelihoods)
        np.testing.assert_allclose(np.tanh(score / 2), expected.clip(-0.999, 0.999), atol=1e-4)


def test_no_votes_where_they_are_not_wanted_or_not_possible(blobs, monkeypatch):
    X, y = blobs
    monkeypatch.setattr(_held_out, "MOST_LABELS", 3)
    for model in (small(), small(label_share=0), small(function=hbmp.functions.Trees(n_trees=2))):
        model.fit(X, y)
        assert model.label_share_ == 0
        assert model.function_.project(X).shape == (90, 8)


def test_shares_are_chosen_on_instances_held_out(monkeypatch):
    X, y = make_blobs(400, n_features=5, centers=6, cluster_std=4.0, random_state=2)
    X, seen = X.astype(np.float32), []
    teach = hbmp_file.teach

    def watched(function, rows, lessons, *rest, **named):
        seen.append((len(rows), sum(lesson.codes.shape[1] for lesson in lessons)))
        teach(function, rows, lessons, *rest, **named)

    monkeypatch.setattr(hbmp_file, "teach", watched)
    model = small(12).fit(X, y)
    assert seen == [(320, 4 * 12), (400, 12)]  # the bits of four code books, then those of the best
    assert model.feature_share_ in (0.3, 0.5, 0.7, 0.85)
    assert model.label_share_ in (0, 0.25, 0.5, 0.75)
    assert model.weight_share_ in (0, 0.5, 1)
    seen.clear()
    model = small(12, feature_share=0.6, label_share=0.25, weight_share=1).fit(X, y)
    assert seen == [(400, 12)]
    assert (model.feature_share_, model.label_share_, model.weight_share_) == (0.6, 0.25, 1)
    label_sets = np.eye(6, dtype=int)[y]
    seen.clear()
    model = small(12).fit(X, label_sets)
    assert seen == [(320, 3 * 12), (400, 12)]  # of three plans
    assert (model.feature_share_, model.centre_share_) in ((0.5, 0), (0.5, 0.25))
    seen.clear()
    monkeypatch.setattr(_candidates, "MOST_ITEMS", 5)
    assert small(12).fit(X, label_sets).centre_share_ == 0
    assert seen == [(320, 12), (400, 12)]


def test_a_constant_is_free_where_it_is_asked_for(label_rows, blobs):
    X, _ = blobs
    assert small(intercept=True).fit(X, label_rows).codebook_.intercept != 0
    assert small(intercept=True, feature_share=0).fit(X, label_rows).codebook_.intercept != 0
    for settings in ({}, {"intercept": False}, {"feature_share": 0}, {"scheme": "constant"}):  # too few to choose by
        assert small(**settings).fit(X, label_rows).codebook_.intercept == 0


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("n_rows", [150, 300])
def test_classes_as_rows_of_labels_are_as_good_as_classes(n_classes, n_rows):
    """No two rows share a label, so a constant alone would explain the affinity; it must not be what is chosen."""
    X, y = make_blobs(n_rows, n_features=8, centers=n_classes, cluster_std=0.5, random_state=4)
    X, rows = X.astype(np.float32), np.eye(n_classes, dtype=int)[y]
    model = small(12).fit(X, rows)
    assert (model.bit_weights_ > 1e-3).any()
    codes = model.transform(X)
    found = hbmp.metrics.mean_average_precision(codes, codes, y, y, bit_weights=model.bit_weights_, ties="average")
    assert found > 0.95


def test_equal_weights_are_never_negative():
    np.testing.assert_allclose(_held_out.shrink(np.array([2, -3, 0.5]), 0), 5.5 / 3)
    np.testing.assert_allclose(_held_out.shrink(np.zeros(3), 0), 1)
    np.testing.assert_allclose(_held_out.shrink(np.array([1.0, 3.0]), 0.5), [1.5, 2.5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"centre_share": "much"}, "centre_share must be 'auto' or lie between 0 and 1, found 'much'"),
        ({"label_share": 2}, "label_share must be 'auto' or lie between 0 and 1, found 2"),
        ({"intercept": "yes"}, "intercept must be 'auto', True or False, found 'yes'"),
    ],
)
def test_shares_that_are_none_are_refused(settings, message, blobs):
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(*blobs)


def test_a_centre_share_is_taken_off_the_labels_part(blobs, label_rows):
    X, _ = blobs
    model = small(feature_share=0.3, centre_share=0.6).fit(X, label_rows)
    expected = MeanFeatures(Centred(share=0.6), share=0.3).fit(X, label_rows)
    np.testing.assert_allclose(affinity_behind(model).matrix(), expected.matrix(), atol=1e-6)
    assert (model.feature_share_, model.centre_share_) == (0.3, 0.6)
    model = small(feature_share=0, centre_share=0.6).fit(X, label_rows)
    np.testing.assert_allclose(
        affinity_behind(model).matrix(), Centred(share=0.6).fit(X, label_rows).matrix(), atol=1e-6
    )
    assert (model.feature_share_, model.centre_share_) == (0, 0.6)


def test_the_best_of_a_trial_is_what_retrieves_best():
    """Votes that are right beat bits that are noise; weights that silence a broken bit are taken, others are not."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 300)
    codes = np.array([[1, 1, 1], [1, -1, 1], [-1, 1, 1], [-1, -1, 1]])[labels].astype(float)
    noise = rng.standard_normal((300, 3))
    good, bad = (3 * noise, 0.9 * codes), (codes * 9, noise)
    parts = (labels[:150], labels[150:])
    trials = {}
    for name, (bits, votes) in {"votes": good, "bits": bad}.items():
        trials[name] = _held_out.Trial((bits[:150], votes[:150]), (bits[150:], votes[150:]), *parts)
    assert trials["votes"].best(np.ones(3))[1:] == (0.75, 0)
    assert trials["bits"].best(np.ones(3))[1] == 0
    books = [trials["votes"], trials["bits"]]
    assert _held_out.choose(books, [np.ones(3)] * 2, label_shares=(0.0,)) == _held_out.Shares(1, 0.0, 0.0)
    broken = codes.copy()
    broken[:, 2] = noise[:, 2]
    trial = _held_out.Trial((broken[:150], broken[:150]), (broken[150:], broken[150:]), *parts)
    assert trial.best(np.array([1, 1, 0.1]))[2] > 0
    assert trial.best(np.array([0.1, 1, 1]))[2] == 0


def test_weights_lie_between_equal_ones_and_the_pursuits(blobs):
    X, y = blobs
    found = small(16, weight_share=1).fit(X, y).bit_weights_
    np.testing.assert_allclose(found, small(16, weight_share=1).fit(X, y).codebook_.weights)
    np.testing.assert_allclose(small(16, weight_share=0).fit(X, y).bit_weights_, found.mean())
    half = small(16, weight_share=0.5).fit(X, y)
    np.testing.assert_allclose(half.bit_weights_, (found + found.mean()) / 2)
    prefix = half.codebook_.weights_for(5)
    np.testing.assert_allclose(half.weights_for(5), (prefix + prefix.mean()) / 2)


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
    codes = model.codes_for([2, 99, -7])
    np.testing.assert_array_equal(codes[0], model.codebook_.codes[2])
    assert set(np.unique(codes)) <= {-1, 1}
    best = _least_squares_code(model, -np.ones(4))  # a class apart from all four
    assert _cost(model, codes[1], -np.ones(4)) == pytest.approx(_cost(model, best, -np.ones(4)))
    with pytest.raises(ValueError, match=r"knows classes like .*found .*'bee'"):
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
    with pytest.raises(ValueError, match="knows 6 labels; found rows of 5"):
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
    assert hbmp.HBMP.paper == "Cakir, He & Sclaroff, ECCV 2018"
    assert isinstance(hbmp.HBMP.paper, str)
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
        "centre_share": 0,
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
        (lambda X, y: (X, np.zeros(90, int)), r"y holds one class only \(.*0.*\); codes need at least two"),
        (lambda X, y: (X, np.where(y == 1, np.nan, y)), "y holds NaN or infinity"),
        (lambda X, y: (X, np.stack([y, y], axis=1)), "every value is 0 or 1; found .*For one class an instance"),
        (lambda X, y: (X, np.ones((90, 3), int)), "found 1 item; a neighbourhood needs at least two"),
        (lambda X, y: (X, np.ones((90, 2, 2))), r"y must hold one class an instance, shape \(n,\)"),
        (lambda X, y: (X, 3), r"y has shape \(\)"),
        (lambda X, y: (np.ones((90, 6)), None), "All instances are the same"),
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

    monkeypatch.setattr("safetensors.numpy.save_file", out_of_space)
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
    (folder / "model.json").write_text(json.dumps(content))


@pytest.mark.parametrize("name", ["os:system", "subprocess:Popen", "hbmpx.evil:Model", "sklearn.svm:SVC"])
def test_a_class_from_elsewhere_is_refused(name, copied):
    rewrite(copied, lambda content: content["model"].update({"class": name}))
    with pytest.raises(ValueError, match=f"asks for {name}, which is not part of hbmp; it is not loaded"):
        hbmp.load(copied)


def test_a_newer_format_is_refused(copied):
    rewrite(copied, lambda content: content.update({"format": 3}))
    with pytest.raises(ValueError, match=r"was saved in format 3; this version reads up to 1\. Upgrade hbmp\."):
        hbmp.load(copied)


@pytest.mark.parametrize("name", ["arrays.safetensors", "model.json"])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.95])
def test_a_file_cut_short_is_refused_in_one_sentence(name, share, copied):
    whole = (copied / name).read_bytes()
    (copied / name).write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ValueError, match=r"cannot be read as a model .* it may be cut short\. Save it again\."):
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
        '{"format": 1, "model": {"class": "hbmp.report:write", "params": {}, "state": {}}}',
        '{"format": 1, "model": {"class": "hbmp.nowhere:Thing", "params": {}, "state": {}}}',
        '{"format": 1, "model": {"class": "hbmp.functions.linear:Linear", "params": {"depth": 3}, "state": {}}}',
        '{"format": 1, "model": {"class": "hbmp.losses:NAMES", "params": {}, "state": {}}}',
    ],
)
def test_a_model_json_that_makes_no_sense_is_refused_in_one_sentence(content, blobs, tmp_path):
    hbmp.HBMP(4, function=Linear(epochs=1), random_state=0).fit(*blobs).save(tmp_path / "model")
    (tmp_path / "model" / "model.json").write_text(content)
    with pytest.raises(ValueError, match=r"Save it again|not a part models are made of"):
        hbmp.load(tmp_path / "model")


def test_target_codes_of_labels_alone_have_the_constant_that_is_asked_for(label_rows):
    affinity = SharedLabels().fit(None, label_rows)
    assert small(intercept=True).infer(affinity, label_rows, 0).intercept != 0
    assert small().infer(affinity, label_rows, 0).intercept == 0
