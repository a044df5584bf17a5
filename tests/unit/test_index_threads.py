"""Threads search while another adds and removes: every answer is that of some moment in between."""

import threading

import numpy as np

import hbmp
from hbmp import hamming

SIGNS = np.array([-1, 1], np.int8)


def test_searching_while_adding_and_removing():
    rng = np.random.default_rng(0)
    n_batches, batch_size, n_bits = 40, 300, 32
    codes, alpha = rng.choice(SIGNS, (n_batches * batch_size, n_bits)), rng.uniform(0.5, 1.5, n_bits)
    queries = rng.choice(SIGNS, (4, n_bits))
    index = hbmp.Index(n_bits, alpha).add(codes[:batch_size])
    all_distances = hamming.distances(queries, codes, alpha)
    answers, failures, done = [], [], threading.Event()

    def search():
        try:
            while not done.is_set():
                before = len(index)
                answers.append((before, index.search(queries, 5), len(index)))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for batch in range(1, n_batches):
        index.add(codes[batch * batch_size : (batch + 1) * batch_size])
    done.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert {after for _, _, after in answers} != {batch_size}  # some searches did run in between
    best_of = {
        size: np.argsort(all_distances[:, :size], axis=1, kind="stable")[:, :5]
        for size in range(batch_size, len(codes) + 1, batch_size)
    }
    for before, (_, ids), after in answers:
        moments = [best_of[size] for size in range(before, after + 1, batch_size)]
        assert any(np.array_equal(ids, expected) for expected in moments)


def test_two_writers_lose_nothing():
    codes = np.random.default_rng(1).choice(SIGNS, (2000, 16))
    index = hbmp.Index(16)

    def add(start):
        for row in range(start, 2000, 2):
            index.add(codes[row : row + 1], [row])

    threads = [threading.Thread(target=add, args=(start,)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index) == 2000
    np.testing.assert_array_equal(index.codes(np.arange(2000)), codes)
