"""One file over HTTP into `NAME.part`: resumes where it broke off, retries with increasing delays.

A broken connection keeps the received bytes. The next attempt requests the rest (`Range`), on condition that the file
is unchanged (`If-Range`, with the tag of the server, stored in `NAME.part.tag`). A server that does not support ranges
sends the whole file, which then replaces the part.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

_BLOCK = 1 << 18
_TIMEOUT = 30  # seconds without a byte
_PASSING = {408, 425, 429}  # and everything from 500 on: the server may answer later


class DownloadError(OSError):
    """A file could not be downloaded. The message has the address and the reason."""


class _Broken(Exception):
    """The connection ended early; the bytes received are kept."""


def download(
    url: str, part: Path, *, bound: int, size: int = 0, attempts: int = 5, pause: float = 1.0, title=""
) -> None:
    """Fill `part` with the content of `url`.

    size: the bytes expected, 0 where unknown; bound: the most bytes accepted; attempts: tries without a new byte
    before giving up; pause: seconds before the second try, doubled each time.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"Only http and https are downloaded; found {url}.")
    failures = 0
    while True:
        before = _size(part)
        try:
            _receive(url, part, size, bound, title)
            return
        except _Broken as error:
            failures = 0 if _size(part) > before else failures + 1
            if failures >= attempts:
                raise DownloadError(
                    f"{url} broke off {attempts} times at {_size(part)} bytes ({error}). Run the same command to "
                    "continue."
                ) from error
            time.sleep(pause * 2 ** max(failures - 1, 0))


def discard(part: Path) -> None:
    """Discard the part of a file that was received."""
    part.unlink(missing_ok=True)
    _tag_file(part).unlink(missing_ok=True)


def _receive(url: str, part: Path, size: int, bound: int, title: str) -> None:
    """One try: append what comes; `_Broken` when the connection ends early."""
    have = _size(part)
    if size and have == size:
        return
    if have > (size or bound):
        discard(part)
        have = 0
    try:
        with _opener().open(_request(url, part, have), timeout=_TIMEOUT) as response:
            start, total = _range_of(response, have)
            _check_unchanged(response, part, start)
            _remember_tag(response, part)
            _copy(response, part, start, total or size or None, size or bound, title)
    except urllib.error.HTTPError as error:
        with error:
            _on_status(error, url, part)
    except (http.client.HTTPException, OSError) as error:
        if isinstance(error, DownloadError):
            raise
        raise _Broken(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _on_status(error: urllib.error.HTTPError, url: str, part: Path) -> None:
    if error.code == 416 and error.headers.get("Content-Range", "").endswith(f"/{_size(part)}"):
        return  # the part is the whole file
    if error.code == 416:
        discard(part)
        raise _Broken("the part did not fit the file") from error
    if error.code >= 500 or error.code in _PASSING:
        raise _Broken(f"HTTP {error.code}") from error
    raise DownloadError(f"{url} returned HTTP {error.code} {error.reason}.") from error


def _request(url: str, part: Path, have: int) -> urllib.request.Request:
    headers = {"User-Agent": "hbmp", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        tag = _tag_file(part)
        if tag.is_file():
            headers["If-Range"] = tag.read_text(encoding="latin-1")
    return urllib.request.Request(url, headers=headers)


def _range_of(response, have: int) -> tuple[int, int | None]:
    """(offset of the answer in the file, size of the whole file if known)."""
    length = response.headers.get("Content-Length", "")
    if response.status != 206:
        return 0, _number(length)
    unit, _, rest = response.headers.get("Content-Range", "").partition(" ")
    span, _, total = rest.partition("/")
    start = span.partition("-")[0]
    if unit != "bytes" or start != str(have):
        raise _Broken(f"requested bytes from {have}, the answer begins at {start or 'nowhere'}")
    return have, _number(total)


def _number(text: str) -> int | None:
    """The number of bytes in a header, None if there is none that a file can have."""
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _check_unchanged(response, part: Path, start: int) -> None:
    """Discard the part if the answer continues another file: some servers ignore `If-Range`."""
    if not start:
        return
    known, tag = _tag_file(part), _tag_of(response)
    if known.is_file() and tag and tag != known.read_text(encoding="latin-1"):
        discard(part)
        raise _Broken("the file changed on the server")


def _copy(response, part: Path, start: int, total: int | None, bound: int, title: str) -> None:
    from tqdm import tqdm

    with (
        part.open("r+b" if start else "wb") as file,
        tqdm(total=total, initial=start, unit="B", unit_scale=True, desc=title, disable=None, leave=False) as bar,
    ):
        file.seek(start)
        file.truncate()
        while block := response.read(_BLOCK):
            if start + len(block) > bound:
                raise DownloadError(
                    f"{response.url} sends more than the {bound} bytes expected; nothing of it is used."
                )
            file.write(block)
            start += len(block)
            bar.update(len(block))
    if total is not None and start < total:
        raise _Broken(f"{total - start} bytes are missing")


def _remember_tag(response, part: Path) -> None:
    tag = _tag_of(response)
    if tag:
        _tag_file(part).write_text(tag, encoding="latin-1")
    else:
        _tag_file(part).unlink(missing_ok=True)


def _tag_of(response) -> str:
    tag = response.headers.get("ETag", "")
    if not tag or tag.startswith("W/"):  # a weak tag does not guarantee equal bytes
        tag = response.headers.get("Last-Modified", "")
    return tag


def _opener() -> urllib.request.OpenerDirector:
    """Opens http and https alone, so that no redirect leads to a local file."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _tag_file(part: Path) -> Path:
    return part.with_name(part.name + ".tag")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
