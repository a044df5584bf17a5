"""32 clients at `hbmp serve` at once send searches, nonsense and half requests. The server never fails."""

from __future__ import annotations

import http.client
import json
import math
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import writers
from counting import Absent, Broken, generator

import hbmp

TITLE = "A crowd of 32 clients at `hbmp serve`"
PROMISE = "right answers, refusals as JSON sentences, no status 500, no traceback, flat memory, a short log"
GOAL = 100_000
SLICE = 128
_CLIENTS = 32
_EACH = 4  # requests of a client in one attack
_ITEMS = 2000
_LINES = 20  # of the server's log, however long it runs


class _Crowd:
    """The server, the right answers, and its memory."""

    def __init__(self, folder: Path):
        self.X = np.random.default_rng(1).standard_normal((_ITEMS, 6)).astype(np.float32)
        self.model = writers.lsh(16)
        payload = [{"n": row, "p": math.inf if row % 7 == 0 else row / 2, "t": f"text {row}"} for row in range(_ITEMS)]
        self.database = hbmp.Database.build(self.model, self.X, payload=payload, path=folder / "db")
        words = [sys.executable, "-m", "hbmp", "serve", "--index", str(folder / "db"), "--port", "0", "--no-map"]
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "HBMP_TOKEN": ""}
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=variables)
        self.log = open(folder / "log", "rb")  # noqa: SIM115 - open as long as the server
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http://" not in line:
            self.stop()
            raise Absent(f"hbmp serve did not start: {(folder / 'log').read_text(encoding='utf-8')[-200:].strip()}")
        self.address = urlsplit("http://" + line.split("http://")[1].strip())
        self.memory: list[float] = []
        self.lines: set[bytes] = set()  # of the log, which repeats none

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(timeout=30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.log.close()

    def attack(self, rng: np.random.Generator) -> list[tuple[str, str]]:
        """All clients at once."""
        seeds = rng.integers(2**31, size=_CLIENTS).tolist()
        with ThreadPoolExecutor(_CLIENTS) as pool:
            outcomes = [one for part in pool.map(self._client, seeds) for one in part]
        self._check_server()
        return outcomes

    def _check_server(self) -> None:
        if self.process.poll() is not None:
            raise Broken(f"the server ended with {self.process.returncode}")
        self._check_log(self.log.read())  # what this attack added
        with suppress(OSError):
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
            self.memory.append(pages * 4096 / 2**20)
        settled = self.memory[20:]  # caches fill first
        if len(settled) > 20 and settled[-1] - settled[0] > 60:
            raise Broken(f"the memory of the server grew from {settled[0]:.0f} to {settled[-1]:.0f} MB")

    def _check_log(self, written: bytes) -> None:
        lines = written.splitlines()
        repeated = len(self.lines.union(lines)) < len(self.lines) + len(lines)
        self.lines.update(lines)
        if b"Traceback" in written or repeated or (lines and len(self.lines) > _LINES):
            raise Broken(f"the log of the server: {written[-1500:].decode(errors='replace')}")

    def _client(self, seed: int) -> list[tuple[str, str]]:
        rng = generator(seed, 0)
        connection = http.client.HTTPConnection(self.address.hostname or "", self.address.port, timeout=60)
        try:
            kinds = rng.choice(["search", "search", "search", "item", "wrong", "raw"], _EACH)
            return [(str(kind), self._one(str(kind), rng, connection)) for kind in kinds]
        finally:
            connection.close()

    def _one(self, kind: str, rng: np.random.Generator, connection: http.client.HTTPConnection) -> str:
        """One request; the server may end a connection that was idle, as on a busy machine, so it is made once more."""
        try:
            return str(getattr(self, f"_{kind}")(rng, connection))
        except (http.client.RemoteDisconnected, ConnectionError):
            connection.close()
        try:
            return f"{getattr(self, f'_{kind}')(rng, connection)}, connected again"
        except (http.client.HTTPException, OSError) as error:
            raise Broken(f"{kind}: {type(error).__name__}: {error}") from error

    def _search(self, rng: np.random.Generator, connection: http.client.HTTPConnection) -> str:
        """A search with its right answer."""
        row, k = int(rng.integers(_ITEMS)), int(rng.integers(1, 30))
        vector = (self.X[row] + rng.normal(size=6).astype(np.float32) * 0.1).astype(np.float32)
        status, answer = _ask(connection, "/search", {"vector": vector.tolist(), "k": k, "mode": "plain"})
        if status == 503:
            return "refused: busy"
        distances, ids = self.database.search(vector[None], k)
        found = [one["id"] for one in answer.get("results", ())]
        if status != 200 or found != ids[0].tolist():
            raise Broken(f"status {status}, ids {found}, expected {ids[0].tolist()}")
        if not np.allclose([one["distance"] for one in answer["results"]], distances[0]):
            raise Broken(f"other distances: {answer['results'][:3]}")
        return "right"

    def _item(self, rng: np.random.Generator, connection: http.client.HTTPConnection) -> str:
        """An item that exists, or not."""
        row = int(rng.integers(-5, _ITEMS + 50))
        connection.request("GET", f"/items/{row}")
        status, answer = _answer(connection)
        if status == 503:
            return "refused: busy"
        if status != (200 if 0 <= row < _ITEMS else 404):
            raise Broken(f"item {row}: status {status}")
        if status == 200 and answer["code"] != self.model.transform(self.X[row : row + 1])[0].tolist():
            raise Broken(f"item {row}: another code")
        return "right" if status == 200 else "refused"

    def _wrong(self, rng: np.random.Generator, connection: http.client.HTTPConnection) -> str:
        """A request that must be refused in JSON."""
        body, headers = _WRONG[rng.integers(len(_WRONG))]
        connection.request("POST", "/search", body, {"Content-Type": "application/json", **headers})
        status, answer = _answer(connection)
        if (not 400 <= status < 500 and status != 503) or not isinstance(answer.get("detail"), str):
            raise Broken(f"{body[:60]!r} {headers}: status {status}, {answer}")
        return "refused"

    def _raw(self, rng: np.random.Generator, _: http.client.HTTPConnection) -> str:
        """Bytes that are no whole request; the server may answer or close."""
        content = _RAW[rng.integers(len(_RAW))]
        with socket.create_connection((self.address.hostname, self.address.port), timeout=60) as line:
            line.sendall(content[: rng.integers(1, len(content) + 1)])
            if rng.random() < 0.5:
                return "left"
            line.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                head = line.recv(20)
                if head.startswith(b"HTTP/1.1 5") and not head.startswith(b"HTTP/1.1 503"):
                    raise Broken(f"{content[:60]!r}: {head!r}")
        return "answered or closed"


def _ask(connection: http.client.HTTPConnection, path: str, content: Any) -> tuple[int, dict[str, Any]]:
    connection.request("POST", path, json.dumps(content), {"Content-Type": "application/json"})
    return _answer(connection)


def _answer(connection: http.client.HTTPConnection) -> tuple[int, dict[str, Any]]:
    response = connection.getresponse()
    content = json.loads(response.read())
    if response.will_close:
        connection.close()
    return response.status, content


_JSON = b'{"vector": [1, 2, 3, 4, 5, 6]}'
_WRONG: list[tuple[bytes, dict[str, str]]] = [
    (b"", {}),
    (b"{", {}),
    (b"[" * 100_000, {}),
    (b"\xff\xfe", {}),
    (b"null", {}),
    (b'{"vector": [1, 2]}', {}),
    (b'{"vector": [1e999, 2, 3, 4, 5, 6]}', {}),
    (b'{"vector": [1e39, 2, 3, 4, 5, 6]}', {}),
    (b'{"vector": [NaN, 2, 3, 4, 5, 6]}', {}),
    (b'{"vector": "abc"}', {}),
    (b'{"id": 10000000000000000000000000000000}', {}),
    (b'{"id": -1}', {}),
    (b'{"id": 1, "vector": [1, 2, 3, 4, 5, 6]}', {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "k": 0}', {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "k": 1000000}', {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "n_bits": 17}', {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "where": {"label": {"<": 3}}}', {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "rescore": 10}', {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "mode": "best"}', {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "where": {"n": 1' + b"0" * 30 + b"}}", {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "where": {"n": {"<": -1' + b"0" * 400 + b"}}}", {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "where": {"t": "\\ud800"}}', {}),
    (b'{"vector": [1, 2, 3, 4, 5, 6], "where": {"t": ["a", {}]}}', {}),
    (b'{"scores": [1]}', {}),
    (b'{"scores": [' + b"0, " * 15 + b"1e39]}", {}),
    (b" " * (2**20 + 1), {}),
    (_JSON, {"Host": "evil.example"}),
    (_JSON, {"Content-Type": "multipart/form-data; boundary=x"}),
    (_JSON, {"Content-Type": "multipart/form-data"}),
]
_RAW = [
    b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n{}",
    b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}",
    b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{",
    b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /items/1\r\n" * 50,
    b"GET /" + b"a" * 70_000,
    b"POST /search HTTP/1.1\r\nHost: localhost\r\nX: \x00\xff\r\n\r\n",
    b"DELETE /items/1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /static/../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /items/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """One attack is all clients at once, each with a few requests."""
    crowd = _Crowd(folder)
    try:
        yield lambda number, rng: crowd.attack(rng)
    finally:
        crowd.stop()
