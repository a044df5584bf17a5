"""Without labels: the pursuit on features leads iterative quantisation and randomly rotated components, on digits."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import hbmp
from hbmp.methods.hbmp.unlabelled import Rebuilding


@pytest.fixture(scope="module")
def digits():
    """Queries and database of unit length, as the labelme protocol has them, and grades by distance."""
    X = load_digits().data.astype(np.float32)
    X = X[np.random.default_rng(0).permutation(len(X))]
    X -= X[400:].mean(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    queries, database = X[:400], X[400:]
    between = np.sqrt(np.maximum(2 - 2 * database @ database.T, 0))[np.triu_indices(len(database), 1)]
    thresholds = np.percentile(between, [2, 5, 10, 20])
    return queries, database, hbmp.metrics.DistanceLevels(queries, database, thresholds, [10, 5, 2, 1])


def gain_of(project, data, weights=None):
    """NDCG by Hamming distance and with real-valued queries."""
    queries, database, relevance = data
    scores, codes = project(queries), np.where(project(database) >= 0, np.int8(1), np.int8(-1))
    signs = np.where(scores >= 0, np.int8(1), np.int8(-1))
    settings = {"gain": "scaled", "ties": "average", "relevance": relevance, "bit_weights": weights}
    return [hbmp.metrics.ndcg(asked, codes, **settings) for asked in (signs, scores)]


@pytest.mark.parametrize("n_bits", [16, 32, 48])
def test_it_leads_itq_and_rotated_components(n_bits, digits):
    ours, others = [], []
    for seed in range(3):
        function = Rebuilding()
        book = function.pursue(digits[1], n_bits, random_state=seed)
        ours.append(gain_of(function.project, digits) + gain_of(function.project, digits, book.weights))
        models = [hbmp.get_method(name)(n_bits, random_state=seed).fit(digits[1]) for name in ("itq", "pca_rotation")]
        others.append(np.max([gain_of(model.project, digits) for model in models], axis=0))
    plain, plain_real, weighted, weighted_real = np.mean(ours, axis=0)
    best, best_real = np.mean(others, axis=0)
    assert plain > best + 0.002
    assert weighted > plain
    assert weighted_real > best_real + 0.002
    assert abs(plain_real - weighted_real) < 0.01


def test_both_ends_of_the_coupling_fall_short(digits):
    """ρ = 0 loses with real-valued queries, ρ = 1 by Hamming distance; between them is the best of both."""
    scores = {}
    for coupling in (0.0, 0.5, 1.0):
        function = Rebuilding(coupling=coupling)
        book = function.pursue(digits[1], 32, random_state=0)
        scores[coupling] = gain_of(function.project, digits, book.weights)
    assert scores[0.5][0] > scores[1.0][0] + 0.02
    assert scores[0.5][1] > scores[0.0][1] + 0.002
