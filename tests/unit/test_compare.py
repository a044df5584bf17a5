"""Comparisons: one split for all, no query seen in fitting, scores that a direct computation gives, failures told."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import hbmp
from hbmp import metrics
from hbmp._core.seeds import as_generator
from hbmp.evaluation.choice import MethodRun, build, learning_rates, settings_to_try
from hbmp.evaluation.comparison import Comparison
from hbmp.evaluation.trial import draw_evenly, draw_split, trial_of
from hbmp.functions import Linear
from hbmp.hasher import Hasher

X, Y = (part[:400] for part in load_digits(return_X_y=True))
SETS = np.eye(10, dtype=int)[Y]
SETS[::3, 0] = 1
QUIET = {"progress": False, "device": "cpu"}


class Recorder(Hasher):
    """Random planes that remember what they were fitted on; `scale` changes nothing and `broken` raises."""

    seen: list = []
    search = {"shift": [0.0, 50.0, 100.0]}

    def __init__(self, n_bits=8, *, shift=0.0, random_state=None):
        self.n_bits = n_bits
        self.shift = shift
        self.random_state = random_state

    def _fit(self, X, y):
        type(self).seen.append((X, y, self.shift))
        self.mean_ = X.mean(axis=0)
        self.planes_ = as_generator(self.random_state).standard_normal((X.shape[1], self.n_bits))

    def _project(self, X):
        return (X - self.mean_ + self.shift) @ self.planes_


class Broken(Hasher):
    """Fails as a defect would."""

    def __init__(self, n_bits=8):
        self.n_bits = n_bits

    def _fit(self, X, y):
        raise ZeroDivisionError("nothing to divide by")


@pytest.fixture(autouse=True)
def forget():
    Recorder.seen = []


def rows_of(values) -> set[bytes]:
    return {np.float32(row).tobytes() for row in values}


@pytest.mark.parametrize("labels", [Y, SETS, None], ids=["classes", "label sets", "no labels"])
def test_scores_are_what_the_metrics_say(labels):
    """Split, fit, codes and every reading once more by hand."""
    settings = {"function": Linear(epochs=2), "max_items": 100, "weight_share": 1}
    estimator = hbmp.HBMP(12, **settings)
    found = hbmp.compare(X, labels, methods={"linear": estimator}, bits=[12], queries=40, train=200, seed=3, **QUIET)
    (row,) = found.rows
    train, query, database = found.split.train, found.split.query, found.split.database
    model = hbmp.HBMP(12, **settings, random_state=3)
    model.fit(X[train], None if labels is None else labels[train])
    codes = model.transform(X[query]), model.transform(X[database])
    if labels is None:
        distances = np.linalg.norm(X[train][:, None] - X[train], axis=2)[np.triu_indices(len(train), 1)]
        thresholds = np.percentile(distances, (2, 5, 10, 20))
        relevant = {"relevance": metrics.DistanceLevels(X[query], X[database], thresholds, (10, 5, 2, 1))}
    else:
        relevant = {"query_labels": labels[query], "database_labels": labels[database]}
    graded = {"classes": "", "label sets": "ndcg-shared", "distances": "ndcg-scaled"}[found.facts["data"]["labels"]]
    gain = {"gain": graded.removeprefix("ndcg-")}
    for reading, weights in (("", None), (".weighted", model.bit_weights_)):
        for ending, ties in (("", "database"), (".tie-aware", "average")):
            options = {**relevant, "bit_weights": weights, "ties": ties}
            expected = metrics.mean_average_precision(*codes, **options)
            assert row.scores[f"map{reading}{ending}"] == pytest.approx(expected, abs=1e-9)
            if graded:
                expected = metrics.ndcg(*codes, **options, **gain)
                assert row.scores[f"{graded}{reading}{ending}"] == pytest.approx(expected, abs=1e-9)
    assert row.score() == row.scores["map.weighted.tie-aware"]
    assert len(row.scores) == (8 if graded else 4)


def test_models_kept_are_those_that_were_scored():
    found = hbmp.compare(X, Y, methods=["pca_sign", "itq"], bits=(4, 8), queries=60, keep=["itq"], **QUIET)
    assert set(found.models) == {("itq", 4), ("itq", 8)}
    queries, database = found.split.query, found.split.database
    for row in found.rows[2:]:
        model = found.models[row.method, row.bits]
        codes = model.transform(X[queries]), model.transform(X[database]), Y[queries], Y[database]
        assert metrics.mean_average_precision(*codes) == pytest.approx(row.scores["map"])
        curve = metrics.precision_recall_curve(*codes, n_points=30)
        np.testing.assert_allclose(row.curve["precision"], curve.precision, atol=1e-4)
        np.testing.assert_allclose(row.curve["recall"], curve.recall, atol=1e-4)
    with pytest.raises(ValueError, match=r"keep= names 'ksh', which is not compared\. Choose from itq"):
        hbmp.compare(X, Y, methods=["itq"], keep=["ksh"], **QUIET)


def test_a_cutoff_is_kept_and_named():
    found = hbmp.compare(X, Y, methods=["pca_sign"], bits=[8], cutoff=20, **QUIET)
    (row,) = found.rows
    model = hbmp.get_method("pca_sign")(8, random_state=0).fit(X[found.split.train])
    parts = [found.split.query, found.split.database]
    expected = metrics.mean_average_precision(
        *(model.transform(X[rows]) for rows in parts), *(Y[p] for p in parts), cutoff=20
    )
    assert row.scores["map@20"] == pytest.approx(expected, abs=1e-9)
    assert found.measure == "map@20"
    assert "over the first 20 items" in found.caption


@pytest.mark.parametrize("unseen", [False, True])
@pytest.mark.parametrize("budget", [0, 3])
def test_no_query_is_ever_fitted_on(unseen, budget):
    """Not in the fit, and not while settings are chosen."""
    settings = {"queries": 0.2, "train": 150, "unseen": unseen, "validation": budget}
    found = hbmp.compare(X, Y, methods={"mine": Recorder()}, bits=[8], **settings, **QUIET)
    queries = rows_of(X[found.split.query])
    assert len(queries) == 80
    assert len(Recorder.seen) == budget + 1
    for features, _, _ in Recorder.seen:
        assert not rows_of(features) & queries
    features, labels, _ = Recorder.seen[-1]
    np.testing.assert_array_equal(features, X[found.split.train])
    np.testing.assert_array_equal(labels, Y[found.split.train])
    assert len(features) == 150
    searched = rows_of(X[found.split.database])
    assert not searched & queries
    assert len(searched & rows_of(features)) == (0 if unseen else 150)


def test_settings_are_chosen_on_training_rows_within_the_budget():
    """A shift of the rows makes bits constant, so no shift is found best; the table says what was tried."""
    found = hbmp.compare(X, Y, methods={"mine": Recorder(shift=50.0)}, bits=[16], validation=4, **QUIET)
    (row,) = found.rows
    assert [shift for _, _, shift in Recorder.seen[:1]] == [50.0]  # as given first, and not once more
    assert sorted(shift for _, _, shift in Recorder.seen[1:3]) == [0.0, 100.0]
    assert row.settings == {"shift": 0.0}
    assert row.tried == 3
    assert len(Recorder.seen) == 5
    assert [shift for _, _, shift in Recorder.seen[-2:]] == [50.0, 0.0]  # on all training rows: as given, as chosen
    assert row.default_score() < row.score()
    heading, line = (text.split(",") for text in found.to_csv().splitlines())
    assert float(dict(zip(heading, line, strict=False))["with_defaults"]) == row.default_score()
    assert f"| {row.default_score():.3f} |" in " ".join(found.to_markdown().split())
    held_out = len(found.split.train) - len(Recorder.seen[0][0])
    assert held_out == round(0.2 * len(found.split.train))
    assert "up to 4 per method from its own grid" in found.caption
    assert "shift=0.0" in found.to_markdown()
    Recorder.seen = []
    hbmp.compare(X, Y, methods={"mine": Recorder()}, bits=[16], validation=2, **QUIET)
    assert len(Recorder.seen) == 3


def test_a_method_of_the_package_tries_its_grid_and_says_what_it_chose():
    """Once more by hand: the defaults and two others, on the same rows, and the best of them."""
    found = hbmp.compare(X, Y, methods=["cca_itq", "lsh"], bits=[8], validation=3, seed=1, **QUIET)
    row, without_grid = found.rows
    assert row.tried == 3
    assert (without_grid.tried, without_grid.settings) == (0, {})
    trial = trial_of(X, Y, found.split).within_training(1)
    method = hbmp.get_method("cca_itq")
    candidates = settings_to_try(MethodRun("cca_itq", "cca_itq", 8, seed=1, device="cpu", budget=3), 3)
    assert candidates[0] == {}
    strengths = [method(**settings).regularization for settings in candidates]
    assert len(set(strengths)) == 3
    scores = []
    for settings in candidates:
        model = method(8, random_state=1, **settings).fit(trial.train, trial.train_labels)
        codes = model.transform(trial.queries), model.transform(trial.database)
        scores.append(trial.scores(*codes, model.bit_weights_)["map.tie-aware"])
    assert row.settings == candidates[int(np.argmax(scores))] != {}
    assert f"regularization={row.settings['regularization']}" in found.to_markdown()


def test_deep_methods_try_learning_rates_with_the_best_settings_so_far():
    """Two of the budget: a third and three times the usual rate of the function that "auto" selects."""
    run = MethodRun("csq", "csq", 8, seed=0, device="cpu", budget=4)
    small, large = learning_rates(run, 100), learning_rates(run, 20_000)
    assert [rate["function"] for rate in small] == [
        ["kernel", {"linear": ["linear", {"lr": lr}]}] for lr in (1e-3, 9e-3)
    ]
    usual = hbmp.functions.MLP().lr
    assert [rate["function"][1]["lr"] for rate in large] == pytest.approx([usual / 3, usual * 3], rel=1e-2)
    assert build(run, small[0]).function.linear.lr == 1e-3
    assert learning_rates(MethodRun("itq", "itq", 8, seed=0, device="cpu", budget=4), 100) == []
    fixed = hbmp.methods.CSQ(function=Linear(epochs=2))  # a function of the user's own is left alone
    assert learning_rates(MethodRun("mine", fixed, 8, seed=0, device="cpu", budget=4), 100) == []


def test_a_learning_rate_is_chosen_where_it_helps(monkeypatch):
    """The usual rate is made far too small, so that three times as much is best."""
    from hbmp.methods._shared import deep

    def slow(self, n_rows, factor):
        return {"function": ["linear", {"epochs": 3, "lr": 1e-2 if factor > 1 else 1e-7}]}

    monkeypatch.setattr(deep.DeepHasher, "with_learning_rate", slow)
    method = hbmp.methods.DPN(function=Linear(epochs=3, lr=1e-7))
    (row,) = hbmp.compare(X, Y, methods={"mine": method}, bits=[16], validation=4, **QUIET).rows
    assert row.tried == 4
    assert row.settings["function"][1]["lr"] == 1e-2
    assert row.score() > row.default_score()


def test_a_method_that_fails_says_why_and_the_others_go_on():
    methods = {"pca_sign": "pca_sign", "broken": Broken(), "planes": Recorder()}
    found = hbmp.compare(X, Y, methods=methods, bits=(8, 100), **QUIET)
    by_cell = {(row.method, row.bits): row for row in found.rows}
    reason = by_cell["pca_sign", 100].error
    assert "n_bits=100 needs 100 features" in reason
    assert by_cell["broken", 8].error == "ZeroDivisionError: nothing to divide by"
    assert not by_cell["pca_sign", 100].scores
    assert by_cell["pca_sign", 100].score() is None
    for cell in (("pca_sign", 8), ("planes", 8), ("planes", 100)):
        assert 0 < by_cell[cell].score() < 1
        assert not by_cell[cell].error
    (line,) = [line for line in found.to_markdown().splitlines() if line.startswith("| pca_sign |  100 |")]
    assert line.endswith(f"{reason} |")
    assert found.ranking[-1] == "broken"
    parsed = {(line["method"], line["bits"]): line for line in csv.DictReader(io.StringIO(found.to_csv()))}
    assert parsed["pca_sign", "100"]["error"] == reason
    assert parsed["pca_sign", "100"]["map"] == ""
    assert float(parsed["planes", "8"]["map"]) == by_cell["planes", 8].scores["map"]


def test_the_same_seed_gives_the_same_table_and_another_seed_another():
    def scores(seed, **more):
        methods = {"pca_sign": "pca_sign", "planes": Recorder()}
        found = hbmp.compare(X, Y, methods=methods, bits=(4, 8), seed=seed, **{**QUIET, **more})
        return [(row.method, row.bits, row.scores) for row in found.rows], found.split.checksum

    assert scores(0) == scores(0)
    assert scores(0)[1] != scores(1)[1]
    assert scores(0)[0] != scores(1)[0]


@pytest.mark.slow
def test_several_at_a_time_give_the_same_rows():
    alone = hbmp.compare(X, Y, methods=["pca_sign"], bits=(4, 8, 100), **QUIET)
    together = hbmp.compare(X, Y, methods=["pca_sign"], bits=(4, 8, 100), jobs=2, **QUIET)
    assert [(row.method, row.bits, row.error) for row in together.rows] == [
        (row.method, row.bits, row.error) for row in alone.rows
    ]
    for one, other in zip(alone.rows, together.rows, strict=True):
        assert other.scores == pytest.approx(one.scores, abs=1e-6)


def test_costs_are_measured(tmp_path):
    found = hbmp.compare(X, Y, methods={"pca": "pca_sign", "mine": Recorder()}, bits=[8], **QUIET)
    pca, mine = found.rows
    hbmp.get_method("pca_sign")(8, random_state=0).fit(X[found.split.train]).save(tmp_path / "model")
    assert pca.model_bytes == sum(path.stat().st_size for path in (tmp_path / "model").iterdir())
    assert mine.model_bytes is None  # a class of somebody else's is not saved
    for row in found.rows:
        assert row.fit_seconds > 0
        assert row.encode_rows_per_second > 0


def test_own_queries_leave_all_rows_to_the_database():
    found = hbmp.compare(
        X[50:], Y[50:], query_X=X[:50], query_y=Y[:50], methods={"mine": Recorder()}, bits=[8], **QUIET
    )
    features, _, _ = Recorder.seen[0]
    np.testing.assert_array_equal(features, np.float32(X[50:]))
    model = Recorder(8, random_state=0).fit(X[50:])
    expected = metrics.mean_average_precision(model.transform(X[:50]), model.transform(X[50:]), Y[:50], Y[50:])
    assert found.rows[0].scores["map"] == pytest.approx(expected)
    assert "50 queries as given" in found.caption


def test_without_labels_methods_that_need_them_are_left_out_and_named(monkeypatch):
    monkeypatch.setattr(Broken, "supervised", True)
    monkeypatch.setattr("hbmp.evaluation.comparison.list_methods", lambda: ["pca_sign", "broken"])
    real = hbmp.get_method
    monkeypatch.setattr(
        "hbmp.evaluation.comparison.get_method", lambda name: Broken if name == "broken" else real(name)
    )
    found = hbmp.compare(X, bits=[4], **QUIET)
    assert [row.method for row in found.rows] == ["pca_sign"]
    assert "Left out, because they need labels: broken." in found.caption


def test_the_table_shows_every_score_and_the_caption_what_it_depends_on():
    found = hbmp.compare(
        X, Y, methods={"mine": Recorder(), "pca": "pca_sign"}, bits=(4, 8), name="some digits", **QUIET
    )
    text = found.to_markdown()
    for row in found.rows:
        cells = [
            cell.strip()
            for line in text.splitlines()
            if line.startswith(f"| {row.method} ")
            for cell in line.split("|")
        ]
        assert f"{row.scores['map']:.3f}" in cells
        assert {f"{row.score():.3f}", f"**{row.score():.3f}**"} & set(cells)
    for said in (
        "some digits: 400 rows of 64 features",
        "40 queries drawn evenly over classes",
        "360 other rows",
        "seed 0",
    ):
        assert said in found.caption
    assert found.split.checksum in found.caption
    assert found.facts["machine"]["cpu"] in found.caption
    assert str(found) == found._repr_markdown_() == text
    content = json.loads(found.to_json())
    assert [line["scores"] for line in content["rows"]] == [dict(row.scores) for row in found.rows]
    assert content["split"]["checksum"] == found.split.checksum
    best = max((row for row in found.rows if row.bits == 8), key=lambda row: row.score())
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {best.method} ")][:1]
    assert f"**{best.score():.3f}**" in line


@given(st.integers(1, 60), st.lists(st.integers(0, 5), min_size=60, max_size=90), st.integers(0, 2**31))
def test_draws_are_even_over_classes(count, classes, seed):
    strata = np.array(classes)
    drawn = draw_evenly(count, np.arange(len(strata)), strata, np.random.default_rng(seed))
    assert len(np.unique(drawn)) == count
    for stratum, total in zip(*np.unique(strata, return_counts=True), strict=True):
        share = count * total / len(strata)
        assert abs((strata[drawn] == stratum).sum() - share) <= 1 + 1e-9


def test_every_row_is_drawn_about_as_often():
    counts = np.zeros(30)
    for seed in range(600):
        counts[draw_evenly(10, np.arange(30), np.arange(30) % 4, np.random.default_rng(seed))] += 1
    assert abs(counts / 600 - 1 / 3).max() < 0.08  # four standard deviations


def test_parts_of_a_split_are_disjoint_where_they_should_be():
    split = draw_split(100, Y[:100], queries=20, train=30, seed=0)
    assert len(np.union1d(split.query, split.database)) == 100
    assert np.isin(split.train, split.database).all()
    split = draw_split(100, Y[:100], queries=20, train=None, unseen=True, seed=0)
    assert [len(part) for part in (split.query, split.train, split.database)] == [20, 40, 40]
    assert len(np.unique(np.concatenate([split.query, split.train, split.database]))) == 100


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"methods": ["pca_sing"]}, r"No method called 'pca_sing'\. Did you mean 'pca_sign'"),
        ({"methods": {"mine": 3}}, "Method 'mine' must be a name or an hbmp estimator, found int"),
        ({"methods": []}, "no methods to compare"),
        ({"bits": [0]}, "A code length must be a whole number of at least 1, found 0"),
        ({"bits": [2.5]}, "A code length must be a whole number"),
        ({"queries": 1.5}, "queries must be a number of rows or a fraction between 0 and 1"),
        ({"queries": 401}, "queries must lie between 1 and the 400 available rows"),
        ({"queries": 399}, "leave nothing to search"),
        ({"train": 0}, "train must lie between 1 and the 360 available rows"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1"),
        ({"query_y": Y}, "query_y= holds the labels of query_X="),
        ({"query_X": X, "query_y": Y, "queries": 3}, "pass one of the two"),
        ({"query_X": X[:, :3], "query_y": Y}, "X has 64 features and query_X 3"),
        ({"query_X": X}, "y and query_y must both be"),
    ],
)
def test_wrong_asking_is_told_before_anything_runs(options, sentence):
    with pytest.raises((ValueError, LookupError), match=sentence):
        hbmp.compare(X, Y, **{"methods": ["pca_sign"], **options}, **QUIET)


@pytest.mark.parametrize(
    ("features", "labels", "sentence"),
    [
        (X[:, 0], Y, "X must be an"),
        (np.where(X > 15, np.nan, X), Y, "X holds NaN or infinity"),
        (X, Y[:5], "There are 400 rows but y has 5"),
    ],
)
def test_wrong_data_are_told_before_anything_runs(features, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        hbmp.compare(features, labels, methods=["pca_sign"], **QUIET)


def test_the_function_stays_reachable_by_its_name():
    assert callable(hbmp.compare)
    assert isinstance(hbmp.compare(X, Y, methods=["pca_sign"], bits=[4], **QUIET), Comparison)
    assert callable(hbmp.compare)
