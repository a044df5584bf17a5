"""What the tests of the stores share: codes with neighbours, and distances by definition."""

from __future__ import annotations

import functools

import numpy as np


@functools.cache
def clustered(n_bits, n_items=400, n_queries=12, seed=0):
    """Codes around 20 centres, and queries like them."""
    rng = np.random.default_rng(seed)
    centres = rng.choice([-1, 1], (20, n_bits))

    def around(n):
        flips = np.where(rng.random((n, n_bits)) < 0.15, -1, 1)
        return (flips * centres[rng.integers(20, size=n)]).astype(np.int8)

    return around(n_items), around(n_queries)


def double_loop(queries, codes, weights):
    """Distances by definition, one pair at a time."""
    table = np.zeros((len(queries), len(codes)))
    for i, query in enumerate(queries):
        for j, code in enumerate(codes):
            differ = np.sign(query + 1e-30) != code
            table[i, j] = np.sum(weights * np.abs(query.astype(float)) * differ)
    return table


def assert_nearest(found, table, ids, k):
    """Found distances are the k smallest of the table, and belong to the ids beside them."""
    distances, found_ids = found
    assert distances.shape == found_ids.shape == (len(table), k)
    np.testing.assert_allclose(distances, np.sort(table, axis=1)[:, :k], rtol=1e-5, atol=1e-5)
    column_of = {number: column for column, number in enumerate(ids)}
    for row in range(len(table)):
        assert len(set(found_ids[row])) == k
        own = [table[row, column_of[number]] for number in found_ids[row]]
        np.testing.assert_allclose(distances[row], own, rtol=1e-5, atol=1e-5)
