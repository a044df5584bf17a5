"""PASCAL VOC 2007 trainval as features: 5,008 images with 20 labels, trained on `train`, queried with `val`."""

from __future__ import annotations

import numpy as np

from hbmp.datasets.feature_arrays import FeatureArrays as _FeatureArrays


class VOC2007(_FeatureArrays):
    """Features of VOC 2007 with its official split."""

    title = "PASCAL VOC 2007 (features)"
    licence = "Images from flickr, under the flickr terms of use; annotations free for research."
    layout = "features.npy (n, d); labels.npz with labels (n, 20), split (0 train, 1 val), classes and names."
    how_to_get = "Encode the VOC 2007 trainval images with a network of your choice and save features.npy, labels.npz."

    def as_split(self, given: np.ndarray) -> np.ndarray:
        """The stored 0 is train and 1 is val: here val asks (0) and train answers (1)."""
        return super().as_split(1 - np.asarray(given, dtype=np.int8))
