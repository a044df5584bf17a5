"""The image files of a database's items: names relative to one folder, and the place of that folder.

The place is saved twice: relative to the database, and absolute. `restored` tries the relative place first, so that
database and images may move together, then the absolute one, so that the database may move alone.

    path_bytes   (total,) uint8   all names in UTF-8, one after another
    path_ends    (n,) int64       end of each name
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.images import Images


class ItemFiles:
    """Files under a folder, one per item.

    Parameters
    ----------
    folder : path
        The folder.
    names : sequence of str
        Paths relative to the folder, with forward slashes.

    Attributes
    ----------
    folder : Path
        The folder, absolute.

    Examples
    --------
    >>> from hbmp.database import ItemFiles
    >>> files = ItemFiles("pictures", ["cats/1.png", "dogs/2.png"])
    >>> len(files), files.name(1)
    (2, 'dogs/2.png')
    """

    def __init__(self, folder: str | Path, names: Sequence[str]):
        texts = [name.encode() for name in names]
        self.folder = Path(os.path.abspath(folder))
        self._bytes = np.frombuffer(b"".join(texts), dtype=np.uint8)
        self._ends = np.cumsum([len(text) for text in texts], dtype=np.int64)

    @classmethod
    def of(cls, images: Images) -> ItemFiles | None:
        """The files of images; None for images in an array or in Parquet."""
        files = images.files
        if not files:
            return None
        absolute = [os.path.abspath(file) for file in files]
        folder = os.path.abspath(images.folder) if images.folder else os.path.commonpath(map(os.path.dirname, absolute))
        return cls(folder, [PurePath(os.path.relpath(file, folder)).as_posix() for file in absolute])

    def __len__(self) -> int:
        return len(self._ends)

    def name(self, place: int) -> str:
        """The name of one item."""
        start = self._ends[place - 1] if place else 0
        return self._bytes[start : self._ends[place]].tobytes().decode()

    def names(self) -> list[str]:
        """All names, in the order of the items."""
        return [self.name(place) for place in range(len(self))]

    def path(self, place: int) -> str:
        """Path of one item's file, see `shortest`."""
        return shortest(self.folder / self.name(place))

    def images(self) -> Images:
        """All files as images."""
        return Images.from_files(self.names(), self.folder)

    def taken(self, places: NDArray[np.int64]) -> ItemFiles:
        """The files of some items, in that order."""
        return ItemFiles(self.folder, [self.name(int(place)) for place in places])

    def moved(self, folder: str | Path) -> ItemFiles:
        """The same names under another folder, which must hold at least the first of them."""
        if len(self) and not (Path(folder) / self.name(0)).is_file():
            raise ValueError(
                f"{folder} does not hold {self.name(0)}, the first image of the database; give the folder that the "
                "images were indexed from."
            )
        found = ItemFiles(folder, ())
        found._bytes, found._ends = self._bytes, self._ends
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The names as arrays to save."""
        return {"path_bytes": self._bytes, "path_ends": self._ends}

    def place_seen_from(self, database: Path) -> dict[str, str]:
        """The place of the folder for a database saved at this path."""
        return {
            "beside": PurePath(os.path.relpath(self.folder, os.path.abspath(database))).as_posix(),
            "absolute": str(self.folder),
        }

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]], place: dict[str, str], database: Path) -> ItemFiles:
        """The inverse of `arrays` and `place_seen_from` for a database opened at this path."""
        found = cls(folder_of(place, database), ())
        found._bytes, found._ends = arrays["path_bytes"], arrays["path_ends"]
        starts = np.concatenate([[0], found._ends[:-1]]).astype(np.int64)
        text = found._bytes.tobytes()
        # Two dots or a leading slash are rare, so only then are the names checked one by one.
        if b".." in text or (len(found) and (found._bytes[starts] == ord("/")).any()):
            for name in found.names():
                check_inside(name, database)
        return found


def folder_of(place: dict[str, str], database: Path | None) -> Path:
    """The folder of the files: relative to the database if it exists there, else the absolute path."""
    if database is None or "beside" not in place:
        return Path(place["absolute"])
    beside = Path(os.path.normpath(Path(os.path.abspath(database)) / place["beside"]))
    return beside if beside.is_dir() else Path(place["absolute"])


def check_inside(name: str, database: Path | None) -> str:
    """Refuse the name of a file outside the folder; else the name."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{database} names the file {name}, outside its folder of images. Make it again.")
    return name


def shortest(path: Path) -> str:
    """A path relative to the working directory if it lies below it, else absolute."""
    absolute, here = os.path.abspath(path), os.getcwd()
    inside = os.path.commonpath([absolute, here]) == here
    return os.path.relpath(absolute, here) if inside else absolute
