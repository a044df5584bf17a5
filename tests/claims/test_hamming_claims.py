"""What `hamming` promises of its distances, and the index of its scan, as properties."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hbmp import hamming
from hbmp.index.query import QueryBatch
from hbmp.index.scan import build_fast_scan

SEEDS = st.integers(0, 2**32 - 1)
BITS = st.integers(1, 130)


def problem(seed, n_bits, n_items=23):
    rng = np.random.default_rng(seed)
    signs = np.array([-1, 1], np.int8)
    queries, database = rng.choice(signs, (5, n_bits)), rng.choice(signs, (n_items, n_bits))
    return rng, queries, database, rng.standard_t(1.5, n_bits)


@given(SEEDS, BITS)
def test_rows_are_independent(seed, n_bits):
    """A distance is the same bit for bit whatever stands in the other rows."""
    rng, _, database, weights = problem(seed, n_bits)
    scores = rng.normal(size=(5, n_bits))
    together = hamming.distances(scores, database, weights)
    for i in range(len(scores)):
        for j in (0, len(database) - 1):
            alone = hamming.distances(scores[i : i + 1], database[j : j + 1], weights)
            assert alone[0, 0] == together[i, j]


@given(SEEDS, BITS)
def test_order_of_the_bits_does_not_matter(seed, n_bits):
    rng, queries, database, weights = problem(seed, n_bits)
    order = rng.permutation(n_bits)
    np.testing.assert_array_equal(
        hamming.distances(queries[:, order], database[:, order], weights[order]),
        hamming.distances(queries, database, weights),
    )


@given(SEEDS, BITS)
def test_common_xor_changes_nothing(seed, n_bits):
    """Flipping the same bits of queries and items leaves every distance as it was."""
    rng, queries, database, weights = problem(seed, n_bits)
    mask = rng.choice(np.array([-1, 1], np.int8), n_bits)
    for alpha in (None, weights):
        before = hamming.distances(queries, database, alpha)
        np.testing.assert_array_equal(hamming.distances(queries * mask, database * mask, alpha), before)


@given(SEEDS, BITS)
def test_equal_weights_are_plain_hamming(seed, n_bits):
    _, queries, database, _ = problem(seed, n_bits)
    plain = hamming.distances(queries, database)
    np.testing.assert_array_equal(hamming.distances(queries, database, np.full(n_bits, 0.25)), 0.25 * plain)


@given(SEEDS, BITS)
def test_scores_of_size_one_are_signs(seed, n_bits):
    _, queries, database, weights = problem(seed, n_bits)
    np.testing.assert_array_equal(
        hamming.distances(queries.astype(np.float32), database, weights),
        hamming.distances(queries, database, weights),
    )


@given(SEEDS, BITS)
def test_distance_is_symmetric_and_zero_to_itself(seed, n_bits):
    _, _, database, weights = problem(seed, n_bits)
    found = hamming.distances(database, database, weights)
    np.testing.assert_array_equal(found, found.T)
    assert not np.diag(found).any()


@given(SEEDS, st.integers(1, 130))
def test_fast_scan_is_never_off_by_more_than_its_bound(seed, n_bits):
    """The proof of exact search rests on this: FAISS's 8-bit score of any code lies within the stated error."""
    rng, _, database, weights = problem(seed, n_bits, n_items=200)
    batch = QueryBatch.prepare(rng.normal(size=(3, n_bits)), weights)
    vectors, scales = batch.scaled()
    scores, positions = build_fast_scan(hamming.pack(database)).search(vectors, len(database))
    for row in range(3):
        exact, error = database @ batch.vectors[row, :n_bits], batch.scan_error()[row]
        seen = positions[row][positions[row] >= 0]
        assert np.abs(scores[row][: len(seen)] * scales[row] - exact[seen]).max(initial=0) <= error
        unseen = np.delete(exact, seen)  # FAISS leaves out items at the lowest score there is
        assert (unseen + batch.sizes()[row]).max(initial=0) <= error
