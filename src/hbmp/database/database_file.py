"""The SQLite file of a database: one connection, transactions, and errors as sentences.

    meta      facts by name, as JSON with a checksum
    files     the model, and inverted lists if requested
    blocks    codes, see `blocks`
    items     one row per item that has a text id, a label, an image file or a payload
    vectors   one row per item, where the original vectors are kept

The file has a write-ahead log: readers never wait for the writer. While a database is open there are `-wal` and `-shm`
files beside it; the last one to close it removes them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hbmp._core.model_directory import DESCRIPTION
from hbmp._core.reading import first_line

FORMAT = 3
APPLICATION = 0x68626D70  # "hbmp": tells a database from other SQLite files
PAGE = 8192
_OF_DECODING = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_OF_DAMAGE = (
    "malformed",
    "not a database",
    "unsupported file",
    "no such",
    "Could not decode",
    "constraint failed",
    "datatype mismatch",
)
_PATIENCE = 30.0  # seconds that a writer waits for another
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE files (name TEXT, part INTEGER, content BLOB NOT NULL, PRIMARY KEY (name, part));
CREATE TABLE blocks (seq INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER NOT NULL, size INTEGER NOT NULL,
    n_removed INTEGER NOT NULL, numbers BLOB, codes BLOB NOT NULL, removed BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE items (number INTEGER PRIMARY KEY, id TEXT UNIQUE, label, file TEXT);
CREATE TABLE vectors (number INTEGER PRIMARY KEY, value BLOB NOT NULL);
"""


