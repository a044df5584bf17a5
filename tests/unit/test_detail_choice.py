"""The number and weight of detail bits on data where the right answer is known."""

import numpy as np
import pytest

from hbmp.methods.hbmp import detail_choice
from hbmp.methods.hbmp.detail import TIE_BREAKING
from hbmp.methods.hbmp.detail_choice import choose_details, rising
from hbmp.methods.hbmp.detail_trials import SURE, ScoredRows, Search, Tried


def part(seed, n, n_bits, n_classes, error, repeat=1):
    """Class codes with bit errors; with repeat, the same few bits come again and again and bring nothing.

    Features say nothing of the class, so that details cannot stand in for label bits.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    targets = np.random.default_rng(0).choice([-1.0, 1.0], (n_classes, n_bits // repeat))
    flips = np.where(rng.random((n, n_bits // repeat)) < error, -1.0, 1.0)
    scores = np.tile(targets[y] * flips * rng.uniform(1, 3, flips.shape), repeat)
    return ScoredRows(scores, rng.standard_normal((n, 10)), y)


def ones(k):
    return np.ones(k)


def test_bits_that_bring_nothing_become_details():
    learned, held = (part(seed, 250, 32, 4, 0.0, repeat=4) for seed in (2, 3))
    choice = choose_details(learned, held, ones, random_state=0)
    assert choice.n_bits == 28  # two label bits would be too few
    assert choice.total >= TIE_BREAKING


def test_bits_that_are_all_needed_stay():
    learned, held = (part(seed, 600, 16, 60, 0.2) for seed in (2, 3))
    assert choose_details(learned, held, ones, random_state=0).n_bits == 0


def test_long_codes_always_have_some_details():
    learned, held = (part(seed, 300, 32, 60, 0.3) for seed in (2, 3))
    assert 0 < choose_details(learned, held, ones, random_state=0).n_bits <= 4


def test_a_higher_price_buys_more_details_until_they_are_not_worth_it():
    learned, held = (part(seed, 300, 32, 8, 0.05) for seed in (2, 3))
    found = [choose_details(learned, held, ones, price=price, random_state=0) for price in (0.0, 0.004, 1.0)]
    assert sorted(choice.n_bits for choice in found) == [choice.n_bits for choice in found]
    assert found[0].n_bits == 0 < found[1].n_bits < found[2].n_bits < 28


def test_multi_label_and_the_same_choice_twice():
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(2):
        labels = (rng.random((300, 6)) < 0.3).astype(np.float32)
        scores = np.tile(2 * labels - 1, 2) + 0.3 * rng.standard_normal((300, 12))
        parts.append(ScoredRows(scores, rng.standard_normal((300, 8)) + labels @ np.ones((6, 8)), labels))
    first, again = (choose_details(*parts, ones, random_state=0) for _ in range(2))
    assert first == again
    assert first.n_bits >= 1


@pytest.mark.parametrize("n_bits", [2, 4])
def test_very_short_codes(n_bits):
    learned, held = (part(seed, 200, n_bits, 3, 0.1) for seed in (2, 3))
    assert 0 <= choose_details(learned, held, ones, random_state=0).n_bits < n_bits


def test_a_search_is_scored_as_one_query_after_the_other():
    """Average precision and recall of the ten nearest against loops, without ties."""
    queries, database = part(5, 7, 6, 3, 0.2), part(6, 60, 6, 3, 0.2)
    search = Search(queries, database, ones)
    similarity = np.random.default_rng(0).permutation(7 * 60).reshape(7, 60).astype(np.float32)
    found = search.found(similarity)
    vectors = [rows.features / np.linalg.norm(rows.features, axis=1, keepdims=True) for rows in (queries, database)]
    precision, recall = [], []
    for i in range(7):
        order = np.argsort(-similarity[i])
        relevant = database.labels[order] == queries.labels[i]
        ranks = np.flatnonzero(relevant) + 1
        precision.append(np.mean([(k + 1) / rank for k, rank in enumerate(ranks)]))
        cosines = np.where(database.labels == queries.labels[i], vectors[1] @ vectors[0][i], -2)
        recall.append(len(set(np.argsort(-cosines)[:10]) & set(order[:10])) / 10)
    np.testing.assert_allclose(found.precision, precision, rtol=1e-5)
    assert found.recall == pytest.approx(np.mean(recall))


def test_label_bits_alone_cost_nothing():
    queries, database = part(5, 40, 8, 3, 0.2), part(6, 200, 8, 3, 0.2)
    search = Search(queries, database, ones)
    for real in (False, True):
        tried = search.tried(0.0, search.similarity(8, real), real)
        assert (tried.price, tried.error) == (0, 0)
        assert tried.worth == tried.recall == search.level[real].recall


def test_the_price_of_few_queries_is_less_certain():
    database = part(2, 300, 16, 8, 0.1)
    tried = []
    for n in (25, 400):
        search = Search(part(3, n, 16, 8, 0.1), database, ones)
        tried.append(search.tried(0.0, search.similarity(8, False), False))
    assert tried[0].error > 2 * tried[1].error
    assert not tried[1].within(tried[1].price)
    assert tried[1].within(tried[1].price + 1.01 * SURE * tried[1].error)


def test_queries_without_a_relevant_item_have_no_say():
    learned, held = part(2, 300, 32, 4, 0.0, repeat=4), part(3, 20, 32, 4, 0.0, repeat=4)
    strangers = ScoredRows(held.scores, held.features, 100 + np.arange(20))
    assert choose_details(learned, strangers, ones, random_state=0).n_bits in (0, 4)


def test_a_query_in_the_database_does_not_find_itself():
    rows, own = part(6, 60, 6, 3, 0.2), np.arange(60)
    search = Search(rows, rows, ones, own=own)
    assert not search.relevant[own, own].any()
    assert not search.near[own, own].any()
    np.testing.assert_array_equal(search.near.sum(axis=1), 10)
    alone = np.where(np.eye(60, dtype=bool), np.float32(1), np.float32(0))  # itself first, all others tied
    others = np.zeros((60, 60), np.float32)
    np.testing.assert_array_equal(search.found(alone).precision, search.found(others).precision)


def test_held_out_queries_are_searched_without_themselves(monkeypatch):
    searched = []

    class Watched(Search):
        def __init__(self, held, database, label_weights, thresholds, own):
            searched.append((held.features, database.features[own]))
            super().__init__(held, database, label_weights, thresholds, own)

    monkeypatch.setattr(detail_choice, "Search", Watched)
    learned, held = (part(seed, 120, 8, 4, 0.1) for seed in (2, 3))
    choose_details(learned, held, ones, random_state=0)
    np.testing.assert_array_equal(*searched[0])


def test_heavier_details_where_they_cost_nothing():
    """Two label bits that say the same: details may outweigh one of them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    scores = np.repeat(np.where(labels, 1.0, -1.0)[:, None], 16, axis=1)
    flipped = rng.random((400, 16)) < 0.05  # bits that split a class say nothing of it
    rows = ScoredRows(np.where(flipped, -scores, scores), rng.standard_normal((400, 10)), labels)
    choice = choose_details(rows.first(200), ScoredRows(rows.scores[200:], rows.features[200:], labels[200:]), ones)
    assert choice.n_bits >= 8
    assert choice.total > TIE_BREAKING


def test_prices_are_positive_and_rise_with_the_number_of_bits():
    prices, errors = (-0.01, 0.004, 0.002, 0.02), (0.001, 0.001, 0.001, 0.001)
    tries = [
        [Tried(0.9, price, error, 0.3), Tried(4.0, price + 0.005, 0.01, 0.4)]
        for price, error in zip(prices, errors, strict=True)
    ]
    found = rising(tries)
    np.testing.assert_allclose([each[0].price for each in found], [0, 0.003, 0.003, 0.02])
    np.testing.assert_allclose([each[1].price - each[0].price for each in found], 0.005)
    assert [each[1].recall for each in found] == [0.4] * 4
