"""Precision, recall, radius and confidence intervals against double loops."""

import numpy as np
import pytest

from hbmp import metrics


def random_signs(rng, *shape):
    return rng.choice(np.array([-1, 1], np.int8), shape)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def problem(rng):
    """Short codes with many ties; class 0 has no database item."""
    return random_signs(rng, 30, 6), random_signs(rng, 80, 6), rng.integers(0, 4, 30), rng.integers(1, 4, 80)


WEIGHTS = [None, np.array([1.0, 0.5, -0.25, 2.0, 0.75, 1.5])]


def loop_distances(query, database, weights):
    weights = np.ones(database.shape[1]) if weights is None else weights
    return [sum(w for q, u, w in zip(query, item, weights, strict=True) if q != u) for item in database]


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
def test_precision_and_recall_are_the_double_loop(problem, weights):
    queries, database, query_labels, database_labels = problem
    cutoffs = [1, 7, 80, 500]
    precision, recall = [], []
    for query, label in zip(queries, query_labels, strict=True):
        distances = loop_distances(query, database, weights)
        order = sorted(range(80), key=lambda j: (distances[j], j))
        hits = [sum(database_labels[j] == label for j in order[:k]) for k in cutoffs]
        precision.append([count / min(k, 80) for count, k in zip(hits, cutoffs, strict=True)])
        relevant = sum(database_labels == label)
        recall.append([count / relevant if relevant else np.nan for count in hits])
    found = metrics.precision_at(*problem, cutoffs=cutoffs, bit_weights=weights)
    np.testing.assert_allclose(found, np.mean(precision, axis=0), atol=1e-12)
    found = metrics.recall_at(*problem, cutoffs=cutoffs, bit_weights=weights)
    np.testing.assert_allclose(found, np.nanmean(recall, axis=0), atol=1e-12)
    found = metrics.recall_at(*problem, cutoffs=cutoffs, bit_weights=weights, empty="zero")
    np.testing.assert_allclose(found, np.nan_to_num(recall).mean(axis=0), atol=1e-12)


def test_average_ties_are_the_mean_over_shuffled_databases(rng, problem):
    queries, database, query_labels, database_labels = problem
    cutoffs = [1, 5, 20]
    shuffled = []
    for _ in range(400):
        order = rng.permutation(80)
        shuffled.append(
            metrics.precision_at(queries, database[order], query_labels, database_labels[order], cutoffs=cutoffs)
        )
    average = metrics.precision_at(*problem, cutoffs=cutoffs, ties="average")
    spread = np.std(shuffled, axis=0) / np.sqrt(len(shuffled))
    assert (np.abs(average - np.mean(shuffled, axis=0)) < 5 * spread + 1e-12).all()
    assert (metrics.precision_at(*problem, cutoffs=cutoffs, ties="pessimistic") <= average).all()
    assert (metrics.precision_at(*problem, cutoffs=cutoffs, ties="optimistic") >= average).all()


@pytest.mark.parametrize("ties", ["database", "average", "optimistic", "pessimistic"])
def test_the_curve_is_precision_and_recall_at_its_cutoffs(problem, ties):
    kept = problem[2] != 0
    answerable = (problem[0][kept], problem[1], problem[2][kept], problem[3])
    curve = metrics.precision_recall_curve(*problem, n_points=12, ties=ties)
    assert curve.cutoffs[0] == 1
    assert curve.cutoffs[-1] == 80
    precision = metrics.precision_at(*answerable, cutoffs=curve.cutoffs, ties=ties)
    np.testing.assert_allclose(curve.precision, precision)
    np.testing.assert_allclose(curve.recall, metrics.recall_at(*answerable, cutoffs=curve.cutoffs, ties=ties))
    assert curve.recall[-1] == 1


def test_a_curve_needs_something_relevant(problem):
    queries, database, query_labels, _ = problem
    with pytest.raises(ValueError, match="No query has anything relevant"):
        metrics.precision_recall_curve(queries, database, query_labels, np.full(80, 9))


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
@pytest.mark.parametrize("radius", [0, 1, 2.25])
def test_radius_metrics_are_the_double_loop(problem, weights, radius):
    queries, database, query_labels, database_labels = problem
    precision, success = [], []
    for query, label in zip(queries, query_labels, strict=True):
        distances = loop_distances(query, database, weights)
        inside = [database_labels[j] == label for j in range(80) if distances[j] <= radius]
        precision.append(sum(inside) / len(inside) if inside else np.nan)
        success.append(any(inside))
    options = {"radius": radius, "bit_weights": weights}
    assert metrics.radius_precision(*problem, **options) == pytest.approx(np.nan_to_num(precision).mean())
    assert metrics.radius_precision(*problem, **options, empty="drop") == pytest.approx(np.nanmean(precision))
    assert metrics.radius_success(*problem, **options) == pytest.approx(np.mean(success))


def test_a_decimal_radius_takes_in_the_item_at_exactly_that_distance():
    query, item = np.ones((1, 3), np.int8), np.array([[-1, -1, 1]], np.int8)
    options = {"bit_weights": [0.1, 0.2, 0.5], "radius": 0.3}
    assert metrics.radius_success(query, item, [0], [0], **options) == 1


def test_the_interval_covers_the_true_mean_as_often_as_it_says(rng):
    covered = 0
    for trial in range(300):
        interval = metrics.confidence_interval(rng.beta(2, 1, 80), confidence=0.9, n_resamples=400, random_state=trial)
        covered += interval.low <= 2 / 3 <= interval.high
    assert 0.83 < covered / 300 < 0.96


def test_the_interval_is_seeded_and_passes_over_dropped_queries(rng):
    scores = rng.random(50)
    same = metrics.confidence_interval(scores, random_state=3)
    assert same == metrics.confidence_interval(np.append(scores, np.nan), random_state=3)
    assert same != metrics.confidence_interval(scores, random_state=4)
    assert same.low < scores.mean() < same.high


@pytest.mark.parametrize("scores", [[], [np.nan], [[0.5]]])
def test_an_interval_needs_scores(scores):
    with pytest.raises(ValueError, match="at least one number"):
        metrics.confidence_interval(scores)


def test_wrong_interval_settings_are_named():
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        metrics.confidence_interval([0.5], confidence=95)


def test_a_curve_has_a_hundred_points_unless_told_otherwise():
    rng = np.random.default_rng(0)
    queries, database = (rng.choice([-1, 1], (n, 16)) for n in (3, 1000))
    classes = rng.integers(0, 3, 3), rng.integers(0, 3, 1000)
    usual, told, other = (
        metrics.precision_recall_curve(queries, database, *classes, **settings)
        for settings in ({}, {"n_points": 100}, {"n_points": 101})
    )
    np.testing.assert_array_equal(usual.recall, told.recall)
    assert usual.recall.shape != other.recall.shape or (usual.recall != other.recall).any()
