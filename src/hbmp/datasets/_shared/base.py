"""What a data set is: labels with features or images, read from a folder in its official layout.

A data set is one file here with one class on `DataSet`: facts (title, where its files come from, how they lie) and
`load(folder)`. The file `fashion_mnist.py` is called "fashion-mnist" and lies in the folder `fashion-mnist` of the
data directory. Any other folder there that holds feature arrays or images has its own name as its name.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core import catalog


class MissingData(FileNotFoundError, LookupError):
    """The data asked for are not on this machine; the message says how to get them."""


@dataclass(frozen=True)
class Remote:
    """One file to download: where it is, what to call it here, and how to know that it is whole.

    `bytes` is 0 and both digests are empty where nothing is published; then the first download pins them.
    `mirrors` are asked in turn when `url` does not answer.
    """

    url: str
    filename: str
    bytes: int = 0
    sha256: str = ""
    md5: str = ""
    mirrors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Data:
    """A data set in memory, rows in official order.

    labels (n,) classes, (n, c) 0/1 uint8, or None · features (n, d) float32 or float16, maybe memory-mapped, or None ·
    images uint8 (n, h, w, 3), a list of paths, `hbmp.Images`, or None · split (n,): 0 query, 1 train, 2 further
    database, -1 unused.
    """

    name: str
    labels: np.ndarray | None
    features: np.ndarray | None = None
    images: object | None = None
    label_names: tuple[str, ...] = ()
    split: np.ndarray | None = None
    stand_in_for: str = ""

    def __post_init__(self):
        lengths = {part: len(values) for part, values in self._rows() if values is not None}
        if not lengths:
            raise ValueError(f"{self.name} has neither labels nor features nor images.")
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{count} rows of {part}" for part, count in lengths.items())
            raise ValueError(f"{self.name} must have one row of each kind an item; found {found}.")

    def __len__(self) -> int:
        return next(len(values) for _, values in self._rows() if values is not None)

    def checksum(self) -> str:
        """Sixteen hex digits of the SHA-256 of labels and features (of the images where there are no features)."""
        digest = hashlib.sha256()
        content = self.images if self.features is None else self.features
        for values in (self.labels, content):
            if isinstance(values, np.ndarray):
                _digest_array(digest, values)
            elif values is not None:
                names: Any = getattr(values, "names", values)  # of `hbmp.Images`, or a list of paths
                digest.update("\n".join(Path(path).name for path in names).encode())
        return digest.hexdigest()[:16]

    def _rows(self):
        return (
            ("labels", self.labels),
            ("features", self.features),
            ("images", self.images),
            ("split", self.split),
        )


class DataSet:
    """Base of all data sets. Each carries its facts:

    `title`, as a table prints it; `files`, what `hbmp fetch` downloads; `licence`, who may use it for what;
    `layout`, where its files lie; `how_to_get`, one sentence where it cannot be downloaded freely;
    `unpacked_bytes`, the most an archive of it may unpack to.
    """

    title = ""
    files: tuple[Remote, ...] = ()
    licence = ""
    layout = ""
    how_to_get = ""
    unpacked_bytes = 4 * 2**30

    def load(self, folder: Path) -> Data:
        """Read the data set from its folder."""
        raise NotImplementedError(f"{type(self).__name__} must define load.")

    @classmethod
    def name(cls) -> str:
        """The public name: the file's, with hyphens."""
        return public_name(cls.__module__.rpartition(".")[2])

    def missing(self, folder: Path, file: str = "") -> MissingData:
        """The error for a folder, or a file of it, that is not there, saying how to get it."""
        if self.files:
            remedy = f"Run `hbmp fetch {self.name()}`{_megabytes(self.files)}, or pass --data-dir."
        else:
            remedy = f"{self.how_to_get} Or pass --data-dir.".strip()
        if file and folder.is_dir():
            return MissingData(f"{self.title} under {folder} lacks {file}. {remedy}")
        return MissingData(f"{self.title} is not under {folder}. {remedy}")


def public_name(name: str) -> str:
    """`fashion_mnist` as users write it: `fashion-mnist`."""
    return name.replace("_", "-")


def names() -> tuple[str, ...]:
    """The data sets with a file of their own, by public name."""
    return tuple(public_name(name) for name in catalog.names("datasets"))


def get(name: str) -> DataSet:
    """The data set of that name, without its data: its facts and its reader."""
    file = str(name).replace("-", "_")
    if file not in catalog.names("datasets"):
        raise LookupError(_unknown(name))
    return catalog.load("datasets", file)()


def data_dir(explicit=None) -> Path:
    """The data directory: the one given, else $HBMP_DATA, else `data` here."""
    return Path(explicit or os.environ.get("HBMP_DATA") or "data")


def load(name: str, data_dir=None) -> Data:
    """A data set by name ("cifar10"), or whatever folder or file of the data directory has that name."""
    place = _place(data_dir)
    if str(name).replace("-", "_") in catalog.names("datasets"):
        dataset = get(name)
        return dataset.load(place / dataset.name())
    path = place / name
    if not path.exists():
        raise MissingData(f"{_unknown(name)} Nor is there a folder {path} with features.npy or with images.")
    kind = "feature_arrays" if _holds_features(path) else "image_folder"
    return catalog.load("datasets", kind)().load(path)


_place = data_dir  # `load` has an argument of that name


def _holds_features(path: Path) -> bool:
    return path.is_file() or any(path.glob("features.*"))


def _unknown(name) -> str:
    close = difflib.get_close_matches(str(name), names(), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"No data set called {name!r}.{hint} There are {', '.join(names())}."


def _megabytes(files: tuple[Remote, ...]) -> str:
    total = sum(remote.bytes for remote in files)
    return f" ({max(1, round(total / 2**20))} MB)" if total else ""


def _digest_array(digest, values: np.ndarray, rows: int = 4096) -> None:
    digest.update(f"{values.shape}{values.dtype}".encode())
    for start in range(0, len(values), rows):
        block = np.ascontiguousarray(values[start : start + rows])
        digest.update(block.astype(str).tobytes() if block.dtype == object else block.tobytes())
