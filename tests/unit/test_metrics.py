"""Average precision and NDCG against double loops that read like their definitions, and against scikit-learn."""

import math
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, label_ranking_average_precision_score, ndcg_score
from threadpoolctl import threadpool_info

from hbmp import metrics
from hbmp.metrics import ranking as ranking_parts
from hbmp.metrics import sorting


def random_signs(rng, *shape):
    return rng.choice(np.array([-1, 1], np.int8), shape)


def loop_order(query, database, weights):
    """Database items nearest first, equal distances in database order, one pair of bits at a time."""
    distances = []
    for item in database:
        distances.append(math.fsum(w * (abs(q) - q * u) / 2 for q, u, w in zip(query, item, weights, strict=True)))
    return sorted(range(len(database)), key=lambda j: (distances[j], j))


def loop_average_precision(grades, cutoff, denominator):
    hits, total = 0, 0.0
    for rank, grade in enumerate(grades[:cutoff], start=1):
        if grade > 0:
            hits += 1
            total += hits / rank
    relevant = hits if denominator == "hits" else sum(grade > 0 for grade in grades)
    return total / relevant if relevant else math.nan


def loop_ndcg(grades, cutoff, gain):
    def dcg(ranked):
        return sum(gain(grade) / math.log2(rank + 1) for rank, grade in enumerate(ranked[:cutoff], start=1))

    best = dcg(sorted(grades, reverse=True))
    return dcg(grades) / best if best else 1.0


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def problem(rng):
    """Short codes, so that ties abound; one class has no database item, one query label set is empty."""
    queries, database = random_signs(rng, 25, 7), random_signs(rng, 90, 7)
    query_labels, database_labels = rng.integers(0, 5, 25), rng.integers(1, 5, 90)
    return queries, database, query_labels, database_labels


WEIGHTS = [None, np.array([0.5, 2.0, 1.25, 0.5, -0.75, 3.0, 0.5])]


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
@pytest.mark.parametrize("denominator", ["hits", "relevant"])
@pytest.mark.parametrize("cutoff", [None, 1, 10, 1000])
def test_average_precision_is_the_double_loop(problem, weights, denominator, cutoff):
    queries, database, query_labels, database_labels = problem
    expected = []
    for query, label in zip(queries, query_labels, strict=True):
        order = loop_order(query, database, np.ones(7) if weights is None else weights)
        expected.append(loop_average_precision([database_labels[j] == label for j in order], cutoff, denominator))
    options = {"bit_weights": weights, "cutoff": cutoff, "denominator": denominator}
    scores = metrics.average_precision_per_query(*problem, **options)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    assert metrics.mean_average_precision(*problem, **options) == pytest.approx(np.nanmean(expected), abs=1e-12)
    zero = metrics.mean_average_precision(*problem, **options, empty="zero")
    assert zero == pytest.approx(np.nan_to_num(expected).mean(), abs=1e-12)


def test_a_query_without_a_hit_is_dropped_or_zero(problem):
    query_labels = problem[2]
    assert (query_labels == 0).any()
    scores = metrics.average_precision_per_query(*problem)
    np.testing.assert_array_equal(np.isnan(scores), query_labels == 0)
    # With denominator "relevant" a query that finds nothing in time has failed, and is not empty.
    missed = metrics.average_precision_per_query(*problem, cutoff=1, denominator="relevant")
    np.testing.assert_array_equal(np.isnan(missed), query_labels == 0)
    assert (missed == 0).any()


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
@pytest.mark.parametrize("gain", ["binary", "scaled", "shared"])
@pytest.mark.parametrize("cutoff", [None, 1, 12])
def test_ndcg_is_the_double_loop(rng, problem, weights, gain, cutoff):
    queries, database, _, _ = problem
    query_labels, database_labels = rng.integers(0, 2, (25, 6)), rng.integers(0, 2, (90, 6))
    query_labels[3] = 0
    shared = query_labels @ database_labels.T
    gain_of = {
        "binary": lambda c: float(c > 0),
        "scaled": lambda c: 2 ** (c / shared.max()) - 1,
        "shared": lambda c: 2.0**c - 1,
    }[gain]
    expected = []
    for i, query in enumerate(queries):
        order = loop_order(query, database, np.ones(7) if weights is None else weights)
        expected.append(loop_ndcg([shared[i, j] for j in order], cutoff, gain_of))
    options = {"bit_weights": weights, "gain": gain, "cutoff": cutoff}
    scores = metrics.ndcg_per_query(queries, database, query_labels, database_labels, **options)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    mean = metrics.ndcg(queries, database, query_labels, sparse.csr_matrix(database_labels), **options)
    assert mean == pytest.approx(np.mean(expected), abs=1e-12)


