"""PASCAL VOC 2007 trainval as features, images or both: 5,008 images with 20 labels; `val` queries `train`.

Images are one array images.npy, uint8 (n, side, side, 3), in the order of the labels.
`hbmp fetch voc2007 --pack-images 112` makes it from the JPEG files.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.arrays import as_labels, read_npy
from hbmp.datasets._shared.base import Data
from hbmp.datasets.feature_arrays import FeatureArrays as _FeatureArrays


class VOC2007(_FeatureArrays):
    """Features or images of VOC 2007 with its official split.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("voc2007").title
    'PASCAL VOC 2007'
    """

    title = "PASCAL VOC 2007"
    licence = "Images from flickr, under the flickr terms of use; annotations free for research."
    layout = (
        "features.npy (n, d), images.npy uint8 (n, side, side, 3) or both; labels.npz with labels (n, 20), split "
        "(0 train, 1 val), classes and names."
    )
    how_to_get = "Encode the VOC 2007 trainval images with a network of your choice and save features.npy, labels.npz."

    def load(self, folder: Path) -> Data:
        """Read features, and images if they were packed.

        Parameters
        ----------
        folder : Path
            Folder of the data set.

        Returns
        -------
        Data
            Features, images or both, with 0/1 labels.
        """
        images = Path(folder) / "images.npy"
        if not images.is_file():
            return super().load(folder)
        if any(Path(folder).glob(f"{self.features_file}.*")):
            return replace(super().load(folder), images=read_npy(images))
        stored = self._labels(Path(folder))
        if "labels" not in stored or "split" not in stored:
            raise self.missing(Path(folder), "labels.npz with labels and split")
        return Data(
            name=Path(folder).name,
            labels=as_labels(stored["labels"], images),
            images=read_npy(images),
            label_names=tuple(str(name) for name in stored.get("classes", ())),
            split=self.as_split(stored["split"]),
        )

    def as_split(self, given: NDArray[Any]) -> NDArray[Any]:
        """Convert the stored split (0 train, 1 val): `val` becomes queries (0) and `train` the training set (1).

        Parameters
        ----------
        given : ndarray of shape (n,)
            0 train, 1 val.

        Returns
        -------
        ndarray of int8, shape (n,)
            The split.
        """
        return super().as_split(1 - np.asarray(given, dtype=np.int8))
