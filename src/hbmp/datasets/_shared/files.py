"""Paths and contents of data files: official archives unpack to a separate folder, which users often flatten."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path


def locate(folder: Path, name: str, subfolders: tuple[str, ...] = ()) -> Path | None:
    """The path of a file or folder called `name` in the folder itself or in the first subfolder that has it."""
    for place in ("", *subfolders):
        path = Path(folder) / place / name
        if path.exists():
            return path
    return None


def read_bytes(path: Path) -> bytes:
    """The content of a file, decompressed if its name ends in `.gz`."""
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file ({error}); fetch it again.") from error
