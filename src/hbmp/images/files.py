"""Image files of a folder, and their classes by the names of the folders above them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
_SPLIT_OF = {"train": 1, "test": 0, "val": 0, "query": 0, "database": 2}


def is_image_file(path: str | Path) -> bool:
    """Whether a name has the ending of an image. Files that start with a dot are hidden."""
    name = os.path.basename(path)
    return os.path.splitext(name)[1].lower() in ENDINGS and not name.startswith(".")


def image_files(folder: str | Path) -> list[str]:
    """The images under a folder as paths relative to it, sorted part by part, without hidden folders."""
    found = [os.path.relpath(place, folder) for place in _walk(folder)]
    return sorted(found, key=lambda path: path.split(os.sep))


def holds_images(folder: str | Path) -> bool:
    """Whether there is any image under a folder. The search stops at the first."""
    return next(_walk(folder), None) is not None


def _walk(folder: str | Path) -> Iterator[str]:
    """Every image under a folder. Links are followed, but no folder is read twice."""
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(place))
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(os.path.join(place, name)) not in seen
        ]
        yield from (os.path.join(place, name) for name in files if is_image_file(name))


def classes_of(files: Sequence[str]) -> list[str] | None:
    """The class of each file: its first folder, or its second under `train`, `test`, …; None if one has no folder."""
    places = [PurePath(file).parts for file in files]
    if any(len(place) == 1 for place in places):
        return None
    level = 0 if split_of(files) is None else 1
    return [place[level] for place in places]


def split_of(files: Sequence[str]) -> list[int] | None:
    """0 for queries, 1 for training, 2 for other database items, if `train`, `test`, … are above the classes."""
    places = [PurePath(file).parts for file in files]
    if not all(place[0] in _SPLIT_OF and len(place) > 2 for place in places):
        return None
    return [_SPLIT_OF[place[0]] for place in places]
