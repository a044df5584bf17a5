"""Clients that the server does not trust: foreign Host headers, heads that never end, requests that are not HTTP."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pytest
from serving import serving

import hbmp
from hbmp.app.web.connections import Once, room
from hbmp.app.web.hosts import KnownHosts

HANDLES = 96


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers")
    X = np.random.default_rng(0).standard_normal((40, 8))
    hbmp.Database.build(hbmp.get_method("lsh")(16, random_state=0).fit(X), X).save(folder / "db")
    return folder


@contextmanager
def small_server(folder):
    """A server with few file handles; gives its host and port, and the lines of its log once it has ended."""
    command = ["sh", "-c", f'ulimit -n {HANDLES}; exec "$@"', "sh"]
    command += [sys.executable, "-m", "hbmp", "serve", "--index", str(folder / "db"), "--no-map", "--port", "0"]
    log = folder / "log.txt"
    with (
        open(log, "w") as stderr,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "HBMP_TOKEN": ""},
        ) as process,
    ):
        lines: list[str] = []
        try:
            found = re.search(r"http://([\d.]+):(\d+)", process.stdout.readline())
            yield (found[1], int(found[2])), lines
        finally:
            process.terminate()
            process.wait(timeout=20)
            lines += log.read_text().splitlines()


def exchange(address, content):
    """What the server sends until it closes the connection."""
    with socket.create_connection(address, timeout=20) as sender:
        sender.sendall(content)
        return b"".join(iter(lambda: sender.recv(65_536), b""))


def test_a_foreign_host_header_is_refused_on_every_route(folder):
    with serving("--index", folder / "db", "--no-map", "--allow-host", "codes.example") as url:
        for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.168.0.1", "[::2]"):
            for path in ("/", "/info", "/items/0", "/healthz", "/static/app.js"):
                answer = httpx.get(url + path, headers={"Host": host})
                assert answer.status_code == 421, (host, path)
                assert "--allow-host NAME" in answer.json()["detail"]
        port = url.rpartition(":")[2]
        for known in ("localhost", f"LOCALHOST:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "codes.example"):
            assert httpx.get(f"{url}/info", headers={"Host": known}).status_code == 200, known


def test_a_server_at_every_address_accepts_addresses_and_its_own_name():
    everywhere, here = KnownHosts(None, "0.0.0.0"), KnownHosts(None, "search.example")
    for header in ("192.168.0.7:8000", "[2001:db8::1]:8000", socket.gethostname(), "localhost"):
        assert everywhere.accepts(header), header
    assert not everywhere.accepts("evil.example")
    assert here.accepts("Search.example.:8000")
    assert not here.accepts("192.168.0.7")
    assert not here.accepts("")


def test_what_is_not_http_gets_400_and_the_log_one_line(folder):
    heads = [
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"no HTTP at all\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ]
    with small_server(folder) as (address, lines):
        for head in 3 * heads:
            answer = exchange(address, head)
            assert answer.startswith(b"HTTP/1.1 400 "), head
            assert b'{"detail": "The request is not valid HTTP; check its head."}' in answer
    assert len(lines) == 1
    assert "Invalid HTTP" in lines[0]


def test_forms_that_are_none_do_not_fill_the_log(folder):
    """The parser of forms warns of each with its bytes."""
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    with small_server(folder) as ((host, port), lines):
        for first in range(65, 85):
            answer = httpx.post(f"http://{host}:{port}/search", content=bytes([first, first]), headers=kind)
            assert answer.status_code == 422
            assert answer.json()["detail"].startswith("The form cannot be read")
    assert len(lines) <= 1, lines


def test_senders_of_half_a_head_neither_stop_the_server_nor_fill_its_log(folder):
    with small_server(folder) as (address, lines):
        held = []
        try:
            for _ in range(3 * HANDLES):
                sender = socket.create_connection(address, timeout=20)
                sender.sendall(b"GET / HTTP/1.1\r\nHost: local")
                held.append(sender)
            for _ in range(5):
                answer = httpx.get(f"http://{address[0]}:{address[1]}/info", timeout=5)
                assert answer.status_code == 200
        finally:
            for sender in held:
                sender.close()
    assert 1 <= len(lines) <= 3, lines
    assert not any("Traceback" in line for line in lines)


def test_a_head_must_arrive_in_time_and_a_used_connection_may_not_dawdle(folder):
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with small_server(folder) as (address, _):
        started = time.monotonic()
        assert exchange(address, b"GET / HTTP/1.1\r\nHost: local") == b""
        assert 8 < time.monotonic() - started < 19
        started = time.monotonic()
        answer = exchange(address, whole + whole[:20])
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert time.monotonic() - started < 19


def test_the_room_leaves_handles_for_files():
    for handles in (64, 128, 1024, 1_048_576):
        connections, backlog = room(handles)
        assert 4 <= backlog <= 128
        assert 8 <= connections <= max(handles - backlog - 48, 12)
    assert room(-1).connections == 9_872


def test_a_warning_passes_once_and_an_error_always():
    import logging

    once = Once()
    records = [
        logging.LogRecord("x", level, "parser.py", line, text, (), None)
        for level, line, text in [(30, 7, "a"), (30, 7, "b"), (40, 7, "a"), (40, 7, "a"), (30, 8, "a")]
    ]
    assert [once.filter(record) for record in records] == [True, False, True, True, True]
