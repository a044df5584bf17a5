"""Files are written beside their place and renamed into it: a reader never meets half of one."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_into_place(path: str | Path, content: bytes | str) -> Path:
    """Write a whole file at once, replacing what was there; on any failure what was there stays. Text is UTF-8."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        beside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def check_place(path: str | Path | None) -> None:
    """Say in a sentence that a file could not be written there, before work is done for it; None is no file."""
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