def test_ndcg_of_a_query_with_nothing_relevant(problem):
    empty = problem[2] == 0
    for rule, value in {"one": 1.0, "zero": 0.0, "drop": np.nan}.items():
        np.testing.assert_array_equal(metrics.ndcg_per_query(*problem, empty=rule)[empty], value)


def test_largest_grade_can_be_named(problem):
    queries, database, query_labels, database_labels = problem
    grades = (query_labels[:, None] == database_labels) * 2.0
    relevance = metrics.Graded(lambda start, stop: grades[start:stop], grades.shape)
    scaled = metrics.ndcg_per_query(queries, database, relevance=relevance, gain="scaled", largest_grade=1)
    np.testing.assert_allclose(scaled, metrics.ndcg_per_query(queries, database, relevance=relevance, gain="shared"))


def test_real_valued_queries_rank_by_inner_product(rng, problem):
    _, database, query_labels, database_labels = problem
    scores = rng.normal(size=(25, 7)).astype(np.float32)
    for weights in WEIGHTS:
        expected = []
        for query, label in zip(scores.astype(float), query_labels, strict=True):
            order = loop_order(query, database, np.ones(7) if weights is None else weights)
            expected.append(loop_average_precision([database_labels[j] == label for j in order], None, "hits"))
        found = metrics.average_precision_per_query(
            scores, database, query_labels, database_labels, bit_weights=weights
        )
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_codes_of_many_words(rng):
    queries, database = random_signs(rng, 4, 300), random_signs(rng, 60, 300)
    labels = rng.integers(0, 3, 4), rng.integers(0, 3, 60)
    expected = []
    for query, label in zip(queries, labels[0], strict=True):
        order = loop_order(query, database, np.ones(300))
        expected.append(loop_average_precision([labels[1][j] == label for j in order], None, "hits"))
    np.testing.assert_allclose(metrics.average_precision_per_query(queries, database, *labels), expected, atol=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])
@pytest.mark.parametrize("ties", ["database", "average", "optimistic", "pessimistic"])
def test_self_retrieval_leaves_the_item_itself_out(problem, weights, ties):
    _, codes, _, labels = problem
    one_by_one = []
    for i in range(len(codes)):
        others = np.arange(len(codes)) != i
        one_by_one.append(
            metrics.mean_average_precision(
                codes[i : i + 1], codes[others], labels[i : i + 1], labels[others], bit_weights=weights, ties=ties
            )
        )
    found = metrics.self_retrieval_map(codes, labels, bit_weights=weights, ties=ties)
    assert found == pytest.approx(np.nanmean(one_by_one), abs=1e-12)


def test_self_retrieval_leaves_the_relevance_of_the_caller_untouched(problem):
    _, codes, _, labels = problem
    grades = (labels[:, None] == labels).astype(float)
    before = grades.copy()
    relevance = metrics.Graded(lambda start, stop: grades[start:stop], grades.shape)
    assert metrics.self_retrieval_map(codes, relevance=relevance) == metrics.self_retrieval_map(codes, labels)
    np.testing.assert_array_equal(grades, before)


