"""What PostgreSQL with pgvector does beyond the tests of all stores: graphs, lost lines, columns, exported SQL."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from stores_common import assert_nearest, clustered, double_loop

from hbmp import export, hamming, stores
from hbmp.stores._shared.postgres import read_graph


def test_graph_finds_nearly_all(postgres):
    codes, queries = clustered(48, n_items=3000, n_queries=100)
    weights = np.random.default_rng(5).exponential(size=48)
    store = stores.PGVector(48, postgres, table="graph")
    store.add(codes[:2900], np.arange(2900))
    store.add(codes[2900:], np.arange(2900, 3000))  # into the graph that is there
    exact = stores.PGVector(48, postgres, table="graph", index="flat")
    with store._transaction() as cursor:
        read_graph(cursor, 10)
        plan = cursor.execute("EXPLAIN SELECT id FROM graph ORDER BY code <~> %s::bit(48) LIMIT 10", ["1" * 48])
        assert "graph_code_idx" in str(plan.fetchall())
    for given in (None, weights):
        found, _ = store.search(queries, 10, bit_weights=given)
        expected, _ = exact.search(queries, 10, bit_weights=given)
        assert np.mean(found <= expected[:, -1:] + 1e-5) >= 0.95
    # Far more than hnsw.ef_search can hold at once.
    assert (store.search(queries[:1], 2500)[1] >= 0).all()
    exact.close()
    store.drop()


def test_reads_the_table_where_equal_codes_hide_each_other_in_the_graph(postgres):
    rng = np.random.default_rng(6)
    centres = rng.choice([-1, 1], (10, 16)).astype(np.int8)
    codes = centres[rng.integers(10, size=5000)]
    codes[rng.random(codes.shape) < 0.02] *= -1
    with stores.PGVector(16, postgres, table="crowd") as store:
        store.add(codes, np.arange(len(codes)))
        for weights in (None, rng.exponential(size=16)):
            found, ids = store.search(centres, 600, bit_weights=weights)
            expected = np.sort(hamming.distances(centres, codes, weights), axis=1)[:, :600]
            np.testing.assert_allclose(found, expected, atol=1e-5)
            assert (ids >= 0).all()


def test_add_that_fails_half_way_leaves_what_was_there(postgres, monkeypatch):
    codes, _ = clustered(16)
    store = stores.PGVector(16, postgres, table="half_way")
    store.add(codes[:20], np.arange(20))

    def fail(self, cursor):
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(stores.PGVector, "_build_indexes", fail)
        with pytest.raises(RuntimeError, match="disk is full"):
            store.add(-codes, np.arange(len(codes)))
    assert store.count() == 20
    assert (store.search(codes[:20], 1)[0] == 0).all()
    store.drop()


def test_reconnects_after_the_server_cut_the_line(postgres):
    codes, _ = clustered(16)
    store = stores.PGVector(16, postgres, table="cut")
    store.add(codes[:20], np.arange(20))
    other = stores.PGVector(16, postgres, table="cut")
    with other._transaction() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [store._connection.info.backend_pid])
    with pytest.raises(ConnectionError, match="table is unchanged"):
        store.add(-codes, np.arange(len(codes)))
    assert store.count() == 20
    other.close()
    store.drop()


def at_once(work, n):
    """What `work(number)` returned or raised, for n threads that start together."""
    barrier = threading.Barrier(n)

    def begin(number):
        barrier.wait()
        try:
            return work(number)
        except Exception as error:
            return error

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(begin, range(n)))


def test_many_clients_open_one_new_table_and_add_first_at_once(postgres):
    import psycopg

    codes, queries = clustered(16)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP EXTENSION IF EXISTS vector CASCADE")
    opened = at_once(lambda _: stores.PGVector(16, postgres, table="crowded"), 24)
    assert [item for item in opened if isinstance(item, Exception)] == []
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(codes))[:300] for _ in range(8)]  # overlapping ids in different orders
    failed = at_once(lambda number: opened[number].add(codes[orders[number]], orders[number]), 8)
    assert failed == [None] * 8
    kept = np.unique(np.concatenate(orders))
    assert opened[0].count() == len(kept)
    assert_nearest(opened[9].search(queries, 5), double_loop(queries, codes[kept], np.ones(16)), kept, 5)

    def write(number):
        rows = orders[number]
        return opened[number].remove(rows[:200]) if number % 2 else opened[number].add(-codes[rows], rows)

    for _ in range(3):
        results = at_once(write, 8)
        assert [item for item in results if isinstance(item, Exception)] == []
    for store in opened[1:]:
        store.close()
    opened[0].drop()


def test_a_write_that_others_stop_is_repeated_then_refused(postgres, monkeypatch):
    from psycopg import errors

    codes, _ = clustered(16)
    store = stores.PGVector(16, postgres, table="stopped")
    left, real = 2, stores.PGVector._build_indexes

    def stop(self, cursor):
        nonlocal left
        left -= 1
        if left >= 0:
            raise errors.DeadlockDetected("deadlock detected")
        real(self, cursor)

    monkeypatch.setattr(stores.PGVector, "_build_indexes", stop)
    store.add(codes[:20], np.arange(20))
    assert store.count() == 20
    left = 100
    with pytest.raises(
        RuntimeError, match=r"stopped a write to table 'stopped' 5 times: deadlock.*Nothing was written"
    ):
        store.add(codes, np.arange(len(codes)))
    assert store.count() == 20
    other = stores.PGVector(16, postgres, table="stopped")
    store.drop()
    with pytest.raises(ValueError, match="Table 'stopped' no longer exists"):
        other.count()
    with pytest.raises(ValueError, match="Table 'stopped' no longer exists"):
        other.add(codes[:2], [1, 2])
    other.close()


def test_keeps_further_columns_and_takes_a_schema(postgres):
    codes, _ = clustered(16)
    admin = stores.PGVector(16, postgres, table="public.films")
    with admin._transaction() as cursor:
        cursor.execute("ALTER TABLE films ADD COLUMN title text")
    admin.add(codes[:3], np.arange(3))
    with admin._transaction() as cursor:
        cursor.execute("UPDATE films SET title = 'film ' || id")
    admin.add(-codes[:3], np.arange(3))
    with admin._transaction() as cursor:
        titles = cursor.execute("SELECT title FROM films ORDER BY id").fetchall()
    assert titles == [("film 0",), ("film 1",), ("film 2",)]
    admin.drop()


def test_refuses_a_table_that_holds_something_else(postgres):
    store = stores.PGVector(16, postgres, table="mine")
    with store._transaction() as cursor:
        cursor.execute("CREATE TABLE theirs (name text)")
    with pytest.raises(ValueError, match="table 'theirs' has none of these"):
        stores.PGVector(16, postgres, table="theirs")
    store.drop()


def test_exported_sql_makes_the_table_that_the_store_opens(postgres):
    import psycopg

    codes, queries = clustered(13)
    ids = np.arange(5, 5 + len(codes))
    with psycopg.connect(postgres) as connection:
        for _ in range(2):  # a second time it changes nothing
            for statement in export.to_sql(codes, ids, table="public.exported", rows_per_statement=150):
                connection.execute(statement)
        indexes = connection.execute("SELECT indexname FROM pg_indexes WHERE tablename = 'exported'").fetchall()
    assert len(indexes) == 3
    store = stores.PGVector(13, postgres, table="exported", index="flat")
    assert store.count() == len(codes)
    assert_nearest(store.search(queries, 5), double_loop(queries, codes, np.ones(13)), ids, 5)
    weights = np.linspace(1, 2, 13)
    assert_nearest(store.search(queries, 5, bit_weights=weights), double_loop(queries, codes, weights), ids, 5)
    store.drop()


def test_an_engine_that_does_not_answer_is_named_without_the_password():
    with pytest.raises(ConnectionError, match=r"No PostgreSQL could be reached at host=127\.0\.0\.1, port=1") as caught:
        stores.PGVector(16, "postgresql://me:secret@127.0.0.1:1/data")
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="not a PostgreSQL connection string"):
        stores.PGVector(16, "codes in a table")
