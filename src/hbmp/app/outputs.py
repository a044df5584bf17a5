"""Places to write to, checked before the work begins."""

from __future__ import annotations

import os
from pathlib import Path

from hbmp._core.npy_files import new_npy

__all__ = ["check_folder", "new_npy"]


def check_folder(path: str | Path) -> None:
    """Refuse a folder that cannot be made or written."""
    path = Path(path).absolute()
    place = next(place for place in (path, *path.parents) if place.exists())
    if not place.is_dir():
        raise ValueError(f"{path} cannot be a folder because {place} is a file. Choose another name.")
    if not os.access(place, os.W_OK):
        raise ValueError(f"{path} cannot be written: {place} is read-only. Choose another place.")
