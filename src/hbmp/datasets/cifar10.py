"""CIFAR-10 in its official binary layout: 60,000 images of 32 × 32 pixels in ten classes.

A batch has 10,000 records of 3,073 bytes: the class, then 1,024 bytes each of red, green and blue, row by row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.datasets._shared.base import Data, DataSet, Remote
from hbmp.datasets._shared.files import locate

_RECORD = 1 + 3 * 32 * 32
_BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
_UNPACKED = ("cifar-10-batches-bin",)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class CIFAR10(DataSet):
    """Ten classes of small photographs: 50,000 to train, then 10,000 to test.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("cifar10").title
    'CIFAR-10'
    """

    title = "CIFAR-10"
    files = (
        Remote(
            url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            filename="cifar-10-binary.tar.gz",
            bytes=170_052_171,
            sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            md5="c32a1d4ab5d03f1284b67883e8d87530",
        ),
    )
    licence = "No licence is stated; cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009."
    layout = (
        "cifar10/data_batch_1.bin … data_batch_5.bin, test_batch.bin and batches.meta.txt, "
        "there or in cifar10/cifar-10-batches-bin/."
    )
    unpacked_bytes = 256 * 2**20

    def load(self, folder: Path) -> Data:
        """Read images and labels.

        Parameters
        ----------
        folder : Path
            Folder of the data set.

        Returns
        -------
        Data
            Images uint8 (60000, 32, 32, 3) and labels (60000,); the official test images are the queries of the split.
        """
        records = [_read_batch(self._batch(folder, name)) for name in _BATCHES]
        labels = np.concatenate([batch[:, 0] for batch in records])
        planes = np.concatenate([batch[:, 1:] for batch in records]).reshape(-1, 3, 32, 32)
        split = np.repeat(np.array([1] * 5 + [0], dtype=np.int8), [len(batch) for batch in records])
        return Data(
            name=self.name(),
            labels=labels,
            images=np.ascontiguousarray(planes.transpose(0, 2, 3, 1)),
            label_names=_label_names(folder),
            split=split,
        )

    def _batch(self, folder: Path, name: str) -> Path:
        path = locate(folder, name, _UNPACKED)
        if path is None:
            raise self.missing(folder, name)
        return path


def _read_batch(path: Path) -> NDArray[Any]:
    """One batch as records (n, 3073) uint8."""
    content = np.fromfile(path, dtype=np.uint8)
    if content.size == 0 or content.size % _RECORD:
        raise ValueError(
            f"{path} must contain whole records of {_RECORD} bytes; found {content.size} bytes, so it is cut short. "
            "Fetch it again."
        )
    records = content.reshape(-1, _RECORD)
    if records[:, 0].max() > 9:
        raise ValueError(f"{path} has class {records[:, 0].max()} where CIFAR-10 has 0 to 9; is it CIFAR-100?")
    return records


def _label_names(folder: Path) -> tuple[str, ...]:
    path = locate(folder, "batches.meta.txt", _UNPACKED)
    return tuple(path.read_text(encoding="utf-8").split()) if path else CLASSES
