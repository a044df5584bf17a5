"""What the metrics promise: closed forms for ties are true means over orders, and scores ignore what they should."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hbmp import metrics


def tied_problem(levels):
    """One query and a database whose item i lies at Hamming distance levels[i]."""
    n_bits = max(levels) + 1
    database = np.ones((len(levels), n_bits), np.int8)
    for item, distance in enumerate(levels):
        database[item, :distance] = -1
    return np.ones((1, n_bits), np.int8), database


def all_orders(levels, grades):
    """The graded list under every permutation of the database, each sorted by distance."""
    for order in itertools.permutations(range(len(levels))):
        yield [grades[j] for j in sorted(order, key=lambda j: levels[j])]


def average_precision(grades, cutoff, denominator):
    hits = [rank for rank, grade in enumerate(grades[:cutoff], start=1) if grade > 0]
    total = len(hits) if denominator == "hits" else sum(grade > 0 for grade in grades)
    return sum((i + 1) / rank for i, rank in enumerate(hits)) / total if total else math.nan


def dcg(grades, cutoff):
    return sum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades[:cutoff], start=1))


LISTS = [
    ([0, 0, 0, 0, 0, 0], [0, 1, 0, 2, 0, 1]),
    ([0, 1, 1, 1, 2, 2], [0, 0, 3, 0, 1, 0]),
    ([2, 0, 1, 1, 0, 2], [1, 0, 1, 1, 0, 0]),
    ([1, 1, 1, 1, 3, 3], [0, 0, 0, 0, 1, 1]),
    ([0, 1, 2, 3, 4, 5], [1, 0, 2, 0, 0, 1]),
]


@pytest.mark.parametrize(("levels", "grades"), LISTS)
@pytest.mark.parametrize("denominator", ["hits", "relevant"])
@pytest.mark.parametrize("cutoff", [None, 1, 2, 3, 5])
def test_tie_averaged_ap_is_the_mean_over_all_orders(levels, grades, denominator, cutoff):
    values = np.array([average_precision(ranked, cutoff, denominator) for ranked in all_orders(levels, grades)])
    relevance = metrics.Graded(lambda *_: np.array([grades]), (1, len(grades)))
    options = {"cutoff": cutoff, "denominator": denominator, "relevance": relevance, "ties": "average"}
    for weights in (None, np.ones(max(levels) + 1)):
        zero = metrics.mean_average_precision(*tied_problem(levels), **options, bit_weights=weights, empty="zero")
        assert zero == pytest.approx(np.nan_to_num(values).mean(), abs=1e-12)
        # "drop" leaves out the orders that bring no hit in time, as it leaves out queries.
        dropped = metrics.mean_average_precision(*tied_problem(levels), **options, bit_weights=weights, empty="drop")
        kept = values[~np.isnan(values)]
        assert dropped == pytest.approx(kept.mean() if len(kept) else np.nan, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(("levels", "grades"), LISTS)
@pytest.mark.parametrize("cutoff", [None, 1, 3])
def test_tie_averaged_ndcg_is_the_mean_over_all_orders(levels, grades, cutoff):
    best = dcg(sorted(grades, reverse=True), cutoff)
    values = [dcg(ranked, cutoff) / best for ranked in all_orders(levels, grades)]
    relevance = metrics.Graded(lambda *_: np.array([grades]), (1, len(grades)))
    score = {
        ties: metrics.ndcg(*tied_problem(levels), relevance=relevance, cutoff=cutoff, ties=ties)
        for ties in ("average", "optimistic", "pessimistic")
    }
    assert score["average"] == pytest.approx(np.mean(values), abs=1e-12)
    assert score["optimistic"] == pytest.approx(max(values), abs=1e-12)
    assert score["pessimistic"] == pytest.approx(min(values), abs=1e-12)


@pytest.mark.parametrize(("levels", "grades"), LISTS)
def test_optimistic_and_pessimistic_ap_are_the_extremes_over_all_orders(levels, grades):
    values = [average_precision(ranked, None, "hits") for ranked in all_orders(levels, grades)]
    relevance = metrics.Graded(lambda *_: np.array([grades]), (1, len(grades)))
    best = metrics.mean_average_precision(*tied_problem(levels), relevance=relevance, ties="optimistic")
    worst = metrics.mean_average_precision(*tied_problem(levels), relevance=relevance, ties="pessimistic")
    assert (worst, best) == (pytest.approx(min(values)), pytest.approx(max(values)))


def test_a_hit_at_the_first_rank_counts():
    """A public evaluation routine loses it: its recall starts from the first rank's own recall, not from zero."""
    query, database = tied_problem([0, 1, 2])
    assert metrics.mean_average_precision(query, database, [1], [1, 0, 0]) == 1.0


