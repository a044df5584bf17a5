"""What is relevant: classes of any type, label sets, and grades."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from hbmp import metrics
from hbmp.metrics import relevance as relevance_module


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def codes(rng):
    return rng.choice(np.array([-1, 1], np.int8), (12, 8)), rng.choice(np.array([-1, 1], np.int8), (40, 8))


@pytest.mark.parametrize("kind", [int, float, str, object, np.uint8])
def test_classes_of_any_type_are_the_same_classes(rng, codes, kind):
    query_labels, database_labels = rng.integers(0, 3, 12), rng.integers(0, 3, 40)
    expected = metrics.average_precision_per_query(*codes, query_labels, database_labels)
    found = metrics.average_precision_per_query(*codes, query_labels.astype(kind), list(database_labels.astype(kind)))
    np.testing.assert_array_equal(found, expected)


def test_one_hot_labels_are_classes(rng, codes):
    query_labels, database_labels = rng.integers(0, 3, 12), rng.integers(0, 3, 40)
    one_hot = np.eye(3, dtype=bool)[query_labels], np.eye(3, dtype=bool)[database_labels]
    for score in (metrics.mean_average_precision, metrics.ndcg):
        assert score(*codes, *one_hot) == score(*codes, query_labels, database_labels)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("most_dense", [1 << 27, 0], ids=["dense", "sparse"])
def test_shared_labels_are_counted(rng, form, most_dense, monkeypatch):
    monkeypatch.setattr(relevance_module, "_MOST_DENSE_LABELS", most_dense)
    queries, database = rng.integers(0, 2, (5, 300)), rng.integers(0, 2, (9, 300))
    database[4] = database[1]
    relevance = metrics.SharedLabels(form(queries), form(database))
    expected = [[sum(q and u for q, u in zip(query, item, strict=True)) for item in database] for query in queries]
    np.testing.assert_array_equal(relevance.grades(0, 5), expected)
    np.testing.assert_array_equal(relevance.grades(2, 3), expected[2:3])


def test_distance_levels_take_the_smallest_threshold(rng):
    queries, database = rng.normal(size=(6, 3)), rng.normal(size=(50, 3))
    relevance = metrics.DistanceLevels(queries, database, thresholds=[2.0, 0.5, 1.0], grades=[1, 10, 4])
    distances = cdist(queries, database)
    expected = np.select([distances <= 0.5, distances <= 1.0, distances <= 2.0], [10, 4, 1], 0)
    np.testing.assert_array_equal(relevance.grades(1, 6), expected[1:])
    assert {0, 1, 4, 10} == set(relevance.grades(0, 6).ravel().tolist())


def test_fractional_grades_keep_their_size(codes):
    grades = np.random.default_rng(0).choice([0.0, 0.1, 0.35, 1.0], (12, 40))
    relevance = metrics.Graded(lambda start, stop: grades[start:stop], grades.shape)
    for ties in ("database", "average", "optimistic", "pessimistic"):
        fractional = metrics.ndcg_per_query(*codes, relevance=relevance, ties=ties)
        scaled = metrics.Graded(lambda start, stop: np.rint(grades[start:stop] * 20).astype(int), grades.shape)
        whole = metrics.ndcg_per_query(*codes, relevance=scaled, gain="scaled", largest_grade=20, ties=ties)
        np.testing.assert_allclose(fractional, whole)


def test_a_relevance_of_the_users_own_is_asked_block_by_block(codes):
    class Even:
        shape = (12, 40)

        def __init__(self):
            self.asked = []

        def grades(self, start, stop):
            self.asked.append((start, stop))
            return np.tile(np.arange(40) % 2 == 0, (stop - start, 1))

    relevance = Even()
    expected = metrics.mean_average_precision(*codes, np.zeros(12), np.arange(40) % 2)
    assert metrics.mean_average_precision(*codes, relevance=relevance) == expected
    assert [start for start, _ in relevance.asked] == sorted({start for start, _ in relevance.asked})


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "Relevance is undefined"),
        ((np.zeros(12), np.zeros(39)), {}, "labels for 12 and 39"),
        ((np.zeros((12, 2)), np.zeros(40)), {}, "found 2 and 1 dimensions"),
        ((np.zeros((12, 2)), np.zeros((40, 3))), {}, "found 2 and 3 columns"),
        ((np.full((12, 2), 3), np.zeros((40, 2))), {}, "only 0 and 1"),
        ((np.zeros(12), np.zeros(40)), {"relevance": metrics.Graded(lambda *_: None, (12, 40))}, "both given"),
        ((), {"relevance": "shared"}, "needs shape and grades"),
        ((), {"relevance": metrics.Graded(lambda *_: np.zeros((1, 40)), (12, 40))}, r"must be \(12, 40\)"),
        ((), {"relevance": metrics.Graded(lambda *_: np.full((12, 40), -1), (12, 40))}, "at least 0"),
        ((), {"relevance": metrics.Graded(lambda *_: np.full((12, 40), np.nan), (12, 40))}, "at least 0"),
    ],
)
def test_what_cannot_be_relevance_is_named(codes, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.mean_average_precision(*codes, *arguments, **options)


def test_distance_levels_need_a_grade_a_threshold():
    with pytest.raises(ValueError, match="One grade per threshold"):
        metrics.DistanceLevels(np.zeros((1, 2)), np.zeros((1, 2)), [1.0, 2.0], [1])


def test_remembered_grades_are_those_of_the_relevance_unless_they_are_too_many():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((30, 4))
    levels = metrics.DistanceLevels(features[:7], features[7:], [1.0, 2.0, 4.0], [10, 5, 1])
    kept = metrics.remembered(levels)
    assert kept.shape == levels.shape
    np.testing.assert_array_equal(kept.grades(2, 6), levels.grades(2, 6))
    assert kept.grades(0, 3).base is not None  # a view: nothing is worked out again
    assert metrics.remembered(levels, most_bytes=10) is levels
