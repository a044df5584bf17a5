"""Which image file each item of a database is: names relative to one folder, and where that folder lies.

A database remembers the folder twice, as seen from itself and from the root of the machine. Opened again it looks
beside itself first, so database and images may move together, and then where the images were when they were indexed,
so the database may move alone.

names, as arrays   path_bytes (total,) uint8, UTF-8 one after the other · path_ends (n,) int64, where each stops
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath

import numpy as np

from hbmp.images import Images


class ItemFiles:
    """Files under a folder, one an item; names have forward slashes and stay inside the folder."""

    def __init__(self, folder: str | Path, names: Sequence[str]):
        texts = [name.encode() for name in names]
        self.folder = Path(os.path.abspath(folder))
        self._bytes = np.frombuffer(b"".join(texts), dtype=np.uint8)
        self._ends = np.cumsum([len(text) for text in texts], dtype=np.int64)

    @classmethod
    def of(cls, images: Images) -> ItemFiles | None:
        """The files of images; None where they lie in an array or in Parquet."""
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
        """Where one item's file is: as seen from here where it lies below, else from the root."""
        return shortest(self.folder / self.name(place))

    def images(self) -> Images:
        """All of them, to decode."""
        return Images.from_files(self.names(), self.folder)

    def taken(self, places: np.ndarray) -> ItemFiles:
        """The files of some items, in that order."""
        return ItemFiles(self.folder, [self.name(int(place)) for place in places])

    def moved(self, folder: str | Path) -> ItemFiles:
        """The same names under another folder, which must hold at least the first of them."""
        if len(self) and not (Path(folder) / self.name(0)).is_file():
            raise ValueError(
                f"{folder} does not hold {self.name(0)}, which the database names first; give the folder that the "
                "images were indexed from."
            )
        found = ItemFiles(folder, ())
        found._bytes, found._ends = self._bytes, self._ends
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """The names as arrays to save."""
        return {"path_bytes": self._bytes, "path_ends": self._ends}

    def place_seen_from(self, database: Path) -> dict[str, str]:
        """The folder as a database that is saved there remembers it."""
        return {
            "beside": PurePath(os.path.relpath(self.folder, os.path.abspath(database))).as_posix(),
            "absolute": str(self.folder),
        }

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], place: dict[str, str], database: Path) -> ItemFiles:
        """What `arrays` and `place_seen_from` gave, for a database that was opened at that path."""
        beside = Path(os.path.normpath(Path(os.path.abspath(database)) / place["beside"]))
        found = cls(beside if beside.is_dir() else place["absolute"], ())
        found._bytes, found._ends = arrays["path_bytes"], arrays["path_ends"]
        starts = np.concatenate([[0], found._ends[:-1]]).astype(np.int64)
        text = found._bytes.tobytes()
        # Two dots or a leading slash are rare enough to look at the names one by one.
        if b".." in text or (len(found) and (found._bytes[starts] == ord("/")).any()):
            outside = next((name for name in found.names() if _leaves(name)), None)
            if outside is not None:
                raise ValueError(f"{database} names the file {outside}, outside its folder of images. Make it again.")
        return found


def shortest(path: Path) -> str:
    """A path relative to the working directory where it lies below it, else absolute."""
    absolute, here = os.path.abspath(path), os.getcwd()
    inside = os.path.commonpath([absolute, here]) == here
    return os.path.relpath(absolute, here) if inside else absolute


def _leaves(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts
