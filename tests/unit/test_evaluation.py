"""An evaluation gives the metrics' own numbers, and what it held out is what it asks with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import hbmp
from hbmp import hamming, metrics
from hbmp.app.settings import make_from_words
from hbmp.evaluation import hold_out

X, Y = (part[:300] for part in load_digits(return_X_y=True))
MODEL = hbmp.get_method("pca_sign")(12, random_state=0).fit(X)


def test_scores_are_the_metrics_own_on_the_rows_held_out():
    split = hold_out(X, Y, queries=0.2, seed=5)
    found = hbmp.evaluate(MODEL, X, Y, queries=0.2, seed=5, cutoff=30, name="some digits")
    np.testing.assert_array_equal(found.split.query, split.query)
    assert len(split.query) == 60
    codes = [MODEL.transform(X[rows]) for rows in (split.query, split.database)]
    for reading, ties in (("", "database"), (".tie-aware", "average")):
        expected = metrics.mean_average_precision(*codes, Y[split.query], Y[split.database], cutoff=30, ties=ties)
        assert found.scores[f"map@30{reading}"] == pytest.approx(expected, abs=1e-9)
    for said in ("some digits: 60 queries drawn evenly over classes", "the 240 other rows", "seed 5", "first 30 items"):
        assert said in found.caption
    assert f"{found.scores['map@30']:.4f}" in found.to_markdown()


def test_lists_of_labels_and_sparse_features_are_what_they_stand_for():
    names = np.array(["open", "round", "straight"])  # columns are sorted by name
    rows = np.stack([np.isin(Y, [2, 3, 5]), np.isin(Y, [0, 6, 8, 9]), np.isin(Y, [1, 4, 7])], axis=1)
    rows[:40, 1] = True
    lists = [names[row].tolist() for row in rows]
    expected = hbmp.evaluate(MODEL, X, rows.astype(int), queries=0.2).scores
    assert hbmp.evaluate(MODEL, sparse.csr_array(X), lists, queries=0.2).scores == expected
    asked = {"queries": 40, "methods": {"model": hbmp.get_method("pca_sign")(4)}, "bits": (4,), "progress": False}
    by_rows, by_lists = hbmp.compare(X, rows.astype(int), **asked), hbmp.compare(sparse.csr_array(X), lists, **asked)
    assert by_lists.rows[0].scores == by_rows.rows[0].scores
    more = [[*labels, "new"] for labels in lists[:50]]
    own = {"query_X": X[:50], "query_y": more}
    found = hbmp.evaluate(MODEL, X[50:], lists[50:], **own).scores["map"]
    assert found == hbmp.evaluate(MODEL, X[50:], rows[50:].astype(int), query_X=X[:50], query_y=rows[:50]).scores["map"]


def test_own_queries_search_all_rows():
    found = hbmp.evaluate(MODEL, X[100:], Y[100:], query_X=X[:100], query_y=Y[:100], note="They were new.")
    expected = metrics.mean_average_precision(MODEL.transform(X[:100]), MODEL.transform(X[100:]), Y[:100], Y[100:])
    assert found.scores["map"] == pytest.approx(expected)
    assert found.caption.endswith("They were new.")
    assert "100 queries as given; the database is the 200 rows" in found.caption


def test_a_score_that_no_query_decides_is_none_in_json():
    """One relevant item, and it is the furthest of all, so that none is found in time."""
    distances = hamming.distances(MODEL.transform(X[50:60]), MODEL.transform(X[:50]))
    labels = np.full(50, "a")
    labels[distances.min(axis=0).argmax()] = "b"
    found = hbmp.evaluate(MODEL, X[:50], labels, query_X=X[50:60], query_y=["b"] * 10, cutoff=1)
    assert np.isnan(found.scores["map@1"])
    assert found.to_json()["scores"]["map@1"] is None


def test_nothing_relevant_at_all_is_told_in_a_sentence():
    with pytest.raises(ValueError, match="No query has anything relevant in the database"):
        hbmp.evaluate(MODEL, X[:50], ["a"] * 50, query_X=X[50:60], query_y=["b"] * 10)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"query_y": Y}, "query_y= holds the labels of query_X="),
        ({"query_X": X, "query_y": Y, "queries": 5}, "pass one of the two"),
        ({"query_X": X[:, :3], "query_y": Y}, "X has 64 features and query_X 3"),
        ({"queries": 0}, "queries must lie between 1 and the 300 available rows"),
    ],
)
def test_wrong_asking_is_told_in_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        hbmp.evaluate(MODEL, X, Y, **options)


def test_settings_are_read_from_words():
    words = ["scheme=constant", "ridge=0.5", 'function=["mlp", {"hidden": [8]}]', "refine=2"]
    model = make_from_words("hbmp", 24, words, seed=7, device="cpu")
    assert (model.n_bits, model.scheme, model.ridge, model.refine, model.random_state) == (24, "constant", 0.5, 2, 7)
    assert isinstance(model.function, hbmp.functions.MLP)
    assert model.function.hidden == [8]


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("scheme", "Settings have the form NAME=VALUE, found 'scheme'"),
        ("shceme=constant", r"hbmp has no setting 'shceme'\. Did you mean 'scheme'\? It has affinity, "),
        ("n_bits=3", "n_bits is set with --bits"),
        ("random_state=3", "random_state is set with --seed"),
    ],
)
def test_wrong_settings_are_told_in_a_sentence(word, sentence):
    with pytest.raises((ValueError, LookupError), match=sentence):
        make_from_words("hbmp", 8, [word], seed=0, device="cpu")
