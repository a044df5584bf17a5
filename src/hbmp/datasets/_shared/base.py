"""The contract of every data set: labels with features or images, read from a folder in its official layout.

A data set is one file with one class on `DataSet`: facts (title, origin and layout of its files) and `load(folder)`.
The file `fashion_mnist.py` is called "fashion-mnist" and is read from the folder `fashion-mnist` of the data directory.
Any other folder of feature arrays or images in the data directory is a data set under its own name.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core import catalog


class MissingData(FileNotFoundError, LookupError):
    """The data are not on this machine; the message states how to get them.

    Examples
    --------
    >>> from hbmp import datasets
    >>> try:
    ...     datasets.load("mnist", "no/such/folder")
    ... except datasets.MissingData as error:
    ...     print(str(error)[:34])
    MNIST is not under no/such/folder/
    """


@dataclass(frozen=True)
class Remote:
    """One file to download.

    Parameters
    ----------
    url : str
        Address.
    filename : str
        Name in the folder of the data set.
    bytes : int, default=0
        Published size; 0 if none is published.
    sha256, md5 : str, default=""
        Published digests. If none is published, the first download pins them.
    mirrors : tuple of str, default=()
        Other addresses, tried in order if `url` fails.

    Examples
    --------
    >>> from hbmp.datasets import Remote
    >>> Remote("https://example.org/a.zip", "a.zip").bytes
    0
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

    Parameters
    ----------
    name : str
        Name of the data set.
    labels : ndarray of shape (n,) or (n, c), or None
        Classes, or 0/1 labels (uint8).
    features : ndarray of shape (n, d), default=None
        float32 or float16, possibly memory-mapped.
    images : ndarray of shape (n, h, w, 3), list of str, or hbmp.Images, default=None
        Pixels (uint8), or paths.
    label_names : tuple of str, default=()
        Names of the classes or labels.
    split : ndarray of shape (n,), default=None
        0 query, 1 train, 2 further database, -1 unused.
    stand_in_for : str, default=""
        The data set that this one replaces.
    texts : list of str, default=None
        Texts.
    ids : list of str, default=None
        Names of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.datasets import Data
    >>> len(Data("mine", labels=np.array([0, 1, 1]), features=np.zeros((3, 2), dtype=np.float32)))
    3
    """

    name: str
    labels: NDArray[Any] | None
    features: NDArray[Any] | None = None
    images: Any = None
    label_names: tuple[str, ...] = ()
    split: NDArray[Any] | None = None
    stand_in_for: str = ""
    texts: Sequence[str] | None = None
    ids: Sequence[str] | None = None

    def __post_init__(self) -> None:
        lengths = {part: len(values) for part, values in self._rows() if values is not None}
        if not lengths:
            raise ValueError(f"{self.name} has neither labels nor features, images or texts.")
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{count} rows of {part}" for part, count in lengths.items())
            raise ValueError(f"{self.name} must have one row of each kind per item; found {found}.")

    def __len__(self) -> int:
        return next(len(values) for _, values in self._rows() if values is not None)

    def checksum(self) -> str:
        """Checksum of labels and features, or without features of labels and images or texts.

        Returns
        -------
        str
            Sixteen hexadecimal digits of the SHA-256.
        """
        digest = hashlib.sha256()
        content = self.images if self.features is None else self.features
        for values in (self.labels, content):
            if isinstance(values, np.ndarray):
                _digest_array(digest, values)
            elif values is not None:
                names: Any = getattr(values, "names", values)  # of `hbmp.Images`, or a list of paths
                digest.update("\n".join(Path(path).name for path in names).encode())
        for text in () if self.features is not None else self.texts or ():
            digest.update(text.encode("utf-8", "replace") + b"\0")
        return digest.hexdigest()[:16]

    def _rows(self) -> tuple[tuple[str, Any], ...]:
        """The parts of the data that have one row per item."""
        return (
            ("labels", self.labels),
            ("features", self.features),
            ("images", self.images),
            ("texts", self.texts),
            ("ids", self.ids),
            ("split", self.split),
        )


class DataSet:
    """Base of all data sets.

    Attributes
    ----------
    title : str
        Name in tables.
    files : tuple of Remote
        What `hbmp fetch` downloads.
    licence : str
        Terms of use.
    layout : str
        Where the files are expected.
    how_to_get : str
        One sentence, if the data cannot be downloaded freely.
    unpacked_bytes : int
        Limit of the unpacked size of an archive.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("cifar10").title
    'CIFAR-10'
    """

    title = ""
    files: tuple[Remote, ...] = ()
    licence = ""
    layout = ""
    how_to_get = ""
    unpacked_bytes = 4 * 2**30

    def load(self, folder: Path) -> Data:
        """Read the data set from its folder.

        Parameters
        ----------
        folder : Path
            Folder of the data set.

        Returns
        -------
        Data
            The data.
        """
        raise NotImplementedError(f"{type(self).__name__} must define load.")

    @classmethod
    def name(cls) -> str:
        """Public name: the name of the file, with hyphens.

        Returns
        -------
        str
            The name.
        """
        return public_name(cls.__module__.rpartition(".")[2])

    def missing(self, folder: Path, file: str = "") -> MissingData:
        """Create the error for a missing folder, or a missing file in it.

        Parameters
        ----------
        folder : Path
            The folder.
        file : str, default=""
            The missing file.

        Returns
        -------
        MissingData
            An error that states how to get the data.
        """
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
    """List the data sets that are defined in this package.

    Returns
    -------
    tuple of str
        Their public names.

    Examples
    --------
    >>> from hbmp import datasets
    >>> "digits" in datasets.names()
    True
    """
    return tuple(public_name(name) for name in catalog.names("datasets"))


def get(name: str) -> DataSet:
    """Create the reader of a data set, without its data.

    Parameters
    ----------
    name : str
        Public name.

    Returns
    -------
    DataSet
        Facts and reader.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("fashion-mnist").title
    'Fashion-MNIST'
    """
    file = str(name).replace("-", "_")
    if file not in catalog.names("datasets"):
        raise LookupError(_unknown(name))
    dataset: DataSet = catalog.load("datasets", file)()
    return dataset


def data_dir(explicit: str | os.PathLike[str] | None = None) -> Path:
    """Choose the data directory.

    Parameters
    ----------
    explicit : str or Path, default=None
        The directory, if given.

    Returns
    -------
    Path
        `explicit`, else $HBMP_DATA, else `data` in the current directory.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.data_dir("elsewhere").name
    'elsewhere'
    """
    return Path(explicit or os.environ.get("HBMP_DATA") or "data")


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Data:
    """Read a data set by name.

    Parameters
    ----------
    name : str
        Public name such as "cifar10", or a folder or file of the data directory.
    data_dir : str or Path, default=None
        Data directory; see `data_dir`.

    Returns
    -------
    Data
        The data.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.load("digits").labels.shape
    (1797,)
    """
    place = _place(data_dir)
    if str(name).replace("-", "_") in catalog.names("datasets"):
        dataset = get(name)
        return dataset.load(place / dataset.name())
    path = place / name
    if not path.exists():
        raise MissingData(f"{_unknown(name)} There is no folder {path} with features.npy or with images either.")
    kind = "feature_arrays" if _holds_features(path) else "image_folder"
    data: Data = catalog.load("datasets", kind)().load(path)
    return data


_place = data_dir  # `load` has an argument of that name


def _holds_features(path: Path) -> bool:
    return path.is_file() or any(path.glob("features.*"))


def _unknown(name: object) -> str:
    close = difflib.get_close_matches(str(name), names(), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"No data set called {name!r}.{hint} There are {', '.join(names())}."


def _megabytes(files: tuple[Remote, ...]) -> str:
    total = sum(remote.bytes for remote in files)
    return f" ({max(1, round(total / 2**20))} MB)" if total else ""


def _digest_array(digest: Any, values: NDArray[Any], rows: int = 4096) -> None:
    digest.update(f"{values.shape}{values.dtype}".encode())
    for start in range(0, len(values), rows):
        block = np.ascontiguousarray(values[start : start + rows])
        digest.update(block.astype(str).tobytes() if block.dtype == object else block.tobytes())
