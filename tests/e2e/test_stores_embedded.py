"""What the embedded stores do beyond the tests of all stores: several processes, other files, large requests."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from stores_common import assert_nearest, clustered, double_loop

from hbmp import stores

WRITER = """
import sys
import numpy as np
from hbmp import stores
path, first = sys.argv[1], int(sys.argv[2])
with stores.SQLiteVec(16, path) as store:
    for start in range(first, first + 500, 50):
        store.add(np.ones((50, 16)), np.arange(start, start + 50))
"""


def test_two_processes_write_one_sqlite_file(tmp_path):
    path = str(tmp_path / "codes.sqlite")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(first)]) for first in (0, 500)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    with stores.SQLiteVec(16, path) as store:
        assert store.count() == 1000


def test_a_new_file_is_opened_while_another_process_holds_it(tmp_path):
    import threading

    import apsw

    path = tmp_path / "codes.sqlite"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN IMMEDIATE")  # as a process does that is making its tables
    release = threading.Timer(0.5, lambda: other.execute("COMMIT"))
    release.start()
    with stores.SQLiteVec(16, path) as store:
        store.add(np.ones((3, 16)), [1, 2, 3])
        assert store.count() == 3
    release.join()
    other.close()


def test_another_connection_sees_a_whole_add_or_nothing(tmp_path):
    path = tmp_path / "codes.sqlite"
    with stores.SQLiteVec(16, path) as writer, stores.SQLiteVec(16, path) as reader:
        with writer._transaction(writes=True):
            writer.add(np.ones((3, 16)), [1, 2, 3])
            assert reader.count() == 0
        assert reader.count() == 3


def test_a_failed_add_leaves_the_table_as_it_was(tmp_path):
    with stores.SQLiteVec(16, tmp_path / "codes.sqlite", columns={"brand": str}) as store:
        store.add(np.ones((2, 16)), [1, 2], values={"brand": ["a", "b"]})
        with pytest.raises(RuntimeError, match="stopped"):
            _stop_in_the_middle(store)
        assert store.count() == 2
        assert store.search(np.ones((1, 16), int), 2)[0].tolist() == [[0, 0]]


def _stop_in_the_middle(store):
    with store._transaction(writes=True):
        store.remove([1])
        store.add(-np.ones((1, 16)), [2], values={"brand": ["c"]})
        raise RuntimeError("stopped")


def test_more_candidates_than_the_engine_returns_are_measured_here(tmp_path):
    codes, queries = clustered(16, n_items=5000)
    with stores.SQLiteVec(16, ":memory:") as store:
        store.add(codes, np.arange(5000))
        found = store.search(queries, 500, oversample=10)
    assert_nearest(found, double_loop(queries, codes, np.ones(16)), range(5000), 500)


def test_a_path_that_is_no_sqlite_file_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    with pytest.raises(ValueError, match=r"notes.txt is not an SQLite file"):
        stores.SQLiteVec(16, tmp_path / "notes.txt")
    with pytest.raises(ValueError, match="does not exist; create it first"):
        stores.SQLiteVec(16, tmp_path / "nowhere" / "codes.sqlite")
    with pytest.raises(ValueError, match="cannot be opened"):
        stores.SQLiteVec(16, tmp_path)
    for store in (stores.SQLiteVec, stores.LanceDB):
        with pytest.raises(ValueError, match="at most"):
            store(100_000, tmp_path / "codes")
