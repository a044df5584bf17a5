"""A real HTTP server on this machine that resumes, cuts connections, corrupts bytes and lies, as it is told to."""

from __future__ import annotations

import contextlib
from http.server import BaseHTTPRequestHandler

import numpy as np

from hbmp.datasets._shared import fetch as fetching

CONTENT = np.random.default_rng(0).bytes(300_000)


class Server:
    """Files by path, how each is served, and the requests that came."""

    def __init__(self, address):
        self.address = address
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None, str | None]] = []  # path, Range, If-Range
        self.cuts: list[int] = []  # bytes to send before cutting the connection, one a request
        self.statuses: list[int] = []  # errors to answer first
        self.corrupt: set[int] = set()  # requests (counted from 0) whose first byte is flipped
        self.ranges = True
        self.lengths = True
        self.length = ""  # sent in place of the true one
        self.conditions = True  # heeds If-Range
        self.tag = '"one"'
        self.redirects: dict[str, str] = {}

    def url(self, path):
        return f"{self.address}/{path}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server: Server = self.server.state
        path, wanted, condition = self.path.lstrip("/"), self.headers.get("Range"), self.headers.get("If-Range")
        server.requests.append((path, wanted, condition))
        self.close_connection = True
        if server.statuses:
            return self.answer(server.statuses.pop(0), b"")
        if path in server.redirects:
            return self.answer(302, b"", Location=server.redirects[path])
        if path not in server.files:
            return self.answer(404, b"")
        content = server.files[path]
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        resumed = server.ranges and wanted and (condition in (None, server.tag) or not server.conditions)
        if resumed and start >= len(content):
            return self.answer(416, b"", **{"Content-Range": f"bytes */{len(content)}"})
        body = content[start:] if resumed else content
        if len(server.requests) - 1 in server.corrupt:
            body = bytes([body[0] ^ 0xFF]) + body[1:]
        extra = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if resumed else {}
        if server.tag:
            extra["ETag"] = server.tag
        return self.answer(206 if resumed else 200, body, cut=server.cuts.pop(0) if server.cuts else None, **extra)

    def answer(self, status, body, cut=None, **headers):
        self.send_response(status)
        if self.server.state.lengths:
            self.send_header("Content-Length", self.server.state.length or str(len(body)))
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body if cut is None else body[:cut])
            self.wfile.flush()


def fetch(folder, name="labelme", **options):
    return fetching.fetch(name, folder, pause=0.001, **options)
