"""Near-duplicates: every pair is found, the threshold keeps its rate, groups and kept items are as stated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hbmp
from hbmp.dedup import calibrate, loops, pairs_within
from hbmp.dedup.finding import _CANDIDATES, _codes, bits_for, bits_on, radius_for
from hbmp.dedup.joining import as_words
from hbmp.dedup.space import Space


def joined(parts):
    """Pairs and distances as one sorted list."""
    return sorted(
        (int(i), int(j), int(d)) for rows, others, apart in parts for i, j, d in zip(rows, others, apart, strict=True)
    )


def slow_pairs(bits, radius, first_new=0):
    """Every pair by a double loop."""
    found = []
    for i in range(max(first_new, 0), len(bits)):
        for j in range(i):
            apart = int((bits[i] != bits[j]).sum())
            if apart <= radius:
                found.append((i, j, apart))
    return sorted(found)


@settings(max_examples=25)
@given(st.integers(1, 90), st.sampled_from([5, 64, 72, 130, 200, 330]), st.integers(0, 200), st.data())
def test_the_join_finds_exactly_the_pairs_of_a_double_loop(n, n_bits, radius, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    bits = rng.random((n, n_bits)) < 0.5
    copies = rng.integers(0, n, n // 2)
    bits[rng.integers(0, n, n // 2)] = bits[copies] ^ (rng.random((n // 2, n_bits)) < 0.05)
    first_new = data.draw(st.integers(0, n))
    packed = np.packbits(bits, axis=1, bitorder="little")
    wanted = slow_pairs(bits, radius, first_new)
    assert joined(pairs_within(packed, radius, first_new=first_new)) == wanted
    words = as_words(packed)
    assert joined([loops.by_numpy(words, first_new, n, radius)]) == wanted
    for first in range(1, len(words) + 1):
        assert joined([loops.by_machine_code(words, first_new, n, radius, first)]) == wanted


def test_a_join_of_more_pairs_than_one_call_holds(monkeypatch):
    monkeypatch.setattr(loops, "_MOST", 3000)
    packed = np.zeros((2500, 8), np.uint8)
    done = []
    found = list(pairs_within(packed, 0, progress=done.append))
    assert sum(len(rows) for rows, _, _ in found) == 2500 * 2499 // 2
    assert sum(done) == 2500


def test_radius_and_bits_follow_from_the_threshold():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 60)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    noise = rng.standard_normal(X.shape)
    noise -= (noise * X).sum(axis=1, keepdims=True) * X
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    for threshold in (0.6, 0.9):
        Y = threshold * X + np.sqrt(1 - threshold**2) * noise
        n_bits = bits_for(threshold)
        directions = rng.standard_normal((60, n_bits))
        apart = ((X @ directions > 0) != (Y @ directions > 0)).sum(axis=1)
        assert (apart > radius_for(threshold, n_bits)).mean() <= 1e-3
        assert bits_for(threshold) % 64 == 0


def test_items_that_lie_close_together_get_longer_codes():
    rng = np.random.default_rng(0)
    spread, cone = rng.standard_normal((2, 1500, 200))
    cone[:, 0] += 15  # all within a narrow cone, as many embeddings are
    many = 400  # copies of each row stand for a large set of the same shape; they are no candidates in vain
    for X, longer in ((spread, False), (cone, True)):
        rows = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float16)
        n_bits = bits_on(np.repeat(rows, many, axis=0), 0.75)
        assert (n_bits > bits_for(0.75)) == longer
        bits = np.unpackbits(_codes(rows, n_bits, 0), axis=1, bitorder="little")[:, :n_bits].astype(np.int16)
        apart = bits @ (1 - bits.T) + (1 - bits) @ bits.T
        similar = rows.astype(np.float32) @ rows.T.astype(np.float32) >= 0.75
        share = np.mean((apart <= radius_for(0.75, n_bits)) & ~similar)
        assert n_bits == 1024 or share * many * len(rows) / 2 <= 2 * _CANDIDATES


@pytest.mark.parametrize("kind", ["normal", "clusters", "uneven"])
@pytest.mark.parametrize("copies", [0, 600])
def test_the_threshold_keeps_its_rate_on_items_it_has_not_seen(kind, copies):
    """Also where most items of the sample have near-duplicates."""
    rng = np.random.default_rng(3)
    spread = 1 / np.sqrt(np.arange(1, 41)) if kind == "uneven" else np.ones(40)
    centres = rng.standard_normal((30, 40)) * (0.5 if kind == "clusters" else 0)

    def draw(n):
        return (rng.standard_normal((n, 40)) + centres[rng.integers(0, 30, n)]) * spread

    X = draw(1500)
    X = np.concatenate([X, X[:copies] + 0.05 * draw(copies)])
    space = Space(X)
    rows = space.rows(X)
    assert rows.dtype == np.float16
    for rate in (1e-4, 1e-6):
        found = calibrate(rows, rate=rate)
        others = space.rows(draw(4000)).astype(np.float32)
        seen = ((others @ others.T >= found.threshold).sum() - 4000) / (4000 * 3999)
        assert rate / 8 < max(seen, 1 / 8e6) < rate * 8, (kind, copies, rate, seen)
        if copies:
            pairs = (rows[:copies].astype(np.float32) * rows[1500:].astype(np.float32)).sum(axis=1)
            assert (pairs >= found.threshold).mean() > 0.95


def test_copies_are_found_grouped_and_removed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 48)).astype(np.float32)
    X = np.concatenate([X, X[:20] + 0.05 * rng.standard_normal((20, 48)), X[:5] * 3])
    found = hbmp.deduplicate(X)
    assert [group.tolist() for group in found.groups[:5]] == [[i, 600 + i, 620 + i] for i in range(5)]
    assert [group.tolist() for group in found.groups[5:]] == [[i, 600 + i] for i in range(5, 20)]
    assert found.removed.tolist() == list(range(600, 625))
    assert found.unique.tolist() == list(range(600))
    assert found.expected_false_pairs == pytest.approx(0.01 / 625 * 625 * 624 / 2)
    assert found.about().startswith("20 groups of near-duplicates with 25 items to remove, among 625 items")
    assert hbmp.deduplicate(X[:600]).about().startswith("No near-duplicates among 600 items")
    rows = Space(X).rows(X).astype(np.float32)
    for (i, j), similarity in zip(found.pairs, found.similarities, strict=True):
        assert similarity == pytest.approx(min(float(rows[i] @ rows[j]), 1), abs=1e-5)


def test_the_result_does_not_depend_on_the_length_of_the_codes():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 20)).astype(np.float32)
    X = np.concatenate([X, X[:50] + 0.4 * rng.standard_normal((50, 20))])
    first = hbmp.deduplicate(X, threshold=0.9)
    rows = Space(X).rows(X).astype(np.float32)
    exact = [(i, j) for i in range(450) for j in range(i) if rows[i] @ rows[j] >= 0.9]
    assert list(map(tuple, first.pairs.tolist())) == exact
    assert hbmp.deduplicate(X, threshold=0.9, n_bits=512).pairs.tolist() == first.pairs.tolist()


def test_the_largest_is_kept_and_old_items_always_are():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 24)).astype(np.float32)
    copies = X[:10] + 0.02
    sizes = np.r_[np.ones(300), np.full(10, 2.0)]
    largest = hbmp.deduplicate(np.concatenate([X, copies]), keep="largest", sizes=sizes)
    assert largest.removed.tolist() == list(range(10))
    new = np.concatenate([copies, rng.standard_normal((5, 24)), copies[:2] * 2]).astype(np.float32)
    grown = hbmp.deduplicate(new, against=X)
    assert grown.removed.tolist() == [*range(300, 310), 315, 316]
    assert grown.unique.tolist() == [310, 311, 312, 313, 314]
    assert (grown.kept < 300).all()
    old_twice = np.concatenate([X, X[:3]])
    assert hbmp.deduplicate(rng.standard_normal((20, 24)), against=old_twice).groups == []


def test_every_removed_item_is_near_a_kept_one_and_kept_ones_are_apart():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((300, 12)), axis=0)  # a walk: chains of near items
    for keep in ({}, {"keep": "largest", "sizes": rng.random(300)}):
        found = hbmp.deduplicate(X, threshold=0.9, **keep)
        near = {tuple(pair) for pair in found.pairs.tolist()} | {(j, i) for i, j in found.pairs.tolist()}
        kept = found.kept.tolist()
        assert max(map(len, found.groups)) > 10
        assert len(kept) > len(found.groups)
        assert not any((i, j) in near for i in kept for j in kept)
        assert all(any((row, other) in near for other in kept) for row in found.removed.tolist())
        assert sorted([*kept, *found.removed.tolist()]) == sorted(np.concatenate(found.groups).tolist())


def test_items_without_direction_are_one_group():
    X = np.random.default_rng(0).standard_normal((200, 16)).astype(np.float32)
    X[[3, 50, 100]] = 0
    assert [group.tolist() for group in hbmp.deduplicate(X).groups] == [[3, 50, 100]]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"X": np.zeros((50, 4))}, "0 items are too few to estimate"),
        ({"X": np.ones((5, 4)), "false_positives": 2.0}, "between 0 and 1; found 2.0"),
        ({"X": np.ones((5, 4)), "threshold": 1.5}, "between 0 and 1, found 1.5"),
        ({"X": np.ones((5, 4)), "threshold": 0.9, "false_positives": 0.1}, "pass only one of them"),
        ({"X": np.ones((5, 4)), "keep": "last"}, "keep must be 'first' or 'largest', found 'last'."),
        ({"X": np.ones((5, 4)), "keep": "largest"}, "needs sizes="),
        ({"X": np.ones((5, 4)), "keep": "largest", "sizes": [1]}, "There are 5 items but 1 sizes"),
        ({"X": np.ones((5, 4)), "against": np.ones((5, 3))}, "Old items have 3 features and new ones 4."),
        ({"X": ["a", "b"]}, "Features are numbers of shape (n, d)"),
    ],
)
def test_mistakes_are_named(settings, sentence):
    with pytest.raises(ValueError) as raised:
        hbmp.deduplicate(**settings)
    assert sentence in str(raised.value)


def test_one_item_and_none_have_no_duplicates():
    assert hbmp.deduplicate(np.ones((1, 4))).groups == []
    assert hbmp.deduplicate(np.ones((0, 4))).unique.tolist() == []
