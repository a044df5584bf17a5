"""Labelled fits of features in a memory map: batches from disk give the fit of the same features in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import hbmp
from hbmp.functions import MLP, Linear
from hbmp.functions._shared.disk_batches import is_on_disk
from hbmp.functions._shared.feedforward import _standardisation


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """60,000 × 256 features of 12 classes on disk, 61 MB, and the classes."""
    rng, y = np.random.default_rng(0), np.arange(60_000) % 12
    centres = rng.standard_normal((12, 256)).astype(np.float32)
    path = tmp_path_factory.mktemp("features") / "x.npy"
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(60_000, 256))
    for start in range(0, len(X), 6000):
        X[start : start + 6000] = centres[y[start : start + 6000]] + rng.standard_normal((6000, 256), np.float32)
    X.flush()
    return np.load(path, mmap_mode="r"), y


@pytest.mark.parametrize("function", [Linear(epochs=2), MLP(epochs=2, hidden=(8,))])
def test_a_memory_map_gives_the_same_function_as_memory(mapped, function):
    X, y = mapped[0][:900], mapped[1][:900]
    on_disk, in_memory = (hbmp.HBMP(8, function=function, random_state=0).fit(rows, y) for rows in (X, np.array(X)))
    np.testing.assert_array_equal(on_disk.project(X), in_memory.project(X))


def test_views_of_a_memory_map_are_on_disk(mapped):
    X = mapped[0]
    assert is_on_disk(X)
    assert is_on_disk(np.asarray(X)[10:20])
    assert not is_on_disk(np.array(X[:5]))
    assert not is_on_disk(X[:5] * 2)


def test_a_labelled_fit_never_holds_the_features(mapped):
    X, y = mapped
    function = MLP(epochs=1, hidden=(8,), batch_size=1024)
    model = hbmp.HBMP(8, function=function, feature_share=0.5, random_state=0)  # a choice holds 5,000 rows at most
    model.fit(X[:400], y[:400])  # imports
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(model.function_.loss_) == 1
    assert peak < X.nbytes / 3, f"{peak:,} of {X.nbytes:,} bytes"
    assert model.unmatched_ < 0.3


def test_standardisation_by_blocks_is_that_of_numpy(mapped):
    X = np.array(mapped[0][:40_000])
    X[:, 3] = 0.5
    mean, scale = _standardisation(X)
    np.testing.assert_allclose(mean, X.mean(axis=0, dtype=np.float64), rtol=1e-12)
    expected = X.std(axis=0, dtype=np.float64)
    expected[3] = 1
    np.testing.assert_allclose(scale, expected, rtol=1e-12)
