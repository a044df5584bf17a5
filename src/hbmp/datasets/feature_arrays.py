"""Feature arrays: a folder with `features.npy` and labels, or one `.npz` or Parquet file with both.

Labels are beside the features: `labels.npy` (classes, or rows of 0/1), or `labels.npz` with `labels` and, optionally,
`split` and `classes` (the names of the labels). Arrays in a folder are memory-mapped. No pickle is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.arrays import as_features, as_labels, as_names, read_npy, read_npz
from hbmp.datasets._shared.base import Data, DataSet


class FeatureArrays(DataSet):
    """Any features, with or without labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hbmp import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "mine").mkdir()
    ...     np.save(Path(folder) / "mine" / "features.npy", np.zeros((5, 2), dtype=np.float32))
    ...     len(datasets.load("mine", folder))
    5
    """

    title = "A folder of feature arrays"
    licence = "Yours."
    layout = (
        "NAME/features.npy (n, d) with NAME/labels.npy, (n,) classes or (n, c) 0/1, or NAME/labels.npz with labels, "
        "split and classes; or NAME/features.npz or NAME/features.parquet, or one such file in the data directory."
    )
    how_to_get = "Write features.npy and labels.npy there with numpy.save."

    features_file = "features"
    labels_file = "labels"
    stand_in_for = ""

    def load(self, folder: Path) -> Data:
        """Read a folder, or one `.npy`, `.npz` or `.parquet` file.

        Parameters
        ----------
        folder : Path
            Folder or file.

        Returns
        -------
        Data
            Features, and labels and split if there are any.
        """
        folder = Path(folder)
        source = folder if folder.is_file() else self._features_file(folder)
        arrays = _read(source)
        if folder.is_dir() and "labels" not in arrays:
            arrays.update(self._labels(folder))
        return Data(
            name=folder.stem if folder.is_file() else folder.name,
            labels=as_labels(arrays["labels"], source) if "labels" in arrays else None,
            features=as_features(arrays.get("features"), source),
            label_names=as_names(arrays, source),
            split=self.as_split(arrays["split"]) if "split" in arrays else None,
            stand_in_for=self.stand_in_for,
        )

    def as_split(self, given: NDArray[Any]) -> NDArray[Any]:
        """Check a stored split.

        Parameters
        ----------
        given : ndarray of shape (n,)
            0 query, 1 train, 2 further database, -1 unused.

        Returns
        -------
        ndarray of int8, shape (n,)
            The split.
        """
        split = np.asarray(given)
        if not np.isin(split, (-1, 0, 1, 2)).all():
            raise ValueError(
                "A split holds 0 (query), 1 (train), 2 (further database) or -1 (unused); "
                f"found {np.unique(split)[:6]}."
            )
        return split.astype(np.int8)

    def _features_file(self, folder: Path) -> Path:
        for ending in ("npy", "npz", "parquet"):
            if (folder / f"{self.features_file}.{ending}").is_file():
                return folder / f"{self.features_file}.{ending}"
        raise self.missing(folder, f"{self.features_file}.npy")

    def _labels(self, folder: Path) -> dict[str, Any]:
        for ending in ("npz", "npy"):
            path = folder / f"{self.labels_file}.{ending}"
            if path.is_file():
                return read_npz(path) if ending == "npz" else {"labels": read_npy(path)}
        return {}


def _read(path: Path) -> dict[str, Any]:
    """The arrays of one file by name; a single array holds features."""
    if path.suffix == ".npy":
        return {"features": read_npy(path)}
    if path.suffix == ".npz":
        return read_npz(path)
    if path.suffix in (".parquet", ".pq"):
        from hbmp._core.parquet import read_parquet

        return read_parquet(path)
    raise ValueError(f"{path} is neither .npy, .npz nor .parquet; save the features as one of these.")
