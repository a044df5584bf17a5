"""PostgreSQL operations of the pgvector store: connect, lock among writers, settings of a search, COPY."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.filters import Condition

TYPES = {str: "text", int: "bigint", float: "double precision", bool: "boolean"}
_EF_SEARCH = (40, 1000)  # default and maximum of pgvector
_LOCKS = 0x68626D70 << 32  # upper half of the keys of advisory locks; the lower half is the oid of a table, or 0


def connect(url: str, connect_timeout: int) -> Any:
    """A connection with autocommit; errors name the place without the password."""
    try:
        import psycopg
    except ImportError:
        raise ImportError("The pgvector store needs psycopg: pip install 'hbmp[stores]'.") from None
    try:
        described = psycopg.conninfo.conninfo_to_dict(url)
        return psycopg.connect(url, autocommit=True, connect_timeout=connect_timeout)
    except psycopg.ProgrammingError as error:
        raise ValueError(f"The url is not a PostgreSQL connection string: {first_line(error)}.") from None
    except psycopg.OperationalError as error:
        place = ", ".join(f"{key}={described[key]}" for key in ("host", "port", "dbname") if described.get(key))
        raise ConnectionError(
            f"No PostgreSQL could be reached at {place or 'the default address'}: {first_line(error)}. "
            "Check the url and that the server runs."
        ) from None


def has_pgvector(cursor: Any) -> bool:
    """Whether the database has the extension."""
    return bool(cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone())


def require_pgvector(cursor: Any) -> None:
    """Create the extension if it is missing."""
    import psycopg

    if has_pgvector(cursor):
        return
    try:
        cursor.execute("CREATE EXTENSION vector")
    except creation_errors():
        raise
    except psycopg.Error as error:
        raise RuntimeError(
            f"The database has no pgvector extension and it could not be created: {first_line(error)}. "
            "Run CREATE EXTENSION vector as an administrator."
        ) from None


def lock_creation(cursor: Any) -> None:
    """Until the end of this transaction, let no other client create extension or tables for codes."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCKS])


def lock_table(cursor: Any, table: str, *, alone: bool) -> None:
    """Until the end of this transaction, let no other client write (`alone`), or none that must be alone."""
    kind = "" if alone else "_shared"
    cursor.execute(f"SELECT pg_advisory_xact_lock{kind}(%s | to_regclass(%s)::oid::bigint)", [_LOCKS, table])


def passing_errors() -> tuple[type[Exception], ...]:
    """Errors of a write that other clients cause and that a second attempt can avoid."""
    from psycopg import errors

    return errors.DeadlockDetected, errors.SerializationFailure


def creation_errors() -> tuple[type[Exception], ...]:
    """Errors where two clients create one extension or table."""
    from psycopg import errors

    return errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject


def read_graph(cursor: Any, ef_search: int) -> None:
    """In this transaction, search the HNSW graph, beyond `ef_search` rows until the LIMIT is reached."""
    least, most = _EF_SEARCH
    settings = {
        "enable_seqscan": "off",
        "hnsw.ef_search": min(max(ef_search, least), most),
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.max_scan_tuples": np.iinfo(np.int32).max,
    }
    for name, value in settings.items():
        cursor.execute("SELECT set_config(%s, %s, true)", [name, str(value)])


def read_all(cursor: Any) -> None:
    """In this transaction, compare with every row of the table."""
    cursor.execute("SET LOCAL enable_seqscan = on")
    cursor.execute("SET LOCAL enable_indexscan = off")


def first_line(error: Exception) -> str:
    """First line of an error of PostgreSQL, without a full stop."""
    return str(error).strip().splitlines()[0].rstrip(".")


def column_type(kind: type) -> Any:
    """The type of a column as SQL."""
    from psycopg import sql

    return sql.SQL(TYPES[kind])


def where_clause(where: list[Condition]) -> Any:
    """The clause for these conditions; nothing if there are none."""
    from psycopg import sql

    if not where:
        return sql.SQL("")
    parts = []
    for condition in where:
        column, value = sql.Identifier(condition.column), condition.value
        if condition.operator == "in":
            parts.append(sql.SQL("{} = ANY({})").format(column, sql.Literal(list(value))))
        else:
            parts.append(sql.SQL(f"{{}} {condition.operator} {{}}").format(column, sql.Literal(value)))
    return sql.SQL("WHERE ") + sql.SQL(" AND ").join(parts)


# The binary form of COPY: a header, then per row the number of fields, and the length and big-endian value of each.
COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"


def copy_rows(codes: NDArray[np.int8], ids: NDArray[np.int64]) -> bytes:
    """Rows of id, code and signs as COPY reads them."""
    n_bits = codes.shape[1]
    packed = np.packbits(codes > 0, axis=1)  # bit(n) stores its first bit in the highest position
    n_bytes = packed.shape[1]
    fields = [
        *[("n_fields", ">i2"), ("id_size", ">i4"), ("id", ">i8")],
        *[("code_size", ">i4"), ("n_bits", ">i4"), ("code", "u1", (n_bytes,))],
        *[("signs_size", ">i4"), ("n_signs", ">i2"), ("unused", ">i2"), ("signs", ">f2", (n_bits,))],
    ]
    rows = np.zeros(len(ids), np.dtype(fields))
    rows["n_fields"], rows["id_size"], rows["id"] = 3, 8, ids
    rows["code_size"], rows["n_bits"], rows["code"] = 4 + n_bytes, n_bits, packed
    rows["signs_size"], rows["n_signs"], rows["signs"] = 4 + 2 * n_bits, n_bits, codes
    return rows.tobytes()
