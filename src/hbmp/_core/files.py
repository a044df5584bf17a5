"""Atomic writes: files are written under a temporary name and renamed, so that no reader sees half of one."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path


def write_into_place(path: str | Path, content: bytes | str) -> Path:
    """Write a whole file, replacing an earlier one. On any failure the earlier one stays. Text is UTF-8."""
    with beside(path) as part:
        part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)


@contextlib.contextmanager
def beside(path: str | Path) -> Iterator[Path]:
    """A temporary path, renamed to `path` if the block succeeds and removed if it fails."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


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
