"""`fetch` against a real HTTP server on this machine that resumes, cuts connections, corrupts bytes and lies."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import stat
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from hbmp import cli, datasets
from hbmp import fetch as fetching
from hbmp.datasets import Remote

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
        resumed = server.ranges and wanted and condition in (None, server.tag)
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
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body if cut is None else body[:cut])
            self.wfile.flush()


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


def fetch(folder, name="labelme", **options):
    return fetching.fetch(name, folder, pause=0.001, **options)


def fetched(folder):
    return (folder / "labelme" / "LabelMe_gist.mat").read_bytes()


def left_over(folder):
    return sorted(path.name for path in folder.rglob("*") if ".part" in path.name or path.name.startswith(".unpack"))


def test_a_whole_file_is_fetched_once(server, serve, tmp_path):
    serve()
    done = fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert (done.downloaded_bytes, done.files) == (len(CONTENT), ("LabelMe_gist.mat",))
    again = fetch(tmp_path)
    assert again.downloaded_bytes == 0
    assert len(server.requests) == 1
    assert left_over(tmp_path) == []
    entry = json.loads((tmp_path / "labelme" / "fetch.json").read_text())["LabelMe_gist.mat"]
    assert entry["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert entry["md5"] == hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


def test_a_cut_connection_is_resumed_where_it_broke(server, serve, tmp_path):
    serve()
    server.cuts = [100_000, 50_000]
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert [wanted for _, wanted, _ in server.requests] == [None, "bytes=100000-", "bytes=150000-"]
    assert server.requests[1][2] == '"one"'


def test_a_later_run_goes_on_from_the_part(server, serve, tmp_path):
    serve()
    server.cuts = [100_000, 0, 0, 0]
    with pytest.raises(ValueError, match=r"broke off 3 times at 100000 bytes.*Run the same command to go on"):
        fetch(tmp_path, attempts=3)
    assert (tmp_path / "labelme" / "LabelMe_gist.mat.part").stat().st_size == 100_000
    assert not (tmp_path / "labelme" / "LabelMe_gist.mat").exists()
    server.cuts = []
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert server.requests[-1][1] == "bytes=100000-"
    assert left_over(tmp_path) == []


def test_a_server_that_ignores_ranges_sends_it_all_again(server, serve, tmp_path):
    serve()
    server.ranges = False
    server.cuts = [100_000]
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert len(server.requests) == 2


def test_a_file_that_changed_meanwhile_starts_over(server, serve, tmp_path):
    changed = CONTENT[::-1]
    serve(digests=False)
    server.cuts = [100_000, 0]
    with pytest.raises(ValueError, match="broke off 1 times"):
        fetch(tmp_path, attempts=1)
    server.files["LabelMe_gist.mat"], server.tag, server.cuts = changed, '"two"', []
    fetch(tmp_path)
    assert fetched(tmp_path) == changed
    assert server.requests[-1][1:] == ("bytes=100000-", '"one"')


def test_a_cut_without_announced_length_is_found_by_the_published_size(server, serve, tmp_path):
    serve()
    server.lengths = False
    server.cuts = [100_000]
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert [wanted for _, wanted, _ in server.requests] == [None, "bytes=100000-"]


def test_a_file_shorter_than_published_is_refused(server, serve, tmp_path):
    serve(bytes=len(CONTENT) + 1)
    with pytest.raises(ValueError, match="has 300000 bytes where 300001 are published; it was deleted"):
        fetch(tmp_path)
    assert list((tmp_path / "labelme").iterdir()) == []


def test_corrupt_bytes_are_refused_and_deleted(server, serve, tmp_path):
    serve()
    server.corrupt = {0}
    with pytest.raises(ValueError, match=r"has SHA256 [0-9a-f]{64} where [0-9a-f]{64} is published; it was deleted"):
        fetch(tmp_path)
    assert not (tmp_path / "labelme" / "LabelMe_gist.mat").exists()
    assert left_over(tmp_path) == []
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT


def test_a_part_with_wrong_bytes_is_thrown_away_and_fetched_whole(server, serve, tmp_path):
    serve()
    server.tag = None
    (tmp_path / "labelme").mkdir()
    (tmp_path / "labelme" / "LabelMe_gist.mat.part").write_bytes(b"x" * 1000)
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert [wanted for _, wanted, _ in server.requests] == ["bytes=1000-", None]


def test_a_complete_part_needs_no_bytes(server, serve, tmp_path):
    serve(digests=False)
    (tmp_path / "labelme").mkdir()
    (tmp_path / "labelme" / "LabelMe_gist.mat.part").write_bytes(CONTENT)
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert [wanted for _, wanted, _ in server.requests] == ["bytes=300000-"]


def test_md5_alone_is_checked_too(server, serve, tmp_path):
    serve(sha256="", md5=hashlib.md5(CONTENT, usedforsecurity=False).hexdigest())
    server.corrupt = {0}
    with pytest.raises(ValueError, match="has MD5"):
        fetch(tmp_path)
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT


def test_more_bytes_than_published_are_not_taken(server, serve, tmp_path):
    serve(bytes=1000)
    with pytest.raises(ValueError, match="sends more than the 1000 bytes expected"):
        fetch(tmp_path)
    assert not (tmp_path / "labelme" / "LabelMe_gist.mat").exists()


def test_passing_errors_are_tried_again_and_lasting_ones_are_not(server, serve, tmp_path):
    serve()
    server.statuses = [503, 429, 500]
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    server.files.clear()
    before = len(server.requests)
    with pytest.raises(ValueError, match="answered HTTP 404"):
        fetch(tmp_path, force=True)
    assert len(server.requests) == before + 1
    assert fetched(tmp_path) == CONTENT


def test_pauses_grow_while_nothing_comes(server, serve, tmp_path, monkeypatch):
    serve()
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    server.statuses = [503, 503, 503]
    fetching.fetch("labelme", tmp_path, pause=1.0)
    assert pauses == [1.0, 2.0, 4.0]


def test_the_mirror_is_asked_when_the_first_place_fails(server, serve, tmp_path):
    serve(url := "LabelMe_gist.mat", mirrors=(server.url("mirror"),))
    server.files["mirror"] = server.files.pop(url)
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT


def test_nobody_there_is_one_sentence(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(
        type(datasets.get("labelme")), "files", (Remote("http://127.0.0.1:1/LabelMe_gist.mat", "LabelMe_gist.mat"),)
    )
    with pytest.raises(ValueError, match=r"22K LabelMe could not be fetched: .*broke off 2 times at 0 bytes"):
        fetch(tmp_path, attempts=2)


def test_a_redirect_to_a_local_file_is_not_followed(server, serve, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    serve()
    server.redirects["LabelMe_gist.mat"] = secret.as_uri()
    with pytest.raises(ValueError, match="could not be fetched"):
        fetch(tmp_path, attempts=1)
    assert not (tmp_path / "labelme" / "LabelMe_gist.mat").exists()


def test_the_first_download_pins_what_is_not_published(server, serve, tmp_path):
    serve(digests=False)
    fetch(tmp_path)
    server.files["LabelMe_gist.mat"] = CONTENT[:-1] + b"?"
    with pytest.raises(ValueError, match=r"where the first download had .* \(noted in fetch\.json\)"):
        fetch(tmp_path, force=True)
    assert fetched(tmp_path) == CONTENT


def test_a_file_put_there_by_hand_is_verified_and_used(server, serve, tmp_path):
    serve()
    (tmp_path / "labelme").mkdir()
    path = tmp_path / "labelme" / "LabelMe_gist.mat"
    path.write_bytes(b"not it")
    with pytest.raises(ValueError, match=r"has 6 bytes where 300000 are published\. Delete it"):
        fetch(tmp_path)
    path.write_bytes(CONTENT)
    assert fetch(tmp_path).downloaded_bytes == 0
    assert server.requests == []


def test_a_file_lost_later_is_fetched_again(server, serve, tmp_path):
    serve()
    fetch(tmp_path)
    (tmp_path / "labelme" / "LabelMe_gist.mat").unlink()
    fetch(tmp_path)
    assert fetched(tmp_path) == CONTENT
    assert len(server.requests) == 2


def test_a_file_cut_later_is_noticed(server, serve, tmp_path):
    serve()
    fetch(tmp_path)
    (tmp_path / "labelme" / "LabelMe_gist.mat").write_bytes(CONTENT[:10])
    with pytest.raises(ValueError, match="has 10 bytes where 300000 are published"):
        fetch(tmp_path)
    fetch(tmp_path, force=True)
    assert fetched(tmp_path) == CONTENT


def test_the_command_says_verified_only_where_a_digest_is_published(serve, tmp_path, capsys):
    serve()
    assert cli.main(["fetch", "labelme", "--data-dir", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out.endswith("0.3 MB downloaded, verified.\n")
    serve(digests=False)
    assert cli.main(["fetch", "labelme", "--data-dir", str(tmp_path / "two")]) == 0
    assert capsys.readouterr().out.endswith("SHA-256 pinned in fetch.json (none is published).\n")


# --- archives -------------------------------------------------------------------------------------------------------


def tar_of(*members, mode="w:gz"):
    """A tar of (name, content or TarInfo type, link target)."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as tar:
        for name, content, *target in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes) and len(content) != 1:
                info.size, info.mode = len(content), 0o777
                tar.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content, target[0] if target else ""
                tar.addfile(info)
    return packed.getvalue()