def test_the_hits_denominator_rewards_finding_less():
    """Known and kept for comparison with the paper: the second list finds more and scores less."""
    query, database = tied_problem([0, 1, 2, 3])
    few, more = [1, 0, 0, 0], [1, 0, 0, 1]
    score = {"hits": {}, "relevant": {}}
    for denominator, by_list in score.items():
        for name, labels in (("few", few), ("more", more)):
            by_list[name] = metrics.mean_average_precision(query, database, [1], labels, denominator=denominator)
    assert score["hits"]["more"] < score["hits"]["few"]


signs = st.integers(0, 2**31 - 1)


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n_queries, n_database, n_bits = rng.integers(1, 6), rng.integers(2, 40), rng.integers(1, 8)
    queries = rng.choice(np.array([-1, 1], np.int8), (n_queries, n_bits))
    database = rng.choice(np.array([-1, 1], np.int8), (n_database, n_bits))
    weights = rng.integers(-2, 6, n_bits) / 4  # exact in binary, so that sums tie where they should
    return rng, queries, database, rng.integers(0, 3, n_queries), rng.integers(0, 3, n_database), weights


@settings(max_examples=60, deadline=None)
@given(seed=signs, denominator=st.sampled_from(["hits", "relevant"]), weighted=st.booleans())
def test_the_average_lies_between_pessimistic_and_optimistic(seed, denominator, weighted):
    _, *problem, weights = random_problem(seed)
    cutoff = None if denominator == "hits" else 1 + seed % 10
    options = {"denominator": denominator, "cutoff": cutoff, "bit_weights": weights if weighted else None}
    low, database, average, high = (
        metrics.average_precision_per_query(*problem, **options, ties=ties, empty="zero")
        for ties in ("pessimistic", "database", "average", "optimistic")
    )
    assert (low <= average + 1e-12).all()
    assert (average <= high + 1e-12).all()
    assert (low <= database + 1e-12).all()
    assert (database <= high + 1e-12).all()


@settings(max_examples=60, deadline=None)
@given(seed=signs, ties=st.sampled_from(["database", "average", "optimistic", "pessimistic"]), weighted=st.booleans())
def test_flipping_the_same_bits_everywhere_changes_nothing(seed, ties, weighted):
    rng, queries, database, *labels, weights = random_problem(seed)
    mask = rng.choice(np.array([-1, 1], np.int8), queries.shape[1])
    options = {"ties": ties, "bit_weights": weights if weighted else None}
    for score in (metrics.average_precision_per_query, metrics.ndcg_per_query):
        flipped = score(queries * mask, database * mask, *labels, **options)
        np.testing.assert_array_equal(flipped, score(queries, database, *labels, **options))


@settings(max_examples=60, deadline=None)
@given(seed=signs, weighted=st.booleans())
def test_renaming_the_classes_changes_nothing(seed, weighted):
    _, queries, database, query_labels, database_labels, weights = random_problem(seed)
    names = np.array(["zebra", "ant", "mole"])
    options = {"bit_weights": weights if weighted else None}
    renamed = metrics.average_precision_per_query(
        queries, database, names[query_labels], names[database_labels], **options
    )
    kept = metrics.average_precision_per_query(queries, database, query_labels, database_labels, **options)
    np.testing.assert_array_equal(renamed, kept)


@settings(max_examples=60, deadline=None)
@given(seed=signs, ties=st.sampled_from(["average", "optimistic", "pessimistic"]), weighted=st.booleans())
def test_the_order_of_the_database_matters_only_to_the_database_rule(seed, ties, weighted):
    rng, queries, database, query_labels, database_labels, weights = random_problem(seed)
    order = rng.permutation(len(database))
    options = {"ties": ties, "bit_weights": weights if weighted else None}
    for score in (metrics.average_precision_per_query, metrics.ndcg_per_query):
        shuffled = score(queries, database[order], query_labels, database_labels[order], **options)
        kept = score(queries, database, query_labels, database_labels, **options)
        np.testing.assert_allclose(shuffled, kept, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=signs, factor=st.sampled_from([2.0**-20, 0.3, 7.0, 1e9]))
def test_scaling_the_weights_changes_nothing(seed, factor):
    _, *problem, weights = random_problem(seed)
    scaled = metrics.average_precision_per_query(*problem, bit_weights=weights * factor)
    np.testing.assert_array_equal(scaled, metrics.average_precision_per_query(*problem, bit_weights=weights))
