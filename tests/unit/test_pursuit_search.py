"""Tabu search and codes of unseen items against loops that spell out every rule."""

import numpy as np
import pytest

import hbmp
from hbmp.pursuit.bqp import one_flip, tabu
from hbmp.pursuit.fit import Fit
from hbmp.pursuit.operator import as_operator


def fit_of(R):
    fit = Fit(as_operator(R), np.ones(len(R)), diagonal="ignore", intercept=False, scale=1.0)
    fit.weights = np.empty(0)
    return fit, R - np.diag(np.diag(R))


def obvious_tabu(A, signs, seed, *, aspiration):
    """(best value, how often a tabu flip was allowed because it beat the best seen), from a one-flip optimum."""
    rng, n = np.random.default_rng(seed), len(signs)
    signs = signs.astype(float).copy()
    value = best = signs @ A @ signs
    free_again, used, last, step = np.zeros(n, int), 0, 0, 0
    while step - last < min(10 * n, 1000 + n // 10):
        step += 1
        gains = [-4 * signs[i] * (A[i] @ signs) for i in range(n)]
        beats = [aspiration and value + gains[i] > best + 1e-9 for i in range(n)]
        allowed = [i for i in range(n) if free_again[i] <= step or beats[i]]
        if not allowed:
            continue
        item = max(allowed, key=lambda i: round(gains[i], 9))
        used += free_again[item] > step
        value += gains[item]
        signs[item] *= -1
        free_again[item] = step + n // 10 + int(rng.integers(1, 11))
        if value > best + 1e-9:
            best, last = value, step
    return best, used


@pytest.mark.parametrize("seed", [0, 1, 24, 40])
def test_tabu_allows_a_tabu_flip_that_beats_the_best_seen(seed):
    rng, n = np.random.default_rng(seed), 30
    R = rng.uniform(-1, 1, (n, n))
    fit, A = fit_of((R + R.T) / 2)
    start = np.where(rng.random(n) < 0.5, np.int8(1), np.int8(-1))
    optimum, _ = one_flip(fit, start, A @ start)
    expected, used = obvious_tabu(A, optimum, seed, aspiration=True)
    found, _ = tabu(fit, start, A @ start, np.random.default_rng(seed))
    assert found @ A @ found == pytest.approx(expected, abs=1e-6)
    if seed in (24, 40):  # without the rule, the search misses this vector
        assert used > 0
        assert obvious_tabu(A, optimum, seed, aspiration=False)[0] < expected - 0.1


@pytest.mark.parametrize("intercept", [False, True])
def test_codes_of_unseen_items_leave_out_what_the_intercept_explains(intercept):
    rng = np.random.default_rng(2)
    R = np.clip(rng.normal(0.6, 0.3, (40, 40)), -1, 1)
    book = hbmp.infer_codes((R + R.T) / 2, 6, intercept=intercept)
    assert (abs(book.intercept) > 0.2) == intercept
    affinities = np.clip(rng.normal(0.6, 0.3, (25, 40)), -1, 1)
    every = np.array([[1 - 2 * ((code >> k) & 1) for k in range(6)] for code in range(64)], dtype=float)
    for row, code in zip(affinities, book.codes_from_affinities(affinities), strict=True):
        error = [((row - (u * book.weights) @ book.codes.T - book.intercept) ** 2).sum() for u in every]
        reached = ((row - (code * book.weights) @ book.codes.T - book.intercept) ** 2).sum()
        one_flip_away = [((row - (u * book.weights) @ book.codes.T - book.intercept) ** 2).sum() for u in flips(code)]
        assert min(error) - 1e-9 <= reached <= min(one_flip_away) + 1e-9


def flips(code):
    """The six codes that differ in one bit."""
    return [np.where(np.arange(len(code)) == k, -code, code).astype(float) for k in range(len(code))]
