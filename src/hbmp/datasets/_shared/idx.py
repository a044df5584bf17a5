"""The IDX layout of MNIST and its relatives: a magic number, the sizes, then bytes; gzipped or not.

The magic number is 0, 0, the type (8 for bytes) and the number of dimensions; all numbers are big-endian.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.datasets._shared.base import Data, DataSet
from hbmp.datasets._shared.files import locate, read_bytes

_UNPACKED = ("raw",)


class IDXDataSet(DataSet):
    """Images and labels in four IDX files."""

    layout = (
        "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, "
        "each with or without .gz."
    )
    label_names: tuple[str, ...] = ()

    def load(self, folder: Path) -> Data:
        """Read images and labels.

        Parameters
        ----------
        folder : Path
            Folder of the data set.

        Returns
        -------
        Data
            Features are pixels over 255, (n, h·w) float32; the official test images are the queries of the split.
        """
        parts = [
            (self._read(folder, f"{part}-images-idx3-ubyte", 3), self._read(folder, f"{part}-labels-idx1-ubyte", 1))
            for part in ("train", "t10k")
        ]
        for part, (part_images, part_labels) in zip(("train", "t10k"), parts, strict=True):
            if len(part_images) != len(part_labels):
                raise ValueError(
                    f"{folder} has {len(part_images)} {part} images but {len(part_labels)} labels; fetch both again."
                )
        images = np.concatenate([part[0] for part in parts])
        return Data(
            name=self.name(),
            labels=np.concatenate([part[1] for part in parts]),
            features=np.divide(images.reshape(len(images), -1), 255, dtype=np.float32),
            images=np.broadcast_to(images[..., None], (*images.shape, 3)),  # a view: grey is three equal channels
            label_names=self.label_names,
            split=np.repeat(np.array([1, 0], dtype=np.int8), [len(part[1]) for part in parts]),
        )

    def _read(self, folder: Path, name: str, dimensions: int) -> NDArray[Any]:
        path = locate(folder, name, _UNPACKED) or locate(folder, f"{name}.gz", _UNPACKED)
        if path is None:
            raise self.missing(folder, name)
        return read_idx(path, dimensions)


def read_idx(path: Path, dimensions: int) -> NDArray[Any]:
    """An IDX file of bytes with that many dimensions, uint8."""
    content = read_bytes(path)
    magic = struct.pack(">BBBB", 0, 0, 8, dimensions)
    if content[:4] != magic:
        raise ValueError(f"{path} must begin with {magic.hex()} (IDX bytes); found {content[:4].hex() or 'nothing'}.")
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise ValueError(f"{path} ends inside its header, after {len(content)} bytes. Fetch it again.")
    sizes = np.frombuffer(content[4:start], dtype=">u4").astype(int)
    expected, found = int(np.prod(sizes)), len(content) - start
    if expected != found:
        raise ValueError(f"{path} announces {expected} bytes of content; found {found}. Fetch it again.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(sizes)
