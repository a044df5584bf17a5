"""What the paper proves and shows of its inference, as properties."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import hbmp
from hbmp.affinities import SameClass

IMPROVEMENTS = ["none", "resample", "one-flip", "tabu"]


@st.composite
def affinities(draw, low=3, high=14):
    n = draw(st.integers(low, high))
    values = draw(arrays(np.float64, (n, n), elements=st.floats(-1, 1, allow_subnormal=False)))
    return (values + values.T) / 2


@settings(max_examples=25, deadline=None)
@given(affinities(), st.integers(1, 12))
def test_hbmp_property_1_constant_steps_never_fit_a_non_integer_affinity(R, n_bits):
    R[0, 1] = R[1, 0] = 0.5 / n_bits  # times n_bits this is 1/2, which no sum of ±1 equals
    book = hbmp.infer_codes(R, n_bits, scheme="constant")
    assert (book.residuals > 0).all()
    assert np.abs(n_bits * R[0, 1] - book.codes[0].astype(int) @ book.codes[1]) >= 0.5


@pytest.mark.parametrize("improve", IMPROVEMENTS)
@pytest.mark.parametrize("scheme", ["greedy", "regress"])
@settings(max_examples=15, deadline=None)
@given(R=affinities(), seed=st.integers(0, 99))
def test_hbmp_theorem_2_the_residual_never_rises(scheme, improve, R, seed):
    book = hbmp.infer_codes(R, 10, scheme=scheme, improve=improve, random_state=seed)
    assert (np.diff(book.residuals) <= 1e-7 * max(1, book.residuals[0])).all()


@settings(max_examples=25, deadline=None)
@given(R=affinities(low=4), diagonal=st.sampled_from(["ignore", "fit"]))
def test_hbmp_corollary_3_it_falls_strictly_while_the_direction_is_not_orthogonal(R, diagonal):
    book = hbmp.infer_codes(R, 8, scheme="greedy", diagonal=diagonal)
    for t in range(book.n_bits):
        V, v = book.codes[:, :t].astype(float), book.codes[:, t].astype(float)
        Q = R - (V * book.weights[:t]) @ V.T
        if diagonal == "ignore":
            np.fill_diagonal(Q, 0)
        size = len(R) ** 2 - (len(R) if diagonal == "ignore" else 0)
        fall = (v @ Q @ v) ** 2 / size  # what an exact step brings
        assert book.residuals[t] ** 2 - book.residuals[t + 1] ** 2 == pytest.approx(fall, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(R=affinities(), k=st.integers(1, 8))
def test_hbmp_property_4_refitting_never_raises_it(R, k):
    greedy = hbmp.infer_codes(R, 8, scheme="greedy", tol=0)
    V, off = greedy.codes[:, :k].astype(float), ~np.eye(len(R), dtype=bool)
    design = np.stack([np.outer(v, v)[off] for v in V.T], axis=1)
    refitted = np.linalg.norm(R[off] - design @ np.linalg.lstsq(design, R[off], rcond=None)[0])
    assert refitted <= greedy.residuals[k] + 1e-7


@pytest.mark.parametrize("improve", IMPROVEMENTS)
def test_ten_classes_are_fitted_by_48_bits(improve):
    book = hbmp.infer_codes(2 * np.eye(10) - 1, 48, improve=improve)
    assert 45 <= book.n_bits <= 48
    assert book.residuals[-1] < 1e-4


def test_one_flip_explains_more_than_the_signs_of_the_eigenvector():
    R = 2 * np.eye(10) - 1
    plain = [hbmp.infer_codes(R, 16, improve="none", random_state=s).relative_residuals[-1] for s in range(5)]
    searched = [hbmp.infer_codes(R, 16, random_state=s).relative_residuals[-1] for s in range(5)]
    assert np.mean(searched) < 0.53 < np.mean(plain) - 0.1


@pytest.mark.parametrize("n_bits", [8, 16, 32])
def test_regress_leaves_less_than_constant(n_bits):
    R = SameClass().fit(None, np.arange(20))
    regress, constant = (hbmp.infer_codes(R, n_bits, scheme=s) for s in ("regress", "constant"))
    assert regress.relative_residuals[-1] < constant.relative_residuals[-1]


def test_codes_of_classes_beat_codes_of_instances():
    """Fig. 1 c-e: a thousand instances of ten classes, the paper's own inference on both."""
    y = np.repeat(np.arange(10), 100)
    for n_bits in (12, 24):
        scores, residuals = {}, {}
        for items in ("classes", "instances"):
            affinity = SameClass(items=items).fit(None, y)
            book = hbmp.infer_codes(affinity, n_bits, improve="resample", diagonal="fit")
            codes = book.codes[affinity.item_of_]
            queries = np.random.default_rng(0).choice(1000, 100, replace=False)
            rest = np.setdiff1d(np.arange(1000), queries)
            scores[items] = hbmp.metrics.mean_average_precision(
                codes[queries], codes[rest], y[queries], y[rest], bit_weights=book.weights, ties="average"
            )
            residuals[items] = book.relative_residuals[-1]
        assert scores["classes"] >= scores["instances"] - 1e-12


def test_unseen_label_sets_lie_where_their_affinities_say():
    rng = np.random.default_rng(0)
    labels = (rng.random((400, 8)) < 0.3).astype(int)
    labels = np.unique(labels[labels.any(axis=1)], axis=0)
    rng.shuffle(labels)
    known, new = labels[:-20], labels[-20:]
    book = hbmp.infer_codes(hbmp.affinities.SharedLabels().fit(None, known), 24)
    agreement = (book.encode(new) * book.weights) @ book.codes.T
    close = book.affinity.cross(new) > 0
    ranked = [np.mean(row[near][:, None] > row[~near][None, :]) for row, near in zip(agreement, close, strict=True)]
    assert np.mean(ranked) > 0.9  # share of pairs (sharing, not sharing) that are ranked right


CODES_IN_A_FRESH_PROCESS = """
import numpy as np, hbmp
rng = np.random.default_rng(0)
values = rng.uniform(-1, 1, (90, 90))
labels = np.unique((rng.random((3500, 14)) < 0.35).astype(int), axis=0)
books = [
    hbmp.infer_codes(2 * np.eye(10) - 1, 24),
    hbmp.infer_codes(2 * np.eye(100) - 1, 16),
    hbmp.infer_codes((values + values.T) / 2, 12),
    hbmp.infer_codes(hbmp.affinities.SharedLabels().fit(None, labels), 8),
]
print([hash(book.codes.tobytes()) for book in books])
"""


def test_same_seed_same_codes_on_any_blas():
    """Other processor kernels and thread counts round differently; the codes must not change."""
    outputs = set()
    for kernel, threads in [("Haswell", "2"), ("Nehalem", "1"), ("Haswell", "1")]:
        changed = {"OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": "0"}
        run = subprocess.run(
            [sys.executable, "-c", CODES_IN_A_FRESH_PROCESS],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, **changed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1, outputs
