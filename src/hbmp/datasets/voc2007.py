"""PASCAL VOC 2007 trainval as features, images or both: 5,008 images with 20 labels, `val` queries `train`.

Images are one array images.npy, uint8 (n, side, side, 3), in the order of the labels, which
which `hbmp fetch voc2007 --pack-images 112` makes of the JPEG files.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hbmp._core.arrays import as_labels, read_npy
from hbmp.datasets._shared.base import Data
from hbmp.datasets.feature_arrays import FeatureArrays as _FeatureArrays


class VOC2007(_FeatureArrays):
    """Features or images of VOC 2007 with its official split."""

    title = "PASCAL VOC 2007"
    licence = "Images from flickr, under the flickr terms of use; annotations free for research."
    layout = (
        "features.npy (n, d), images.npy uint8 (n, side, side, 3) or both; labels.npz with labels (n, 20), split "
        "(0 train, 1 val), classes and names."
    )
    how_to_get = "Encode the VOC 2007 trainval images with a network of your choice and save features.npy, labels.npz."

    def load(self, folder: Path) -> Data:
        """Features where there are some, and images where they were packed."""
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

    def as_split(self, given: np.ndarray) -> np.ndarray:
        """The stored 0 is train and 1 is val: here val asks (0) and train answers (1)."""
        return super().as_split(1 - np.asarray(given, dtype=np.int8))
