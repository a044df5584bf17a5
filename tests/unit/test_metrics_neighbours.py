"""Neighbour recall, graded nearness and collapse of codes against double loops."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from hbmp import metrics
from hbmp.metrics import ranking


def loop_nearest(query, database, matches, k):
    """The k database rows of largest cosine, compared exactly, equal cosines in database order."""

    def cosine(item):
        dot = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(query, item, strict=True))
        norm = sum(Fraction(float(b)) ** 2 for b in item)
        return (1 if dot >= 0 else -1) * (dot * dot / norm if norm else Fraction(0))

    order = sorted((j for j in range(len(database)) if matches[j]), key=lambda j: (-cosine(database[j]), j))
    return order[:k]


def loop_order(query, database, weights):
    weights = np.ones(len(query)) if weights is None else weights
    distances = [
        math.fsum(w * (abs(q) - q * u) / 2 for q, u, w in zip(query, item, weights, strict=True)) for item in database
    ]
    return sorted(range(len(database)), key=lambda j: (distances[j], j))


def loop_recall(query_codes, codes, query_vectors, vectors, k, cutoff, matches, weights):
    scores = []
    for i in range(len(query_codes)):
        near = loop_nearest(query_vectors[i], vectors, matches[i], k)
        if near:
            first = loop_order(query_codes[i], codes, weights)[:cutoff]
            scores.append(len(set(near) & set(first)) / len(near))
    return sum(scores) / len(scores) if scores else math.nan


problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(1, 12),
        "k": st.integers(1, 6),
        "extra": st.integers(0, 4),
        "labels": st.sampled_from(["none", "classes", "sets", "sparse"]),
        "scores": st.booleans(),
        "weights": st.booleans(),
    }
)


@given(problems)
@settings(max_examples=80, deadline=None)
def test_recall_is_that_of_a_double_loop(problem):
    rng, n, k = np.random.default_rng(problem["seed"]), problem["n"], problem["k"]
    query_codes, codes = (rng.choice(np.array([-1, 1], np.int8), (rows, 4)) for rows in (5, n))
    if problem["scores"]:
        query_codes = rng.integers(-4, 5, (5, 4)) / 4
    query_vectors, few = rng.standard_normal((2, 5, 3)).astype(np.float32)
    vectors = few[rng.integers(0, 5, n)] * 2.0 ** rng.integers(-3, 4, (n, 1))  # ties abound
    weights = np.array([0.5, 1.0, 2.0, 0.25]) if problem["weights"] else None
    matches, labels = np.ones((5, n), bool), {}
    if problem["labels"] == "classes":
        a, b = rng.integers(0, 3, 5), rng.integers(0, 3, n)
        labels, matches = {"query_labels": a, "database_labels": b}, a[:, None] == b
    elif problem["labels"] != "none":
        a, b = rng.integers(0, 2, (5, 3)), rng.integers(0, 2, (n, 3))
        matches = a @ b.T > 0
        form = sparse.csr_array if problem["labels"] == "sparse" else np.asarray
        labels = {"query_labels": form(a), "database_labels": form(b)}
    cutoff = k + problem["extra"]
    found = metrics.neighbour_recall(
        query_codes, codes, query_vectors, vectors, k=k, cutoff=cutoff, bit_weights=weights, **labels
    )
    expected = loop_recall(query_codes, codes, query_vectors, vectors, k, cutoff, matches, weights)
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.fixture
def task():
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((260, 12))
    codes = np.where(vectors @ rng.standard_normal((12, 9)) >= 0, 1, -1).astype(np.int8)
    labels = rng.integers(0, 4, 260)
    return codes[:60], codes[60:], vectors[:60], vectors[60:], labels[:60], labels[60:]


def test_blocks_do_not_matter(task, monkeypatch):
    labels = {"query_labels": task[4], "database_labels": task[5]}
    whole = metrics.neighbour_recall(*task[:4], **labels)
    monkeypatch.setattr(ranking, "_THREAD_BYTES", 8 * 200 * 3)
    assert metrics.neighbour_recall(*task[:4], **labels) == whole
    assert 0 < whole < 1


def test_scale_of_vectors_and_weights_does_not_matter(task):
    q, db, qv, dv, *_ = task
    whole = metrics.neighbour_recall(q, db, qv, dv, bit_weights=np.ones(9))
    scaled = metrics.neighbour_recall(q, db, qv * 1e-30, dv * 1e30, bit_weights=np.full(9, 3.0))
    assert scaled == whole == metrics.neighbour_recall(q, db, qv, dv)


def test_identical_vectors_tie_in_database_order():
    rng = np.random.default_rng(0)
    vectors = np.repeat(rng.standard_normal((1, 300)).astype(np.float32), 97, axis=0)  # an odd number for any kernel
    grades = metrics.Nearest(rng.standard_normal((3, 300)), vectors, levels=(5,)).grades(0, 3)
    assert (grades[:, :5] == 1).all()
    assert (grades[:, 5:] == 0).all()


def test_tie_rules_bound_the_database_order(task):
    q, db, qv, dv, *_ = task
    rules = ("pessimistic", "average", "optimistic", "database")
    low, mean, high, given_order = (metrics.neighbour_recall(q, db, qv, dv, ties=rule) for rule in rules)
    assert low < mean < high
    assert low <= given_order <= high


def test_tie_average_is_the_mean_over_orders_of_the_database():
    rng = np.random.default_rng(1)
    q, db = rng.choice([-1, 1], (6, 2)), rng.choice([-1, 1], (20, 2))
    qv, dv = rng.standard_normal((6, 3)), rng.standard_normal((20, 3))
    shuffles = [rng.permutation(20) for _ in range(600)]
    mean = np.mean([metrics.neighbour_recall(q, db[order], qv, dv[order], k=4) for order in shuffles])
    assert metrics.neighbour_recall(q, db, qv, dv, k=4, ties="average") == pytest.approx(mean, abs=0.01)


def test_a_query_without_neighbours_is_dropped_or_zero(task):
    q, db, qv, dv, ql, dl = task
    ql = np.where(np.arange(60) < 30, 9, ql)  # a class that no item has
    labels = {"query_labels": ql, "database_labels": dl}
    dropped = metrics.neighbour_recall(q, db, qv, dv, **labels)
    assert metrics.neighbour_recall(q, db, qv, dv, **labels, empty="zero") == pytest.approx(dropped / 2)


def test_levels_add_up_and_labels_come_first(task):
    *_, qv, dv, ql, dl = task
    graded = metrics.Nearest(qv, dv, ql, dl, levels=(3, 10), label_grade=1)
    grades, matches = graded.grades(0, 60), ql[:, None] == dl
    assert ((grades > 0) == matches).all()
    assert (np.count_nonzero(grades == 3, axis=1) == 3).all()
    assert (np.count_nonzero(grades >= 2, axis=1) == 10).all()
    ideal = np.where(matches, 1.0, -1.0) + 0.4 * (qv @ dv.T) / np.linalg.norm(qv @ dv.T, axis=1, keepdims=True)
    best = np.argsort(-ideal, axis=1)  # label first, then near: close to the best order; the label alone is not
    assert np.take_along_axis(grades, best, axis=1)[:, :3].mean() > 2


def test_graded_ndcg_sees_what_class_codes_hide():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 300)
    vectors = rng.standard_normal((300, 8)) + 4 * np.eye(8)[labels]
    kind = np.where(labels[:, None] == 1, 1, -1) * np.ones((1, 9), int)
    detail = np.where(vectors[:, 2:] >= 0, 1, -1)
    both = np.hstack([kind, detail])
    task = {"relevance": metrics.Nearest(vectors[:50], vectors[50:], labels[:50], labels[50:], label_grade=1)}
    collapsed, told_apart = (metrics.ndcg(c[:50], c[50:], ties="average", **task) for c in (kind, both))
    assert told_apart > collapsed + 0.03


def test_collapse_measures():
    codes = np.array([[1, 1], [1, 1], [1, -1], [-1, -1], [1, -1], [1, 1]])
    assert metrics.distinct_codes(codes) == 3
    assert metrics.self_first_share(codes) == 3 / 6
    assert metrics.self_first_share(codes, np.array([[1], [1], [2], [3], [4], [5]])) == 4 / 6
    queries = np.array([[1, 1], [1, -1], [-1, 1]])
    assert metrics.tied_share(queries, codes, k=3) == pytest.approx(2 / 3)  # (-1, 1) lies at distance 1 from four
    assert metrics.tied_share(queries, codes, k=3, bit_weights=[1, 0.5]) == pytest.approx(1 / 3)
    assert metrics.tied_share(queries, codes, k=4) == pytest.approx(1 / 3)
    assert metrics.tied_share(queries, codes, k=1) == 1
    assert metrics.tied_share(queries, codes, k=99) == 0


def test_an_item_comes_first_exactly_where_no_earlier_one_has_its_code():
    rng = np.random.default_rng(2)
    codes = rng.choice(np.array([-1, 1], np.int8), (40, 5))
    weights = np.array([3.0, 1.0, 0.5, 0.25, 2.0])
    found = [loop_order(code, codes, weights)[0] == i for i, code in enumerate(codes)]
    assert metrics.self_first_share(codes) == np.mean(found)


def test_wrong_arguments_get_a_sentence(task):
    q, db, qv, dv, ql, dl = task
    for arguments, options, message in [
        ((q, db, qv[:, :3], dv), {}, "same dimension"),
        ((q, db, qv[:9], dv), {}, "one vector per code"),
        ((q, db, qv, dv), {"k": 0}, "at least 1"),
        ((q, db, qv, dv), {"cutoff": 0.5}, "at least 1"),
        ((q, db, qv, np.full_like(dv, np.nan)), {}, "finite"),
        ((q, db, qv[0], dv), {}, "shape"),
        ((q, db, qv, dv), {"query_labels": ql}, "database_labels"),
        ((q, db, qv, dv), {"query_labels": ql[:5], "database_labels": dl}, "one label per code"),
        ((q, db, qv, dv), {"ties": "random"}, "is unknown"),
        ((q, db, qv, dv), {"empty": "one"}, "is unknown"),
    ]:
        with pytest.raises(ValueError, match=message):
            metrics.neighbour_recall(*arguments, **options)
    with pytest.raises(ValueError, match="label_grade"):
        metrics.Nearest(qv, dv, label_grade=1)
