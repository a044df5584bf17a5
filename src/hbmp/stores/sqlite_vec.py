"""Codes in SQLite with sqlite-vec: one file, no server.

    id     INTEGER PRIMARY KEY
    code   bit[n]     bits padded to whole bytes; the engine finds the nearest by Hamming distance

sqlite-vec has no inner product. Weighted distances and real-valued queries are therefore measured here, over all codes
that meet the conditions, in blocks of rows: exact, and about a second per million codes for each batch of queries.

SQLite comes from `apsw`, because the `sqlite3` of many Python builds cannot load extensions. Other programs read the
file with any SQLite that has the extension.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.filters import Condition
from hbmp.stores._shared.base import Neighbours, Store
from hbmp.stores._shared.columns import as_sql
from hbmp.stores._shared.names import check_name

_TYPES = {str: "text", int: "integer", float: "float", bool: "boolean"}
_LISTED = "(SELECT value FROM json_each(?))"
MOST_BITS = 8192  # the widest vector of the extension
_NEAREST = 4096  # results of one search by the engine
_ROWS = 1 << 16
_PATIENCE = 10_000  # milliseconds to wait for another writer


class SQLiteVec(Store):
    """A table of codes in an SQLite file, with the sqlite-vec extension.

    Parameters
    ----------
    n_bits : int
        Code length, at most 8,192.
    path : str or path
        The file, created if it does not exist; ``":memory:"`` for a table that is not kept.
    table : str, default="hbmp_codes"
        Name of the table; created if it does not exist.
    columns : mapping of str to type, default=None
        Columns in addition to the codes, such as ``{"brand": str}``, at most 16; see `add` and the `where` of `search`.

    Attributes
    ----------
    n_bits, table, columns
        As given.

    Examples
    --------
    >>> import hbmp
    >>> with hbmp.stores.SQLiteVec(4, ":memory:", columns={"brand": str}) as store:
    ...     store.add([[1, -1, 1, 1], [-1, -1, 1, 1]], [10, 11], values={"brand": ["sony", "canon"]})
    ...     store.search([[1, -1, 1, 1]], 1, where={"brand": "canon"})
    (array([[1.]], dtype=float32), array([[11]]))
    """

    def __init__(
        self,
        n_bits: int,
        path: str | Path,
        *,
        table: str = "hbmp_codes",
        columns: Mapping[str, type] | None = None,
    ):
        super().__init__(n_bits, columns)
        if self.n_bits > MOST_BITS:
            raise ValueError(f"sqlite-vec stores codes of at most {MOST_BITS} bits, found n_bits={n_bits}.")
        self.table = check_name(table, "table")
        self._lock = threading.RLock()  # one transaction at a time on the connection
        self._connection = _connect(path)
        try:
            with self._transaction(writes=True):
                self._create()
        except BaseException:
            self.close()
            raise

    def count(self) -> int:
        """Number of codes in the table.

        Returns
        -------
        int
        """
        self._check_open()
        return int(self._rows(f"SELECT count(*) FROM {self.table}")[0][0])  # nosec B608 - checked names, bound values

    def drop(self) -> None:
        """Delete the table, and close the connection."""
        self._check_open()
        with self._transaction(writes=True):
            self._rows(f"DROP TABLE {self.table}")
            self._rows("DELETE FROM hbmp_tables WHERE name = ?", [self.table])
        self.close()

    def _create(self) -> None:
        fields = [f"{name} {_TYPES[kind]}" for name, kind in self.columns.items()]
        wanted = ", ".join(["id integer primary key", f"code bit[{self._padded}]", *fields])
        self._rows("CREATE TABLE IF NOT EXISTS hbmp_tables (name TEXT PRIMARY KEY, n_bits INTEGER, columns TEXT)")
        found = self._rows("SELECT n_bits, columns FROM hbmp_tables WHERE name = ?", [self.table])
        if not found:
            self._rows(f"CREATE VIRTUAL TABLE {self.table} USING vec0({wanted})")
            self._rows("INSERT INTO hbmp_tables VALUES (?, ?, ?)", [self.table, self.n_bits, wanted])
        elif found[0] != (self.n_bits, wanted):
            raise ValueError(
                f"A store of {self.n_bits} bits needs the columns {wanted}; table {self.table!r} has {found[0][0]} "
                f"bits and the columns {found[0][1]}. Open it with its own n_bits and columns, or name another table."
            )

    @property
    def _padded(self) -> int:
        return 8 * hamming.bytes_for(self.n_bits)

    def _upsert(
        self, codes: NDArray[np.int8], ids: NDArray[np.int64], values: dict[str, list[Any]], batch_size: int
    ) -> None:
        names = "".join(f', "{name}"' for name in self.columns)
        marks = ", ?" * len(self.columns)
        packed = hamming.pack(codes)
        with self._transaction(writes=True):
            self._delete(ids)
            self._connection.executemany(
                f"INSERT INTO {self.table}(id, code{names}) VALUES (?, vec_bit(?){marks})",  # nosec B608 - checked names, bound values
                zip(ids.tolist(), (row.tobytes() for row in packed), *values.values(), strict=True),
            )

    def _delete(self, ids: NDArray[np.int64]) -> int:
        with self._transaction(writes=True):
            known = self._rows(f"SELECT id FROM {self.table} WHERE id IN {_LISTED}", [json.dumps(ids.tolist())])  # nosec B608 - checked names, bound values
            self._connection.executemany(f"DELETE FROM {self.table} WHERE id = ?", known)  # nosec B608 - checked names, bound values
        return len(known)

    def _nearest_by_bits(self, signs: NDArray[np.int8], n: int, where: list[Condition]) -> list[Neighbours]:
        if n > _NEAREST:
            found = self._nearest_by_product(signs.astype(np.float16), n, where)
            return [Neighbours(ids, (self.n_bits + distances) / 2) for ids, distances in found]
        condition = f" AND {as_sql(where)}" if where else ""
        statement = f"SELECT id, distance FROM {self.table} WHERE code MATCH vec_bit(?) AND k = ?{condition}"  # nosec B608 - checked names, bound values
        answers = [self._rows(statement, [row.tobytes(), n]) for row in hamming.pack(signs)]
        return [
            Neighbours(np.array([number for number, _ in rows], np.int64), np.array([distance for _, distance in rows]))
            for rows in answers
        ]

    def _nearest_by_product(self, vectors: NDArray[np.float16], n: int, where: list[Condition]) -> list[Neighbours]:
        queries = vectors.astype(np.float32)
        ids = np.empty((len(queries), 0), np.int64)
        products = np.empty((len(queries), 0), np.float32)
        for known, codes in self._blocks(where):
            ids = np.hstack([ids, np.broadcast_to(known, (len(queries), len(known)))])
            products = np.hstack([products, queries @ codes.T.astype(np.float32)])
            if products.shape[1] > n:
                best = np.argpartition(-products, n - 1, axis=1)[:, :n]
                ids = np.take_along_axis(ids, best, axis=1)
                products = np.take_along_axis(products, best, axis=1)
        return [Neighbours(*pair) for pair in zip(ids, -products, strict=True)]

    def _blocks(self, where: list[Condition]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int8]]]:
        """Ids and codes of all rows that meet the conditions, in blocks, as of one moment."""
        condition = f" WHERE {as_sql(where)}" if where else ""
        with self._transaction():
            cursor = self._connection.execute(f"SELECT id, code FROM {self.table}{condition}")  # nosec B608 - checked names, bound values
            while rows := [row for _, row in zip(range(_ROWS), cursor, strict=False)]:
                yield np.array([number for number, _ in rows], np.int64), self._unpacked([code for _, code in rows])

    def _fetch(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        statement = f"SELECT id, code FROM {self.table} WHERE id IN {_LISTED}"  # nosec B608 - checked names, bound values
        rows = self._rows(statement, [json.dumps(ids.tolist())])
        return np.array([number for number, _ in rows], np.int64), self._unpacked([code for _, code in rows])

    def _unpacked(self, codes: list[bytes]) -> NDArray[np.int8]:
        packed = np.frombuffer(b"".join(codes), np.uint8).reshape(len(codes), hamming.bytes_for(self.n_bits))
        return hamming.unpack(packed, self.n_bits)

    def _disconnect(self) -> None:
        self._connection.close()

    def _rows(self, statement: str, values: list[Any] | None = None) -> list[Any]:
        with self._lock:
            return list(self._connection.execute(statement, values or []))

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[None]:
        """One state of the file for several statements; a transaction inside another joins it."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def _write_ahead(connection: Any) -> None:
    """Switch to a write-ahead log. SQLite does not wait for another process that does the same, so this waits."""
    import apsw

    end = time.monotonic() + _PATIENCE / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except apsw.BusyError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _connect(path: str | Path) -> Any:
    try:
        import apsw
        import sqlite_vec
    except ImportError:
        raise ImportError("The SQLite store needs sqlite-vec and apsw: pip install 'hbmp[sqlite-vec]'.") from None
    if str(path) != ":memory:" and not Path(path).absolute().parent.is_dir():
        raise ValueError(f"The folder of {str(path)!r} does not exist; create it first.")
    try:
        connection = apsw.Connection(str(path))
        connection.set_busy_timeout(_PATIENCE)
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        _write_ahead(connection)
    except apsw.NotADBError:
        raise ValueError(f"{path} is not an SQLite file. Name another file.") from None
    except apsw.CantOpenError as error:
        raise ValueError(f"{path} cannot be opened: {error}.") from None
    return connection
