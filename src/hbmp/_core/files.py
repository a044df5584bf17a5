"""Atomic writes: files are written under a temporary name and renamed, so that no reader sees half of one.

A temporary file is locked while it is written. One that is not locked belongs to a writer that was killed, and the next
write of the same file removes it (not on Windows, where open files cannot be locked and renamed).
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PART = re.compile(r"\.(.+)\.[0-9a-f]{32}\.part")


def write_into_place(path: str | Path, content: bytes | str) -> Path:
    """Write a whole file, replacing an earlier one. On any failure the earlier one is unchanged. Text is UTF-8."""
    with beside(path) as part:
        _write(part, content, Path(path))
    return Path(path)


def write_if_absent(path: str | Path, content: bytes | str) -> bool:
    """Write a whole file unless there is one already; whether it was written. Of several writers one succeeds."""
    path = Path(path)
    with _new_part(path) as part:
        _write(part, content, path)
        try:
            os.link(part, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            if path.exists():
                return False
            os.replace(part, path)
    return True


@contextlib.contextmanager
def beside(path: str | Path) -> Iterator[Path]:
    """A temporary empty file, renamed to `path` if the block succeeds and removed if it fails."""
    path = Path(path)
    remove_leftovers(path.parent, [path.name])
    with _new_part(path) as part:
        yield part
        os.replace(part, path)


def remove_leftovers(folder: Path, names: Collection[str]) -> None:
    """Remove temporary files for these names whose writers were killed."""
    with contextlib.suppress(OSError):
        for item in os.listdir(folder):
            found = _PART.fullmatch(item)
            if found and found[1] in names:
                _remove_unlocked(folder / item)


def check_place(path: str | Path | None) -> None:
    """Raise ValueError if a file cannot be written there, before any work is done. None is no file."""
    if path is None:
        return
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file to write.")
    folder = path.parent
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder} to write {path.name} into; make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{path} cannot be written: {folder} is read-only here.")


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the name of the file into an error of a write or a sync, which has none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _write(part: Path, content: bytes | str, path: Path) -> None:
    with naming(path), open(part, "wb") as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _new_part(path: Path) -> Iterator[Path]:
    """A new temporary file, locked and removed at the end if it is still there."""
    part, handle = _locked_part(path)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _locked_part(path: Path) -> tuple[Path, int | None]:
    """A new empty file, and the handle that holds its lock where there are locks."""
    while True:
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if fcntl is None:
            os.close(handle)  # an open file could not be renamed
            return part, None
        _lock(handle)
        if part.exists():  # another process may have removed it before it was locked
            return part, handle
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file; False where another process has it or the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_unlocked(part: Path) -> None:
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        handle = os.open(part, os.O_RDWR)
        try:
            if _lock(handle):
                part.unlink(missing_ok=True)
        finally:
            os.close(handle)
