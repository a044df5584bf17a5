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
