"""Codes in PostgreSQL with pgvector: one table, two HNSW indexes.

    id     bigint primary key
    code   bit(n)        `<~>` is the Hamming distance          HNSW, bit_hamming_ops
    signs  halfvec(n)    `<#>` is the negative inner product    HNSW, halfvec_ip_ops

The table may have further columns. The indexes are built at the end of the first `add`, over all its rows, which is
much faster than row by row: add most codes in the first call.
"""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hbmp._core.filters import Condition
from hbmp.stores._shared import postgres
from hbmp.stores._shared.base import Neighbours, Store
from hbmp.stores._shared.names import check_name

MOST_BITS = 4000  # the widest halfvec of an HNSW index
_INDEXES = (("code", "bit_hamming_ops"), ("signs", "halfvec_ip_ops"))
_ATTEMPTS = 5
_PAUSE = 0.02  # seconds, at most, before the second attempt; doubled with each
_Result = TypeVar("_Result")
# The graph of the signs is built for equal weights; other weights need a wider search.
_WIDER_BY_PRODUCT = 4


class PGVector(Store):
    """A table of codes in a PostgreSQL database with pgvector.

    Parameters
    ----------
    n_bits : int
        Code length, at most 4,000.
    url : str
        A libpq connection string or URL.
    table : str, default="hbmp_codes"
        Name of the table, or ``"schema.table"``; created if it does not exist.
    index : {"hnsw", "flat"}, default="hnsw"
        "hnsw" searches a graph, approximately; "flat" reads the whole table, exactly.
    columns : mapping of str to type, default=None
        Columns in addition to the codes, such as ``{"brand": str}``; see `add` and the `where` of `search`.
    connect_timeout : int, default=5
        Largest number of seconds to connect.

    Attributes
    ----------
    n_bits, table, index, columns
        As given.

    Examples
    --------
    >>> import hbmp
    >>> with hbmp.stores.PGVector(4, "postgresql://localhost/codes") as store:  # doctest: +SKIP
    ...     store.add([[1, -1, 1, 1], [-1, -1, 1, 1]], [10, 11])
    ...     distances, ids = store.search([[1, -1, 1, 1]], 2)
    ...     print(ids, distances)
    [[10 11]] [[0. 1.]]
    """

    def __init__(
        self,
        n_bits: int,
        url: str,
        *,
        table: str = "hbmp_codes",
        index: Literal["hnsw", "flat"] = "hnsw",
        columns: Mapping[str, type] | None = None,
        connect_timeout: int = 5,
    ):
        super().__init__(n_bits, columns)
        if self.n_bits > MOST_BITS:
            raise ValueError(f"pgvector searches codes of at most {MOST_BITS} bits, found n_bits={n_bits}.")
        if index not in ("hnsw", "flat"):
            raise ValueError(f"index must be 'hnsw' or 'flat', found {index!r}.")
        self.table = ".".join(check_name(part, "table") for part in str(table).split(".", 1))
        self.index = index
        self._lock = threading.Lock()  # one transaction at a time on the connection
        self._connect = functools.partial(postgres.connect, url, connect_timeout)
        self._connection = self._connect()
        try:
            self._in_one_go(self._create, postgres.creation_errors())
            with self._transaction() as cursor:
                self._check_columns(cursor)
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
        with self._transaction() as cursor:
            return int(self._run(cursor, "SELECT count(*) FROM {table}").fetchone()[0])

    def drop(self) -> None:
        """Delete the table, and close the connection."""
        self._check_open()

        def drop(cursor: Any) -> None:
            postgres.lock_table(cursor, self._quoted(cursor), alone=True)
            self._run(cursor, "DROP TABLE IF EXISTS {table}")

        self._in_one_go(drop)
        self.close()

    def _create(self, cursor: Any) -> None:
        if postgres.has_pgvector(cursor) and self._exists(cursor):
            return
        postgres.lock_creation(cursor)
        postgres.require_pgvector(cursor)
        if not self._exists(cursor):
            self._run(
                cursor,
                "CREATE TABLE {table} (id bigint PRIMARY KEY, code bit({n}) NOT NULL, signs halfvec({n}){typed})",
            )

    def _exists(self, cursor: Any) -> bool:
        found = cursor.execute("SELECT to_regclass(%s)", [self._quoted(cursor)]).fetchone()[0]
        return found is not None

    def _check_columns(self, cursor: Any) -> None:
        rows = cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [self._quoted(cursor)],
        ).fetchall()
        found = dict(rows)
        wanted = {"id": "bigint", "code": f"bit({self.n_bits})", "signs": f"halfvec({self.n_bits})"}
        wanted |= {name: postgres.TYPES[kind] for name, kind in self.columns.items()}
        if any(found.get(name) != kind for name, kind in wanted.items()):
            listed = ", ".join(f"{name} {found[name]}" for name in wanted if name in found) or "none of these"
            raise ValueError(
                f"A store of {self.n_bits} bits needs the columns {', '.join(' '.join(w) for w in wanted.items())}; "
                f"table {self.table!r} has {listed}. Open it with its own n_bits, or name another table."
            )

    def _upsert(
        self, codes: NDArray[np.int8], ids: NDArray[np.int64], values: dict[str, list[Any]], batch_size: int
    ) -> None:
        def upsert(cursor: Any) -> None:
            self._lock_for_writing(cursor)
            self._run(
                cursor,
                "CREATE TEMPORARY TABLE hbmp_incoming (id bigint, code bit({n}), signs halfvec({n})) ON COMMIT DROP",
            )
            with cursor.copy("COPY hbmp_incoming FROM STDIN (FORMAT binary)") as copy:
                copy.write(postgres.COPY_HEADER)
                for start in range(0, len(ids), batch_size):
                    rows = slice(start, start + batch_size)
                    copy.write(postgres.copy_rows(codes[rows], ids[rows]))
                copy.write(postgres.COPY_TRAILER)
            source = "hbmp_incoming"
            if self.columns:
                self._copy_values(cursor, ids, values)
                source = "hbmp_incoming JOIN hbmp_values USING (id)"
            self._run(
                cursor,
                f"INSERT INTO {{table}} (id, code, signs{{names}}) SELECT id, code, signs{{names}} FROM {source} "  # nosec B608 - checked names, bound values
                "ORDER BY id ON CONFLICT (id) DO UPDATE SET code = excluded.code, signs = excluded.signs{updates}",
            )
            if self.index == "hnsw":
                self._build_indexes(cursor)

        self._in_one_go(upsert)

    def _copy_values(self, cursor: Any, ids: NDArray[np.int64], values: dict[str, list[Any]]) -> None:
        self._run(cursor, "CREATE TEMPORARY TABLE hbmp_values (id bigint{typed}) ON COMMIT DROP")
        with cursor.copy("COPY hbmp_values FROM STDIN") as copy:
            for row in zip(ids.tolist(), *values.values(), strict=True):
                copy.write_row(row)

    def _delete(self, ids: NDArray[np.int64]) -> int:
        def delete(cursor: Any) -> int:
            self._lock_for_writing(cursor)
            rows = "SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
            return int(self._run(cursor, f"DELETE FROM {{table}} WHERE id IN ({rows})", values=[ids.tolist()]).rowcount)  # nosec B608 - checked names, bound values

        return self._in_one_go(delete)

    def _lock_for_writing(self, cursor: Any) -> None:
        """Write concurrently with others, all of which lock rows in id order; the first `add` has exclusive access.

        Building an index waits for all open writes to the table, so two writers that both build would wait for each
        other.
        """
        alone = self.index == "hnsw" and len(self._missing_indexes(cursor)) > 0
        postgres.lock_table(cursor, self._quoted(cursor), alone=alone)

    def _missing_indexes(self, cursor: Any) -> list[tuple[str, str]]:
        present = cursor.execute(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = to_regclass(%s)", [self._quoted(cursor)]
        ).fetchall()
        return [
            (column, operators)
            for column, operators in _INDEXES
            if not any(f"({column} {operators})" in definition for (definition,) in present)
        ]

    def _build_indexes(self, cursor: Any) -> None:
        from psycopg import sql

        for column, operators in self._missing_indexes(cursor):
            self._run(
                cursor,
                "CREATE INDEX ON {table} USING hnsw ({column} {operators})",
                column=sql.Identifier(column),
                operators=sql.Identifier(operators),
            )

    def _nearest_by_bits(self, signs: NDArray[np.int8], n: int, where: list[Condition]) -> list[Neighbours]:
        texts = [bytes(row).decode("ascii") for row in np.where(signs > 0, ord("1"), ord("0")).astype(np.uint8)]
        return self._nearest("code <~> query.code", "text::bit({n}) AS code", texts, n, where, ef_search=n)

    def _nearest_by_product(self, vectors: NDArray[np.float16], n: int, where: list[Condition]) -> list[Neighbours]:
        texts = ["[" + ",".join(map(str, row.tolist())) + "]" for row in vectors]
        wider = _WIDER_BY_PRODUCT * n
        parsed = "text::halfvec({n}) AS vector"
        return self._nearest("signs <#> query.vector", parsed, texts, n, where, ef_search=wider)

    def _nearest(
        self, distance: str, parsed: str, texts: list[str], n: int, where: list[Condition], ef_search: int
    ) -> list[Neighbours]:
        # Materialised, so that the planner parses the text of a query only once.
        statement = (
            "WITH query AS MATERIALIZED "  # nosec B608 - checked names, bound values
            f"(SELECT row, {parsed} FROM unnest(%s::text[]) WITH ORDINALITY AS given(text, row)) "
            "SELECT query.row, item.id, item.distance FROM query CROSS JOIN LATERAL "
            f"(SELECT id, {distance} AS distance FROM {{table}} {{where}} ORDER BY {distance} LIMIT %s) AS item "
            "ORDER BY query.row"
        )
        with self._transaction() as cursor:
            if self.index == "flat":
                postgres.read_all(cursor)
                return self._fetch_nearest(cursor, statement, texts, n, where)
            postgres.read_graph(cursor, ef_search)
            found = self._fetch_nearest(cursor, statement, texts, n, where)
            short = [row for row, neighbours in enumerate(found) if len(neighbours.ids) < n]
            n_rows = 0
            if short:
                counted = "SELECT count(*) FROM {table} {where}"
                n_rows = self._run(cursor, counted, where=postgres.where_clause(where)).fetchone()[0]
            # With many equal codes parts of the graph cannot be reached, so the table is read.
            short = [row for row in short if len(found[row].ids) < n_rows]
            if short:
                postgres.read_all(cursor)
                exact = self._fetch_nearest(cursor, statement, [texts[row] for row in short], n, where)
                for row, neighbours in zip(short, exact, strict=True):
                    found[row] = neighbours
            return found

    def _fetch_nearest(
        self, cursor: Any, statement: str, texts: list[str], n: int, where: list[Condition]
    ) -> list[Neighbours]:
        # Not prepared, as a plan kept on the server would outlive these settings.
        rows = self._run(
            cursor, statement, values=[texts, n], prepare=False, where=postgres.where_clause(where)
        ).fetchall()
        table = np.array(rows, dtype=[("row", np.int64), ("id", np.int64), ("distance", np.float64)])
        of_query = np.split(table, np.searchsorted(table["row"], np.arange(2, len(texts) + 1)))
        return [Neighbours(part["id"], part["distance"]) for part in of_query]

    def _fetch(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        with self._transaction() as cursor:
            statement = "SELECT id, code::text FROM {table} WHERE id = ANY(%s)"
            rows = self._run(cursor, statement, values=[ids.tolist()]).fetchall()
        digits = np.frombuffer("".join(text for _, text in rows).encode("ascii"), np.uint8)
        signs = np.where(digits == ord("1"), 1, -1).astype(np.int8).reshape(-1, self.n_bits)
        return np.array([found for found, _ in rows], np.int64), signs

    def _disconnect(self) -> None:
        self._connection.close()

    def _in_one_go(self, work: Callable[[Any], _Result], also: tuple[type[Exception], ...] = ()) -> _Result:
        """Do work in one transaction, and again if another client stops it by an error that passes (or `also`)."""
        stopped: Exception | None = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(random.SystemRandom().uniform(0, _PAUSE * 2**attempt))
            try:
                with self._transaction() as cursor:
                    return work(cursor)
            except (*postgres.passing_errors(), *also) as error:
                stopped = error
        raise RuntimeError(
            f"Other clients stopped a write to table {self.table!r} {_ATTEMPTS} times: "
            f"{postgres.first_line(stopped or RuntimeError())}. Nothing was written; call again."
        ) from stopped

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """A cursor inside a transaction."""
        import psycopg

        with self._lock:
            if self._connection.closed:
                self._connection = self._connect()
            finished = False
            try:
                with self._connection.transaction(), self._connection.cursor() as cursor:
                    yield cursor
                    finished = True
            except psycopg.errors.UndefinedTable as error:
                raise ValueError(
                    f"Table {self.table!r} no longer exists: {postgres.first_line(error)}. Open the store again to "
                    "create it."
                ) from None
            except psycopg.OperationalError as error:
                if not self._connection.closed:
                    raise
                why = postgres.first_line(error)
                state = "The last write may or may not have been completed" if finished else "The table is unchanged"
                raise ConnectionError(
                    f"The connection to PostgreSQL broke: {why}. {state}; call again to reconnect."
                ) from None

    def _quoted(self, cursor: Any) -> str:
        return str(self._parts()["table"].as_string(cursor))

    def _parts(self) -> dict[str, Any]:
        from psycopg import sql

        names = [sql.Identifier(name) for name in self.columns]
        typed = [
            sql.SQL(", {} {}").format(*pair)
            for pair in zip(names, map(postgres.column_type, self.columns.values()), strict=True)
        ]
        return {
            "table": sql.Identifier(*self.table.split(".")),
            "n": sql.Literal(self.n_bits),
            "typed": sql.Composed(typed),
            "names": sql.Composed([sql.SQL(", {}").format(name) for name in names]),
            "updates": sql.Composed([sql.SQL(", {0} = excluded.{0}").format(name) for name in names]),
        }

    def _run(
        self, cursor: Any, statement: str, *, values: list[Any] | None = None, prepare: bool | None = None, **parts: Any
    ) -> Any:
        """Execute a statement; its {names} become quoted identifiers or literals, its %s are sent as parameters."""
        from psycopg import sql

        return cursor.execute(sql.SQL(statement).format(**self._parts(), **parts), values, prepare=prepare)