class DatabaseFile:
    """A connection to the file of a database, or to a database in memory; any number of threads may share it."""

    def __init__(self, path: str | Path | None = None):
        self.path = None if path is None else Path(os.path.abspath(path))
        self.name = "the database" if path is None else str(path)  # in messages
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = self._connect()

    @classmethod
    def create(cls, path: str | Path | None = None) -> DatabaseFile:
        """A new store with empty tables; at a path only for a file that no other process uses yet."""
        store = cls.__new__(cls)
        store.path, store.lock = None if path is None else Path(os.path.abspath(path)), threading.RLock()
        store.name = "the database" if path is None else str(path)
        with store._sentences():
            store._connection = _open(":memory:" if path is None else str(path))
            for pragma in ("journal_mode = OFF", "synchronous = OFF"):  # a failed build is thrown away as a whole
                store.rows(f"PRAGMA {pragma}")
            store._connection.executescript(
                f"PRAGMA page_size = {PAGE}; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT};"
                + _SCHEMA
            )
            if path is None:
                store.rows("PRAGMA journal_mode = MEMORY")
        return store

    @classmethod
    def created(cls, path: Path) -> DatabaseFile:
        """A file that `copy_to` has made and no other process uses yet, for further writes without a log."""
        store = cls(path)
        for pragma in ("journal_mode = OFF", "synchronous = OFF"):
            store.rows(f"PRAGMA {pragma}")
        return store

    def _connect(self) -> sqlite3.Connection:
        if self.path is None:
            return _open(":memory:")
        found = header_of(self.path)
        if found is None:
            raise ValueError(_no_database(self.path, self.name))
        if found > FORMAT:
            raise ValueError(
                f"{self.name} was saved in format {found}; this version reads up to {FORMAT}. Upgrade hbmp."
            )
        # A file that nobody can write has no log and none will come; then SQLite must not look for one.
        ways = ["mode=rw", "mode=ro" if Path(f"{self.path}-wal").exists() else "mode=ro&immutable=1"]
        with self._sentences():
            for way in ways:
                try:
                    return _open(f"{self.path.as_uri()}?{way}")
                except sqlite3.OperationalError as error:
                    words = str(error)
                    if way == ways[-1] or not ("unable to open" in words or "readonly" in words):
                        raise
        raise AssertionError("a way succeeds or raises")

    def rows(self, statement: str, values: Iterable[Any] = ()) -> list[Any]:
        """All rows of a statement."""
        with self.lock, self._sentences():
            return self._open().execute(statement, tuple(values)).fetchall()

    def many(self, statement: str, rows: Iterable[Any]) -> None:
        """One statement for many rows."""
        with self.lock, self._sentences():
            self._open().executemany(statement, rows)

    def get(self, name: str, *default: Any) -> Any:
        """A fact by its name; the default if there is none."""
        found = self.rows("SELECT value, crc FROM meta WHERE name = ?", [name])
        if not found and default:
            return default[0]
        if not found or _crc(name, found[0][0]) != found[0][1]:
            raise self.damaged(f"the fact {name!r} is missing or does not match its checksum")
        return json.loads(found[0][0])

    def put(self, name: str, value: Any) -> None:
        """Write a fact, inside a transaction."""
        text = json.dumps(value, ensure_ascii=False)
        self.rows("REPLACE INTO meta VALUES (?, ?, ?)", [name, text, _crc(name, text)])

    def damaged(self, why: str) -> ValueError:
        """The error for contents that cannot be."""
        return ValueError(f"{self.name} is damaged ({why}). Restore it from a copy, or make it again.")

    @contextmanager
    def decoding(self, what: str) -> Iterator[None]:
        """Turn errors in decoding the content of the file into one sentence."""
        try:
            yield
        except _OF_DECODING as error:
            if str(error).startswith(f"{self.name} is damaged"):
                raise
            raise self.damaged(f"{what}: {first_line(error)}") from error

    def new_generation(self) -> None:
        """Notify readers that the blocks they have read no longer exist, inside a transaction."""
        self.put("generation", uuid.uuid4().hex)

    def version(self) -> int:
        """A number that changes with each transaction of another connection."""
        return int(self.rows("PRAGMA data_version")[0][0])

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[None]:
        """All or nothing; without writes, one state of the file for several statements, also inside another one."""
        with self.lock:
            if not writes and self._open().in_transaction:
                yield
                return
            self.rows("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                yield
                self.rows("COMMIT")
            except BaseException:
                if self._connection is not None and self._connection.in_transaction:
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                raise

    def copy_to(self, path: Path) -> None:
        """Copy everything into another file; into an existing database as one transaction."""
        with self.lock, self._sentences():
            target = _open(str(path))
            try:
                target.execute(f"PRAGMA page_size = {PAGE}")
                self._open().backup(target)
            finally:
                target.close()

    def finish(self) -> None:
        """End a build: give the file its log and close it. It is whole on the disk afterwards."""
        self.rows("PRAGMA journal_mode = WAL")
        self.close()

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self.close()  # unlike deallocation, this removes the files of the log

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ValueError("This database is closed; open it again.")
        return self._connection

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._as_sentence(error) from error
        except UnicodeDecodeError as error:
            raise self.damaged(str(error)) from error
        except UnicodeEncodeError as error:
            found = error.object[error.start : error.end]
            raise ValueError(f"A text holds {found!a}, which is not Unicode and cannot be kept; replace it.") from error
        except OverflowError as error:
            raise ValueError("A whole number does not fit in 64 bits; write it as text.") from error

    def _as_sentence(self, error: sqlite3.Error) -> Exception:
        name, words = self.name, str(error)
        if "readonly" in words:
            return PermissionError(f"{name} is read-only here; copy it to a place that can be written.")
        if "locked" in words or "busy" in words:
            seconds = f"{_PATIENCE:g} seconds"
            return TimeoutError(f"{name} has been written by another process for {seconds}; try again later.")
        if "full" in words or "I/O" in words:
            return OSError(f"{name} cannot be written ({words}); nothing was changed. Free some space and try again.")
        if "unable to open" in words:
            return OSError(f"{name} cannot be opened ({words}).")
        if isinstance(error, sqlite3.DatabaseError) and any(sign in words for sign in _OF_DAMAGE):
            return self.damaged(words)
        return error


def header_of(path: str | Path) -> int | None:
    """The format number of a database file; None for any other file."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError:
        return None
    if not head.startswith(b"SQLite format 3\0") or int.from_bytes(head[68:72], "big") != APPLICATION:
        return None
    return int.from_bytes(head[60:64], "big")


def _no_database(path: Path, name: str) -> str:
    """The sentence for a path that holds no database."""
    if not path.exists():
        return f"There is no database {name}. Make one with `hbmp index`."
    if (path / DESCRIPTION).is_file():
        return f"{name} is a model, not a database. Make one with `hbmp index {name} DATA -o DB`."
    return f"{name} is not a database. Make one with `hbmp index`."


def _open(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        name, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=name.startswith("file:")
    )
    try:
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # opens the file
        return connection
    except BaseException:
        connection.close()
        raise


def _crc(*parts: str) -> int:
    return zlib.crc32("\n".join(str(part) for part in parts).encode("utf-8", "surrogatepass"))
