"""Images of a data set as features, once and for all: a folder that `hbmp.datasets` reads as a separate data set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.files import beside
from hbmp.datasets import Data
from hbmp.encode.featuring import ItemSource, write_features
from hbmp.encoders import Encoder
from hbmp.images import as_images

_ROWS = 256


def write_encoded(
    data: Data, encoder: Encoder, folder: str | os.PathLike[str], *, dtype: str = "float16", progress: bool = True
) -> int:
    """Write `features.npy` and `labels.npz` of the images of a data set, in its order. A stopped run is resumed.

    Parameters
    ----------
    data : Data
        A data set with images.
    encoder : Encoder
        An encoder of images.
    folder : str or Path
        Where to write; it is made if missing.
    dtype : {"float16", "float32"}, default="float16"
        Type of the features.
    progress : bool, default=True
        Show a progress bar on a terminal.

    Returns
    -------
    int
        Number of rows that an earlier run had finished.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from hbmp import datasets, encoders
    >>> from hbmp.experiments.encoded import write_encoded
    >>> digits = datasets.load("digits")
    >>> few = replace(digits, images=digits.images[:5], labels=digits.labels[:5], features=None, split=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_encoded(few, encoders.GIST(size=16), f"{folder}/digits-gist", progress=False)
    ...     datasets.load("digits-gist", folder).features.shape
    0
    (5, 512)
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    images = as_images(data.images)

    def blocks(start: int) -> Iterator[Any]:
        return (images[at : at + _ROWS] for at in range(start, len(images), _ROWS))

    done = write_features(
        encoder,
        ItemSource(len(images), _ROWS, blocks, data.checksum()),
        folder / "features.npy",
        dtype=dtype,
        progress=progress,
    )
    parts = {"labels": data.labels, "split": data.split, "classes": np.array(data.label_names)}
    known: dict[str, Any] = {name: values for name, values in parts.items() if values is not None and len(values)}
    with beside(folder / "labels.npz") as part, open(part, "wb") as file:
        np.savez_compressed(file, **known)
    return done
