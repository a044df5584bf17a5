"""ImageNet100: a hundred classes of ImageNet by the lists that HashNet published.

`train.txt`, `test.txt` and `database.txt` (or `test/test0.txt` … `test/test7.txt` and `database0.txt` …) have one image
per line: a path, then 100 columns of 0/1 or the class number. The database lists repeat the training images.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.arrays import as_features, read_npy
from hbmp.datasets._shared.base import Data, DataSet
from hbmp.datasets._shared.files import locate

_PARTS = ("train", "test", "database")
_SPLIT_OF = {"train": 1, "test": 0, "database": 2}


class ImageNet100(DataSet):
    """A hundred classes of ImageNet: 13,000 images to train, 5,000 queries, about 128,500 in the database.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("imagenet100").title
    'ImageNet100'
    """

    title = "ImageNet100"
    licence = "ImageNet: non-commercial research only, by its terms of access."
    layout = (
        "imagenet100/train.txt, test.txt and database.txt (or test/test0.txt … and test/database0.txt …) over an "
        "ImageNet tree: the paths in the lists, or train/SYNSET/NAME.JPEG and val/NAME.JPEG, under imagenet100/."
    )
    how_to_get = (
        "Ask for ImageNet (ILSVRC 2012) at https://image-net.org/download.php, unpack it there, and put the lists of "
        "https://github.com/thuml/HashNet (caffe/data/imagenet) beside it."
    )

    def load(self, folder: Path) -> Data:
        """Read the lists, and features if there are any.

        Parameters
        ----------
        folder : Path
            Folder of the data set.

        Returns
        -------
        Data
            Labels (n,), one row per image: training images, queries, then the rest of the database.
        """
        listed: dict[str, tuple[str, str]] = {}  # a path's first list wins, so training images stay training images
        for part in _PARTS:
            for path in self._lists(folder, part):
                for name, label in _read_list(path):
                    listed.setdefault(name, (part, label))
        features = locate(folder, "features.npy")
        return Data(
            name=self.name(),
            labels=_labels([label for _, label in listed.values()]),
            features=None if features is None else as_features(read_npy(features), features),
            images=self._images(folder, list(listed), optional=features is not None),
            split=np.array([_SPLIT_OF[part] for part, _ in listed.values()], dtype=np.int8),
        )

    def _lists(self, folder: Path, part: str) -> list[Path]:
        if whole := locate(folder, f"{part}.txt"):
            return [whole]
        pieces = sorted((*folder.glob(f"{part}[0-9].txt"), *folder.glob(f"test/{part}[0-9].txt")))
        if not pieces:
            raise self.missing(folder, f"{part}.txt")
        return pieces

    def _images(self, folder: Path, names: list[str], optional: bool) -> list[str] | None:
        """Paths on this machine; the lists hold paths of the machine that wrote them."""
        paths = [_on_this_machine(folder, name) for name in names]
        found = [path for path in paths if path is not None]
        if len(found) == len(paths):
            return [str(path) for path in found]
        if optional and not found:
            return None
        raise self.missing(folder, f"{names[paths.index(None)]} and {len(paths) - len(found) - 1} more images")


def _read_list(path: Path) -> Iterator[tuple[str, str]]:
    """(image path, label text) of every line."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        name, _, label = line.strip().partition(" ")
        if name and not label:
            raise ValueError(f"Line {number} of {path} must hold an image path and its labels; found {line!r}.")
        if name:
            yield name, label


def _labels(texts: list[str]) -> NDArray[Any]:
    """Class numbers (n,), from numbers or from rows of 0/1 with one 1 each."""
    class_of = {text: _class_number(text) for text in set(texts)}
    return np.array([class_of[text] for text in texts])


def _class_number(text: str) -> int:
    columns = text.split()
    if len(columns) == 1 and columns[0].isdigit():
        return int(columns[0])
    if columns.count("1") != 1 or columns.count("0") != len(columns) - 1:
        raise ValueError(f"A label must be a class number or 0/1 columns with one 1; found {text[:40]!r}.")
    return columns.index("1")


def _on_this_machine(folder: Path, name: str) -> Path | None:
    listed = Path(name)
    synset = listed.name.partition("_")[0]
    places = (
        listed,
        Path(*listed.parts[listed.parts.index("imagenet") + 1 :]) if "imagenet" in listed.parts else listed,
        Path("train", synset, listed.name),
        Path("val", listed.name),
        Path("val", listed.parent.name, listed.name),
    )
    return next((folder / path for path in places if not path.is_absolute() and (folder / path).is_file()), None)
