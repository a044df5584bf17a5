"""The choice among target codes: by a probe against closed-form solutions, and by what it retrieves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from small_models import small

from hbmp.hamming import signs
from hbmp.methods.hbmp import select as parts
from hbmp.methods.hbmp.plan import Plan
from hbmp.methods.hbmp.select import HeldOut, select
from hbmp.methods.hbmp.targets import Target
from hbmp.metrics import mean_average_precision, self_retrieval_map


@pytest.fixture
def held_out():
    X, y = make_blobs(300, n_features=5, centers=6, cluster_std=3.0, random_state=2)
    return HeldOut.split(X.astype(np.float32), y, np.random.default_rng(0))


def test_no_row_is_learned_and_held_out(held_out):
    assert len(held_out.held) == 60
    assert sorted([*held_out.held, *held_out.learned]) == list(range(300))


def test_large_data_are_cut_to_what_a_probe_needs(monkeypatch):
    monkeypatch.setattr(parts, "_MOST_HELD", 30)
    monkeypatch.setattr(parts, "_MOST_LEARNED", 50)
    found = HeldOut.split(np.zeros((300, 2)), np.zeros(300), np.random.default_rng(0))
    assert (len(found.held), len(found.learned)) == (30, 50)
    assert not set(found.held) & set(found.learned)


def test_a_probe_is_ridge_regression_on_kernel_features(held_out, monkeypatch):
    monkeypatch.setattr(parts, "_ANCHORS", 40)
    rng = np.random.default_rng(1)
    codes = [np.where(rng.random((300, bits)) < 0.5, -1, 1) for bits in (3, 4)]
    learned, held = held_out._kernel_features()
    centre = learned.mean(axis=0)
    for (of_held, of_learned), targets in zip(held_out.probe(codes), codes, strict=True):
        own = targets[held_out.learned].astype(float)
        A = (learned - centre).astype(float)
        ridge = parts._RIDGE * np.trace(A.T @ A) / 40
        stacked = np.vstack([A, np.sqrt(ridge) * np.eye(40)])
        W = np.linalg.lstsq(stacked, np.vstack([own - own.mean(axis=0), np.zeros((40, own.shape[1]))]), rcond=None)[0]
        for found, rows in ((of_held, held), (of_learned, learned)):
            scores = (rows - centre) @ W + own.mean(axis=0)
            clear = np.abs(scores) > 1e-3
            np.testing.assert_array_equal(found[clear], signs(scores)[clear])


@pytest.mark.parametrize("multi_label", [False, True])
def test_retrieval_is_the_mean_over_new_and_learned_rows(multi_label):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    labels = np.eye(3)[labels] if multi_label else labels
    found = HeldOut.split(np.zeros((300, 2)), labels, rng)
    held, learned = (np.where(rng.random((n, 8)) < 0.5, np.int8(-1), np.int8(1)) for n in (60, 240))
    own, theirs = labels[found.held], labels[found.learned]
    scores = []
    for cutoffs, metric, arguments in (
        ((None, 20), self_retrieval_map, (held, own)),
        ((None, 20), mean_average_precision, (held, learned, own, theirs)),
    ):
        used = cutoffs if multi_label else (None,)
        scores.append(np.mean([metric(*arguments, cutoff=cutoff, ties="average") for cutoff in used]))
    assert found.retrieval(held, learned) == pytest.approx(np.mean(scores))


def test_codes_that_can_be_learned_win():
    X, y = make_blobs(300, n_features=5, centers=4, random_state=2)
    X = X.astype(np.float32)
    good = small(8, feature_share=0).infer(y)
    rng = np.random.default_rng(0)
    noise = np.where(rng.random((300, 8)) < 0.5, np.int8(-1), np.int8(1))
    plan = Plan(n_bits=8, feature_share=(0.0, 0.5))
    noisy = Target(None, _Rows(np.arange(300)), _Book(noise))
    right = Target(None, good.affinity, good)
    for order in ([noisy, right], [right, noisy]):
        assert select(order, plan, X, y, np.random.default_rng(0)) is right
    assert select([noisy, right], Plan(n_bits=8), X, y, np.random.default_rng(0)) is noisy  # nothing is open


def test_of_equal_candidates_the_one_of_better_short_codes_wins():
    X, y = make_blobs(300, n_features=5, centers=4, random_state=2)
    own = np.where((np.arange(4) >> np.arange(4)[:, None]) & 1, np.int8(1), np.int8(-1)).T[y]
    same = np.ones_like(own)
    late, early = (Target(None, _Rows(np.arange(300)), _Book(np.hstack(parts))) for parts in ([same, own], [own, same]))
    plan = Plan(n_bits=8, feature_share=(0.0, 0.5))
    for order in ([late, early], [early, late]):
        assert select(order, plan, X.astype(np.float32), y, np.random.default_rng(0)) is early


class _Rows:
    def __init__(self, item_of):
        self.item_of_ = item_of


class _Book:
    def __init__(self, codes):
        self.codes = codes


def test_the_choice_is_kept_in_the_plan():
    X, y = make_blobs(400, n_features=5, centers=6, cluster_std=4.0, random_state=2)
    model = small(12).fit(X.astype(np.float32), y)
    assert model.plan_.feature_share in (0, 0.1, 0.3, 0.5, 0.7)
    assert not model.plan_.open
    base = getattr(model.codebook_.affinity, "share", 0.0)
    assert base == model.plan_.feature_share
