"""Coordinate sweeps, compiled and blocked, against the obvious loop; on whole numbers, so that sums are exact."""

import numpy as np
import pytest

from hbmp.pursuit import sweeps
from hbmp.pursuit.features import fit_atoms, refine
from hbmp.pursuit.radial import RadialTerms


def problem(n=50, b=70, seed=0):
    rng = np.random.default_rng(seed)
    overlaps = rng.integers(-3, 4, (b, b))
    overlaps = np.tril(overlaps, -1) + np.tril(overlaps, -1).T
    scores = rng.integers(-60, 61, (n, b))
    return scores.astype(np.float32), overlaps.astype(np.float32), np.where(scores >= 0, 1, -1).astype(np.float32)


def slow(scores, codes, overlaps, n_sweeps):
    codes = codes.copy()
    for score, code in zip(scores, codes, strict=True):
        for _ in range(n_sweeps):
            before = code.copy()
            for bit in range(len(code)):
                pull = sum(overlaps[bit, other] * code[other] for other in range(len(code)))
                code[bit] = 1 if score[bit] - pull >= 0 else -1
            if (code == before).all():
                break
    return codes


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("n_sweeps", [1, 2, 100])
@pytest.mark.parametrize("n_bits", [1, 31, 70])
def test_sweeps_are_the_obvious_loop(n_sweeps, n_bits, compiled, monkeypatch):
    if compiled:
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(sweeps, "compiled_kernel", lambda: None)
    scores, overlaps, codes = problem(n=12, b=n_bits)
    expected = slow(scores, codes, overlaps, n_sweeps)
    assert n_bits == 1 or (expected != codes).any()
    sweeps.sweep_codes(scores, codes, overlaps, n_sweeps)
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_radial_term_is_one_more_square(compiled, monkeypatch):
    """No bit of a settled code can be flipped for less squared error and squared radial error together."""
    if compiled:
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(sweeps, "compiled", lambda loop: None)
    scores, overlaps, codes = problem(n=12, b=40)
    terms = RadialTerms(2.0, np.arange(40, dtype=np.float32) % 3, 5.0)
    targets = np.full(12, 100, dtype=np.float32)
    plain = codes.copy()
    sweeps.sweep_codes(scores, plain, overlaps, 100)
    sweeps.sweep_codes(scores, codes, overlaps, 100, (terms, targets))

    def cost(codes):
        error = terms.aims(targets) - (terms.products(scores) * codes).sum(axis=1)
        return (codes @ overlaps * codes - 2 * scores * codes).sum(axis=1) + error**2

    least = cost(codes)
    for bit in range(40):
        flipped = codes.copy()
        flipped[:, bit] *= -1
        assert (cost(flipped) >= least).all()
    assert (cost(plain) > least).mean() > 0.9


def test_parts_and_threads_change_nothing(monkeypatch):
    scores, overlaps, codes = problem(n=200)
    alone, parted = codes.copy(), codes.copy()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    sweeps.sweep_codes(scores, alone, overlaps, 5)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(sweeps, "_ROWS", 16)
    sweeps.sweep_codes(scores, parted, overlaps, 5)
    np.testing.assert_array_equal(alone, parted)
    assert (alone != codes).any()


def test_what_is_unexplained_is_the_residual_and_never_rises_at_full_coupling():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((400, 20))
    start = np.where(rng.random((400, 40)) < 0.5, 1.0, -1.0)
    _, left = refine(points, start, 1.0, 12)
    residual = points - start @ fit_atoms(start, points)
    assert left[0] == pytest.approx(np.square(residual).sum() / np.square(points).sum(), rel=1e-5)
    assert (np.diff(left) <= 1e-9).all()
    assert left[-1] < 0.7 * left[0]


def test_it_stops_where_little_is_gained():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((300, 8)).astype(np.float32)
    start = np.where(points >= 0, np.float32(1), np.float32(-1))
    assert len(refine(points, start, 1.0, 50, tol=0.01)[1]) < len(refine(points, start, 1.0, 50)[1])
