"""Archives that want out of their folder, and file servers that lie: nothing outside is touched."""

from __future__ import annotations

import hashlib
import io
import shutil
import stat
import tarfile
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from counting import Broken, sentence
from file_server import CONTENT, Handler, Server

from hbmp._core.download import discard, download
from hbmp._core.unpack import unpack

TITLE = "Hostile archives and file servers"
PROMISE = "whole and right, or one sentence and nothing unpacked; never a file outside the folder"
GOAL = 10_000
SLICE = 40
_BOUND = 200_000
_KINDS = (".zip", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz")
_NAMES = (
    "a.txt",
    "b/c.txt",
    "b/d/e.txt",
    "ä/ö.txt",
    " ",
    "a" * 200,
    "b",
    "B/c.txt",
    "CON",
    ".hidden",
    "b//c.txt",
    "./f",
)
_EVIL = (
    "../out.txt", "/tmp/out.txt", "b/../../out.txt", "..", "", ".", "C:/out.txt", "..\\out.txt", "a\0b", "x" * 300,
    "/", "b/..", "\\\\host\\out.txt", "a/" * 200 + "b",
)  # fmt: skip


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """Three archives, then one download."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.state = Server(f"http://127.0.0.1:{http.server_port}")  # type: ignore[attr-defined]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield (
                lambda number, rng: (
                    _download(rng, http.state, folder) if number % 4 == 3 else _archive(rng, folder)  # type: ignore[attr-defined]
                )
            )
        finally:
            http.shutdown()
            thread.join()


def _archive(rng: np.random.Generator, folder: Path) -> list[tuple[str, str]]:
    shutil.rmtree(folder / "box", ignore_errors=True)
    target = folder / "box" / "deep" / "data"
    target.mkdir(parents=True)
    (target / "kept.txt").write_text("kept", encoding="utf-8")
    kind = str(rng.choice(_KINDS))
    archive = folder / "box" / f"archive{kind}"
    try:
        archive.write_bytes(_damaged(rng, (_zip if kind == ".zip" else _tar)(rng, kind)))
    except (ValueError, OSError, UnicodeError):  # what Python itself does not write
        return [("archive", "could not be made")]
    before = {path: path.read_bytes() for path in (folder / "box").rglob("*") if path.is_file()}
    try:
        sizes = unpack(archive, target, bound=_BOUND)
    except Exception as error:
        if archive.name not in sentence(error):
            raise Broken(f"a sentence without the archive: {error}") from error
        sizes = None
    after = {path: path.read_bytes() for path in (folder / "box").rglob("*") if path.is_file()}
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    if any(not path.is_relative_to(target) for path in changed) or Path("/tmp/out.txt").exists():
        raise Broken(f"files outside the folder: {changed}")
    if any(path.is_symlink() or path.stat().st_mode & 0o111 for path in target.rglob("*") if not path.is_dir()):
        raise Broken("a link, or a file with the right to execute")
    if sizes is None and (changed or [*target.iterdir()] != [target / "kept.txt"]):
        raise Broken(f"refused, but left {changed}")
    if sizes is not None and sum(sizes.values()) > _BOUND:
        raise Broken(f"{sum(sizes.values())} bytes above the bound")
    return [("archive", "refused in a sentence" if sizes is None else "unpacked inside")]


def _members(rng: np.random.Generator) -> list[tuple[str, bytes]]:
    names = [str(rng.choice(_NAMES)) for _ in range(rng.integers(1, 6))]
    if rng.random() < 0.4:
        names.insert(int(rng.integers(len(names) + 1)), str(_EVIL[rng.integers(len(_EVIL))]))
    return [
        (name, bytes(int(rng.choice([0, 5, 1000, 1000, 300_000], p=[0.2, 0.4, 0.2, 0.15, 0.05])))) for name in names
    ]


def _tar(rng: np.random.Generator, kind: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{kind.removeprefix('.tar').lstrip('.')}") as tar:
        for name, content in _members(rng):
            info = tarfile.TarInfo(name)
            info.mode = int(rng.choice([0o644, 0o777, 0o4755, 0]))
            info.size = len(content)
            if rng.random() < 0.15:
                kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)
                info.type, info.linkname, info.size = kinds[rng.integers(5)], str(rng.choice(_EVIL[:3])), 0
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def _zip(rng: np.random.Generator, kind: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in _members(rng):
            info = zipfile.ZipInfo(name or "?")
            info.external_attr = int(rng.choice([stat.S_IFREG | 0o777, stat.S_IFREG, stat.S_IFLNK | 0o777, 0])) << 16
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # names that come twice
                zipped.writestr(info, content)
    return packed.getvalue()


def _damaged(rng: np.random.Generator, whole: bytes) -> bytes:
    if rng.random() < 0.6:
        return whole
    damaged = bytearray(whole)
    for _ in range(rng.integers(1, 4)):
        damaged[rng.integers(len(damaged))] = rng.integers(256)
    return bytes(damaged[: rng.integers(len(damaged))] if rng.random() < 0.3 else damaged)


def _download(rng: np.random.Generator, server: Server, folder: Path) -> list[tuple[str, str]]:
    """A file in several tries, from a server that misbehaves before each."""
    part = folder / "data.bin.part"
    discard(part)
    content = CONTENT[: int(rng.choice([1, 2, 1000, 50_000]))]
    for attempt in range(4):
        if rng.random() < 0.3:
            content = content[::-1] if attempt % 2 else content + b"more"  # the file changes on the server
        _misbehave(rng, server, content)
        try:
            download(server.url("data.bin"), part, bound=60_000, attempts=2, pause=0.0)
        except Exception as error:
            sentence(error)
            if part.is_file() and part.stat().st_size > 60_000:
                raise Broken("more than the bound was kept") from error
            continue
        honest = not server.corrupt and server.conditions and not server.length
        if honest and hashlib.sha256(part.read_bytes()).digest() != hashlib.sha256(content).digest():
            raise Broken(f"another file: {part.stat().st_size} bytes of {len(content)} from an honest server")
        return [("download", "whole" if honest else "finished, its checksum decides")]
    return [("download", "refused in a sentence")]


def _misbehave(rng: np.random.Generator, server: Server, content: bytes) -> None:
    server.files = {"data.bin": content}
    server.requests = []
    server.cuts = [int(n) for n in rng.integers(0, len(content) + 1, rng.integers(3))]
    server.statuses = [int(status) for status in rng.choice([500, 503, 404, 429, 416], rng.integers(2))]
    server.corrupt = {0} if rng.random() < 0.1 else set()
    server.ranges, server.lengths = bool(rng.random() < 0.8), True
    server.conditions = bool(rng.random() < 0.8)
    server.length = str(rng.choice(["", "", "", "", "abc", "-5", "99999999999"]))
    server.tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