def zip_of(*members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content, *mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode[0] if mode else stat.S_IFREG | 0o777) << 16
            zipped.writestr(info, content)
    return packed.getvalue()


BATCHES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]


def cifar_tar():
    return tar_of(
        ("cifar-10-batches-bin", tarfile.DIRTYPE),
        *((f"cifar-10-batches-bin/{name}", bytes([number]) + bytes(3072)) for number, name in enumerate(BATCHES)),
    )


def test_cifar10_from_the_server_to_the_loader(server, serve, tmp_path, capsys):
    serve("cifar-10-binary.tar.gz", cifar_tar(), name="cifar10")
    server.cuts = [100]
    assert cli.main(["fetch", "cifar10", "--data-dir", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == str(tmp_path / "cifar10")
    assert len(told["files"]) == 6
    assert datasets.load("cifar10", tmp_path).labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert not (tmp_path / "cifar10" / "cifar-10-binary.tar.gz").exists()
    assert not os.access(tmp_path / "cifar10" / "cifar-10-batches-bin" / "test_batch.bin", os.X_OK)
    assert cli.main(["fetch", "cifar10", "--data-dir", str(tmp_path)]) == 0
    assert "6 files" in (told_again := capsys.readouterr().out)
    assert "already there" in told_again


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([("../outside", b"evil")], "'../outside', a name outside its own folder"),
        ([("fine", b"good"), ("deep/../../outside", b"evil")], "a name outside its own folder"),
        ([("{here}/outside", b"evil")], "a name outside its own folder"),
        ([("C:\\outside", b"evil")], "a name outside its own folder"),
        ([("link", tarfile.SYMTYPE, "../.."), ("link/outside", b"evil")], "'link', a link or device"),
        ([("link", tarfile.SYMTYPE, "/etc/passwd")], "'link', a link or device"),
        ([("fine", b"good"), ("hard", tarfile.LNKTYPE, "../../outside")], "'hard'"),
        ([("pipe", tarfile.FIFOTYPE)], "'pipe', a link or device"),
        ([("device", tarfile.CHRTYPE)], "'device', a link or device"),
        ([("twice", b"good"), ("twice", b"evil")], "holds one name twice"),
        ([("file", b"good"), ("file/inside", b"evil")], "holds one name twice"),
        ([("bomb", bytes(1_000_000))], "unpacks to more bytes than its data set has"),
        ([("half", bytes(60_000)), ("other", bytes(60_000))], "unpacks to more bytes than its data set has"),
    ],
)
def test_a_malicious_tar_leaves_nothing(serve, tmp_path, monkeypatch, members, sentence):
    monkeypatch.setattr(type(datasets.get("cifar10")), "unpacked_bytes", 100_000)
    members = [(name.format(here=tmp_path), *rest) for name, *rest in members]
    serve("cifar-10-binary.tar.gz", tar_of(*members), name="cifar10")
    with pytest.raises(ValueError, match=sentence):
        fetch(tmp_path / "data", "cifar10")
    assert list((tmp_path / "data" / "cifar10").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([("../outside", b"evil")], "a name outside its own folder"),
        ([("/outside", b"evil")], "a name outside its own folder"),
        ([("link", b"/etc/passwd", stat.S_IFLNK | 0o777)], "a link, a device or encrypted"),
        ([("bomb", bytes(1_000_000))], "unpacks to more bytes than its data set has"),
    ],
)
def test_a_malicious_zip_leaves_nothing(serve, tmp_path, monkeypatch, members, sentence):
    monkeypatch.setattr(type(datasets.get("nuswide")), "unpacked_bytes", 100_000)
    serve("Groundtruth.zip", zip_of(*members), name="nuswide")
    with pytest.raises(ValueError, match=sentence):
        fetch(tmp_path / "data", "nuswide")
    assert list((tmp_path / "data" / "nuswide").iterdir()) == []


