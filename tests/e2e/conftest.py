"""What end-to-end tests share: a file server, and a data set that comes from it."""

from __future__ import annotations

import hashlib
import threading
from http.server import ThreadingHTTPServer

import pytest
from file_server import CONTENT, Handler, Server

from hbmp import datasets
from hbmp.datasets import Remote


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.state = Server(f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield http.state
        http.shutdown()
        thread.join()


@pytest.fixture
def serve(server, monkeypatch):
    """Let the data set `labelme` (one plain file) or another come from the server."""

    def _serve(filename="LabelMe_gist.mat", content=CONTENT, *, name="labelme", digests=True, **more):
        server.files[filename] = content
        published = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} if digests else {}
        remote = Remote(server.url(filename), filename, **{**published, **more})
        monkeypatch.setattr(type(datasets.get(name)), "files", (remote,))
        return remote

    return _serve
