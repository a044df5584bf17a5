"""Codes without labels at other sizes: more bits than features, prefixes that are codes, data larger than memory."""

import tracemalloc

import numpy as np
import pytest

import hbmp
from hbmp.methods.hbmp.recall import nearest, shares_found
from hbmp.methods.hbmp.stages import stage_sizes
from hbmp.methods.hbmp.unlabelled import Rebuilding


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((2200, 24)) @ (rng.standard_normal((24, 24)) * 0.85 ** np.arange(24))).astype(np.float32)
    return X[:200], X[200:]


def recall(queries, rows, rebuilt):
    near = nearest(queries @ rows.T - np.square(rows).sum(axis=1) / 2, 10)
    return shares_found(queries @ rebuilt.T - np.square(rebuilt).sum(axis=1) / 2, near, 10).mean()


def test_more_bits_than_features_rebuild_ever_more(data):
    found, left = [], []
    for n_bits in (24, 48, 96):
        model = hbmp.HBMP(n_bits, random_state=0).fit(data[1])
        rebuilt = model.function_.rebuild(model.transform(data[1]))
        left.append(np.square(data[1] - rebuilt).sum() / np.square(data[1] - data[1].mean(axis=0)).sum())
        found.append(recall(*data, rebuilt))
    assert left[1] < left[0] / 1.8
    assert left[2] < left[1] / 1.4
    assert (np.diff(found) > 0.05).all()


def test_prefixes_of_nested_codes_are_codes(data):
    assert stage_sizes(64, True) == [8, 8, 16, 32]
    assert stage_sizes(5, True) == [1, 1, 3]
    assert stage_sizes(64, False) == [64]
    found = {}
    for nested in (True, False):
        model = hbmp.HBMP(32, function=Rebuilding(nested=nested), random_state=0).fit(data[1])
        codes, queries = model.transform(data[1]).astype(np.float32), data[0] - model.function_.mean_
        decoder, rows = model.function_.decoder_, data[1] - model.function_.mean_
        found[nested] = [recall(queries, rows, codes[:, :n] @ decoder[:n]) for n in (8, 32)]
    assert found[True][0] > found[False][0] + 0.03
    assert found[True][1] > found[False][1] - 0.05


def test_query_scores_are_inner_products_with_rebuilt_vectors(data):
    model = hbmp.HBMP(16, function=Rebuilding(length_bits=0), random_state=0).fit(data[1])
    codes, function = model.transform(data[1]), model.function_
    scores = function.query_scores(data[0], model.bit_weights_) @ (codes * model.bit_weights_).T
    rebuilt = function.rebuild(codes) - function.mean_
    np.testing.assert_allclose(scores, data[0] @ rebuilt.T, rtol=1e-3, atol=1e-3)


def test_nested_scores_have_the_signs_of_the_codes(data):
    function = Rebuilding(nested=True)
    book = function.pursue(data[1], 32, random_state=0)
    np.testing.assert_array_equal(np.where(function.project(data[1]) >= 0, 1, -1), book.codes)


def test_a_memory_mapped_source_is_sampled_and_never_copied(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "x.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(120_000, 64))
    for start in range(0, len(mapped), 10_000):
        mapped[start : start + 10_000] = rng.standard_normal((10_000, 64))
    mapped.flush()
    X = np.load(path, mmap_mode="r")
    hbmp.HBMP(8, function=Rebuilding(max_rows=300), random_state=0).fit(X[:400])  # compiles, imports
    tracemalloc.start()
    model = hbmp.HBMP(16, function=Rebuilding(max_rows=3000, n_iter=3), random_state=0).fit(X)
    codes = model.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert codes.shape == (120_000, 16)
    assert X.nbytes > 30_000_000
    assert peak < X.nbytes / 2