def test_a_zip_is_unpacked_below_what_is_there(serve, tmp_path):
    (tmp_path / "nuswide" / "AllLabels").mkdir(parents=True)
    (tmp_path / "nuswide" / "AllLabels" / "mine.txt").write_text("kept")
    serve("Groundtruth.zip", zip_of(("AllLabels/", b""), ("AllLabels/Labels_sky.txt", b"0\n1\n")), name="nuswide")
    done = fetch(tmp_path, "nuswide")
    assert done.files == ("AllLabels/Labels_sky.txt",)
    assert (tmp_path / "nuswide" / "AllLabels" / "Labels_sky.txt").read_bytes() == b"0\n1\n"
    assert (tmp_path / "nuswide" / "AllLabels" / "mine.txt").read_text() == "kept"
    assert "images are sent on request" in done.note


def test_an_archive_cut_short_is_told(serve, tmp_path):
    content = cifar_tar()
    serve("cifar-10-binary.tar.gz", content[: len(content) // 2], name="cifar10")
    with pytest.raises(ValueError, match="is not a whole archive"):
        fetch(tmp_path, "cifar10")


def test_what_cannot_be_downloaded_says_how_to_get_it(tmp_path, capsys):
    assert cli.main(["fetch", "imagenet100", "--data-dir", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("ImageNet100 is not a download. Ask for ImageNet")
    assert told.err.count("\n") == 1