def test_scikit_learn_agrees_where_nothing_is_tied(rng):
    scores, database = rng.normal(size=(20, 40)), random_signs(rng, 300, 40)
    labels = rng.integers(0, 3, 20), rng.integers(0, 3, 300)
    relevant = labels[0][:, None] == labels[1]
    products = scores @ database.T
    expected = [average_precision_score(row, product) for row, product in zip(relevant, products, strict=True)]
    np.testing.assert_allclose(metrics.average_precision_per_query(scores, database, *labels), expected, atol=1e-10)
    ranking = label_ranking_average_precision_score(relevant, products)
    assert metrics.mean_average_precision(scores, database, *labels) == pytest.approx(ranking, abs=1e-10)


@pytest.mark.parametrize("cutoff", [None, 30])
def test_scikit_learn_agrees_on_tie_averaged_ndcg(rng, cutoff):
    queries, database = random_signs(rng, 20, 6), random_signs(rng, 150, 6)
    grades = rng.choice([0, 0, 1, 2, 5], (20, 150))
    relevance = metrics.Graded(lambda start, stop: grades[start:stop], grades.shape)
    gains = 2.0**grades - 1
    expected = ndcg_score(gains, queries.astype(float) @ database.T, k=cutoff)
    found = metrics.ndcg(queries, database, relevance=relevance, ties="average", cutoff=cutoff)
    # scikit-learn averages tied gains too, and its ideal order is ours.
    assert found == pytest.approx(expected, abs=1e-10)


def test_blocks_do_not_change_the_result(problem, monkeypatch):
    whole = [metrics.average_precision_per_query(*problem, bit_weights=weights) for weights in WEIGHTS]
    monkeypatch.setattr(ranking_parts, "_BLOCK_BYTES", 1)
    for weights, expected in zip(WEIGHTS, whole, strict=True):
        np.testing.assert_array_equal(metrics.average_precision_per_query(*problem, bit_weights=weights), expected)


def test_equal_codes_tie_exactly_whatever_the_weights(rng):
    """Weights without a short binary form: any rounding difference would break the tie against database order."""
    code = random_signs(rng, 1, 64)
    database = np.repeat(code, 501, axis=0)
    relevant = np.zeros(501, int)
    relevant[250] = 1
    for weights in (np.full(64, 0.1), rng.normal(size=64), rng.gamma(0.1, size=64) * 1e6):
        options = {"bit_weights": weights}
        assert metrics.mean_average_precision(-code, database, [1], relevant, **options) == pytest.approx(1 / 251)
        worst = metrics.mean_average_precision(-code, database, [1], relevant, **options, ties="pessimistic")
        assert worst == pytest.approx(1 / 501)


def test_distances_equal_but_for_rounding_are_tied():
    """0.1 + 0.2 is not 0.3 in binary, yet the items at those distances keep the order of the database."""
    query = np.ones((1, 3), np.int8)
    database = np.array([[1, 1, -1], [-1, -1, 1]] * 40, np.int8)
    weights = [0.1, 0.2, 0.3]
    for relevant in (0, 1, 50, 79):
        labels = np.arange(80) == relevant
        found = metrics.mean_average_precision(query, database, [True], labels, bit_weights=weights)
        assert found == pytest.approx(1 / (relevant + 1))


@pytest.mark.parametrize("shape", [0.02, 0.1, 2.0], ids=["very heavy tail", "heavy tail", "even"])
def test_a_large_database_is_ranked_as_by_a_stable_argsort(rng, shape):
    queries, database = random_signs(rng, 5, 24), random_signs(rng, 20_000, 24)
    labels = rng.integers(0, 10, 5), rng.integers(0, 10, 20_000)
    weights = np.maximum(rng.gamma(shape, size=24), 1e-12).astype(np.float32) * rng.choice([-1, 1], 24)
    for bit_weights, exact in ((None, np.ones(24)), (weights, weights.astype(float))):
        expected = []
        for query, label in zip(queries, labels[0], strict=True):
            order = np.argsort(np.rint((query != database) @ exact * 2.0**45), kind="stable")
            expected.append(loop_average_precision(labels[1][order] == label, None, "hits"))
        found = metrics.average_precision_per_query(queries, database, *labels, bit_weights=bit_weights)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("n_items", [100, 30_000])
