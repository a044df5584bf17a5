"""Images of the command line: a folder, single files, or Parquet with encoded images in a column `image`.

The labels of a folder are its subfolders, one per class, or a table: CSV with lines `file,label`, several labels as
`sea;sand`. The table is `labels.csv` in the folder, or the file of `--labels`; images that it does not name are left
out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.parquet import parquet_labels
from hbmp.datasets import Data
from hbmp.datasets.image_folder import from_table, names_files
from hbmp.hasher import get_method
from hbmp.images import Images, as_images, is_images
from hbmp.images.files import holds_images, is_image_file
from hbmp.images.sources import column_names, parquet_files


def folder_of_images(folder: Path, labels: Path | None = None) -> Data:
    """All images of a folder, or those in a table of labels; labels are None where an image is in no class folder."""
    beside = folder / "labels.csv"
    table = beside if labels is None and beside.is_file() else labels
    if table is not None and names_files(table):
        return with_images(from_table(table, folder), folder)
    images = Images.from_folder(folder)
    names = () if images.labels is None else tuple(sorted(set(images.labels.tolist())))
    return Data(name=folder.resolve().name, labels=images.labels, images=images, label_names=names)


def files_as_images(paths: Sequence[str | Path]) -> Data:
    """Image files without labels, in the given order."""
    for path in paths:
        if not Path(path).is_file():
            raise ValueError(f"There is no file {path}.")
        if not is_image_file(path):
            raise ValueError(
                f"{path} is not an image: its name does not end in .jpg, .png, .webp or another image suffix."
            )
    return Data(name=Path(paths[0]).stem, labels=None, images=Images.from_paths(paths))


def is_parquet_of_images(path: Path) -> bool:
    """Whether a path is Parquet, or a folder of it, with a column of encoded images; False without pyarrow."""
    if find_spec("pyarrow") is None or not is_images(path) or holds_images(path):
        return False
    return "features" not in column_names(parquet_files(path)[0])  # features have precedence


def parquet_of_images(path: Path, label_names: Sequence[str]) -> Data:
    """The images of Parquet, with labels from the first of these columns that exists."""
    images = Images.from_parquet(path)
    labels, names = parquet_labels(parquet_files(path), label_names)
    return Data(name=path.stem, labels=labels, images=images, label_names=names)


def with_images(data: Data, folder: Path | None = None) -> Data:
    """The same data with `hbmp.Images`; names are relative to the folder if all images are inside it."""
    if isinstance(data.images, Images):
        return data
    images = as_images(data.images)
    if folder is not None and images.files is not None:
        names = [os.path.relpath(file, folder) for file in images.files]
        if not any(name.startswith("..") for name in names):
            images = Images.from_files(names, folder)
    return replace(data, images=images)


def without_unreadable(data: Data, on_error: str) -> Data:
    """With "skip", decode every image once and leave out, with a warning, those that cannot be read."""
    if on_error == "refuse" or not isinstance(data.images, Images):
        return data
    from hbmp.encode.images import warn_of_skipped

    broken = data.images.unreadable()
    warn_of_skipped(data.images[broken].names, len(data))
    kept = np.setdiff1d(np.arange(len(data)), broken)
    if not len(kept):
        raise ValueError(f"None of the {len(data)} images of {data.name} can be read.")
    return replace(
        data,
        images=data.images[kept],
        labels=None if data.labels is None else data.labels[kept],
        split=None if data.split is None else data.split[kept],
    )


def need_labels(data: Data, source: Any, method: str, words: Sequence[str]) -> None:
    """Refuse images or texts without labels where the method or a network needs them, before they are encoded."""
    if data.features is not None or data.labels is not None:
        return
    trained = any(word.startswith("function=") and "network" in word for word in words)
    if get_method(method).supervised or trained:
        learner = "a network" if trained else repr(method)
        raise ValueError(
            f"The {'texts' if data.texts is not None else 'images'} of {source} have no labels, from which {learner} "
            "learns: use one subfolder per class, a column of labels beside texts, or --labels FILE."
        )


def is_folder_of_images(path: Path) -> bool:
    """Whether a path is a folder with images and without features."""
    return path.is_dir() and not any(path.glob("features.*")) and holds_images(path)
