"""Vectors of texts or pictures in memory, computed by way of a file, so that a killed run continues with the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._training.fingerprint import fingerprint, fingerprint_files
from hbmp.datasets import Data
from hbmp.encode.featuring import ItemSource, write_features
from hbmp.images import Images, as_images

_TEXTS, _IMAGES = 1024, 256  # encoded at a time


def vectors_in(folder: str | Path, data: Data, encoder: Any) -> np.ndarray:
    """The vectors of the texts or pictures of a data set; the file in `folder` is left to whoever cleans it up."""
    source = _texts(list(data.texts)) if data.texts is not None else _images(as_images(data.images))
    path = Path(folder) / f"vectors-{fingerprint(source.stamp, encoder.about(), encoder.code())[:32]}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file():
        write_features(encoder, source, path, dtype="float32", progress=True)
    return np.asarray(np.load(path, allow_pickle=False))


def _texts(texts: list[str]) -> ItemSource:
    return ItemSource(len(texts), _TEXTS, lambda start: _blocks(texts, start, _TEXTS), fingerprint(texts))


def _images(images: Images) -> ItemSource:
    pixels_or_names, files = images.origin()
    stamp = fingerprint(pixels_or_names, fingerprint_files(files))
    return ItemSource(len(images), _IMAGES, lambda start: _blocks(images, start, _IMAGES), stamp)


def _blocks(items: Any, start: int, rows: int) -> Iterator[Any]:
    return (items[at : at + rows] for at in range(start, len(items), rows))