@pytest.mark.parametrize("n_digits", [2, 3, 4])
def test_whole_keys_are_sorted_stably(rng, n_items, n_digits):
    highest = 2 ** (13 * n_digits)
    keys = np.concatenate([rng.integers(0, highest, n_items), rng.integers(0, 50, n_items), [highest + 1, 0]])
    order = sorting.digit_sort(keys, n_digits)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


def test_metrics_sort_alike_without_faiss(rng, monkeypatch):
    keys = rng.integers(0, 34, 5_000)
    expected = sorting.bucket_sort(keys, 34)
    monkeypatch.setitem(sys.modules, "faiss", None)
    for found, wanted in zip(sorting.bucket_sort(keys, 34), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_threads_of_linear_algebra_are_given_back(problem):
    def n_threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = n_threads()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: metrics.mean_average_precision(*problem, bit_weights=np.full(7, 0.5)), range(12)))
    assert n_threads() == before


def test_equal_weights_are_plain_distance(problem):
    plain = metrics.average_precision_per_query(*problem)
    np.testing.assert_array_equal(metrics.average_precision_per_query(*problem, bit_weights=np.full(7, 0.1)), plain)


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 2, 32)], ids=["plain", "weighted"])
def test_memory_stays_far_below_the_distance_matrix(rng, weights):
    n_queries, n_database = 2000, 20000
    queries, database = random_signs(rng, n_queries, 32), random_signs(rng, n_database, 32)
    labels = rng.integers(0, 10, n_queries), rng.integers(0, 10, n_database)
    tracemalloc.start()
    metrics.mean_average_precision(queries, database, *labels, bit_weights=weights)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * n_queries * n_database / 2


@pytest.mark.slow
def test_ten_thousand_queries_against_two_hundred_thousand_codes(rng):
    queries, database = random_signs(rng, 10_000, 32), random_signs(rng, 200_000, 32)
    labels = rng.integers(0, 10, 10_000), rng.integers(0, 10, 200_000)
    tracemalloc.start()
    score = metrics.mean_average_precision(queries, database, *labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert score == pytest.approx(0.1, abs=0.01)
    assert peak < 10_000 * 200_000 / 4  # a quarter byte a pair


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ties": "random"}, "ties='random' is unknown"),
        ({"denominator": "all"}, "denominator='all' is unknown"),
        ({"empty": "one"}, "empty='one' is unknown"),
        ({"cutoff": 0}, "cutoff must be a whole number"),
        ({"cutoff": 2.5}, "cutoff must be a whole number"),
        ({"bit_weights": np.ones(6)}, "bit_weights"),
        ({"bit_weights": np.full(7, np.nan)}, "finite"),
    ],
)
def test_wrong_settings_are_named(problem, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.mean_average_precision(*problem, **options)


def test_wrong_gain_and_largest_grade_are_named(problem):
    with pytest.raises(ValueError, match="gain='linear' is unknown"):
        metrics.ndcg(*problem, gain="linear")
    with pytest.raises(ValueError, match="largest_grade must be above 0"):
        metrics.ndcg(*problem, gain="scaled", largest_grade=0)


def test_an_empty_database_is_an_error_and_no_query_is_nan(problem):
    queries, database, query_labels, database_labels = problem
    with pytest.raises(ValueError, match="database is empty"):
        metrics.mean_average_precision(queries, database[:0], query_labels, database_labels[:0])
    assert np.isnan(metrics.mean_average_precision(queries[:0], database, query_labels[:0], database_labels))
