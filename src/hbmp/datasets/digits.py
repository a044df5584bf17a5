"""The handwritten digits that come with scikit-learn: 1,797 images of 8 × 8 pixels; no files needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hbmp.datasets._shared.base import Data, DataSet


class Digits(DataSet):
    """Optical recognition of handwritten digits: the test part of the UCI data set.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.load("digits").features.shape
    (1797, 64)
    """

    title = "Digits (scikit-learn)"
    licence = "CC BY 4.0; Alpaydin and Kaynak, UCI Machine Learning Repository, 1998."
    layout = "Bundled with scikit-learn; no folder is read."
    how_to_get = "It comes with scikit-learn and needs no download."

    def load(self, folder: Path) -> Data:
        """Read the data from scikit-learn.

        Parameters
        ----------
        folder : Path
            Not used.

        Returns
        -------
        Data
            Features (1797, 64) float32 in [0, 1] and images uint8 (1797, 8, 8, 3).
        """
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        grey = np.round(pixels * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
        return Data(
            name=self.name(),
            labels=labels,
            features=(pixels / 16).astype(np.float32),
            images=np.broadcast_to(grey[..., None], (*grey.shape, 3)),
            label_names=tuple("0123456789"),
        )
