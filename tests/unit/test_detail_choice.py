"""The number and weight of detail bits on data where the right answer is known."""

import numpy as np
import pytest

from hbmp.methods.hbmp.detail import TIE_BREAKING
from hbmp.methods.hbmp.detail_choice import SHARES, ScoredRows, choose_details


def part(seed, n, n_bits, n_classes, error, repeat=1):
    """Class codes with bit errors; with repeat, the same few bits come again and again and bring nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    targets = np.random.default_rng(0).choice([-1.0, 1.0], (n_classes, n_bits // repeat))
    flips = np.where(rng.random((n, n_bits // repeat)) < error, -1.0, 1.0)
    scores = np.tile(targets[y] * flips * rng.uniform(1, 3, flips.shape), repeat)
    features = rng.standard_normal((n, 10)) + 2 * np.random.default_rng(1).standard_normal((n_classes, 10))[y]
    return ScoredRows(scores, features, y)


def ones(k):
    return np.ones(k)


def test_bits_that_bring_nothing_become_details():
    learned, held = (part(seed, 600, 32, 4, 0.0, repeat=4) for seed in (2, 3))
    choice = choose_details(learned, held, ones, random_state=0)
    assert choice.n_bits == round(max(SHARES) * 32)
    assert choice.total >= TIE_BREAKING


def test_bits_that_are_all_needed_stay():
    learned, held = (part(seed, 600, 16, 60, 0.2) for seed in (2, 3))
    assert choose_details(learned, held, ones, random_state=0).n_bits == 0


def test_long_codes_always_have_some_details():
    learned, held = (part(seed, 600, 32, 60, 0.3) for seed in (2, 3))
    assert choose_details(learned, held, ones, random_state=0).n_bits == 4


def test_a_higher_price_buys_more_details():
    learned, held = (part(seed, 500, 32, 20, 0.12) for seed in (2, 3))
    found = [choose_details(learned, held, ones, price=price, random_state=0) for price in (0.0, 0.02, 0.1, 1.0)]
    assert sorted(choice.n_bits for choice in found) == [choice.n_bits for choice in found]
    assert found[0].n_bits < found[-1].n_bits == 24
    assert found[-1].total == found[-1].total_real == 24  # a price of 1 allows whole weights


def test_multi_label_and_the_same_choice_twice():
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(2):
        labels = (rng.random((300, 6)) < 0.3).astype(np.float32)
        scores = np.tile(2 * labels - 1, 2) + 0.3 * rng.standard_normal((300, 12))
        parts.append(ScoredRows(scores, rng.standard_normal((300, 8)) + labels @ np.ones((6, 8)), labels))
    first, again = (choose_details(*parts, ones, random_state=0) for _ in range(2))
    assert first == again
    assert first.n_bits >= 2


@pytest.mark.parametrize("n_bits", [2, 4])
def test_very_short_codes(n_bits):
    learned, held = (part(seed, 200, n_bits, 3, 0.1) for seed in (2, 3))
    assert 0 <= choose_details(learned, held, ones, random_state=0).n_bits < n_bits
