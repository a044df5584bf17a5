"""22K LabelMe: 22,019 photographs with 512 GIST numbers each, in one MATLAB file, without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.matlab import read_matlab
from hbmp._core.reading import reading
from hbmp.datasets._shared.base import Data, DataSet, Remote
from hbmp.datasets._shared.files import locate

_FILES = ("LabelMe_gist.mat", "LabelMe_GIST.mat")


class LabelMe(DataSet):
    """GIST descriptors of LabelMe images; neighbours are close in GIST space.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("labelme").title
    '22K LabelMe'
    """

    title = "22K LabelMe"
    files = (
        Remote(
            url="http://www.cs.toronto.edu/~norouzi/research/mlh/data/LabelMe_gist.mat",
            filename="LabelMe_gist.mat",
        ),
    )
    licence = "For research; cite Torralba, Fergus and Weiss, CVPR 2008, and Russell et al., IJCV 2008."
    layout = "labelme/LabelMe_gist.mat with the variable gist (22019, 512) and, where kept, img (32, 32, 3, 22019)."

    def load(self, folder: Path) -> Data:
        """Read the MATLAB file.

        Parameters
        ----------
        folder : Path
            Folder of the data set.

        Returns
        -------
        Data
            Features (n, 512) float32, images uint8 (n, 32, 32, 3) if the file holds them, and no labels.
        """
        path = next((found for name in _FILES if (found := locate(folder, name))), None)
        if path is None:
            raise self.missing(folder, _FILES[0])
        variables = _read_mat(path)
        gist = variables.get("gist")
        if not isinstance(gist, np.ndarray) or gist.ndim != 2:
            raise ValueError(f"{path} must hold a matrix called gist (images, 512); found {sorted(variables)}.")
        return Data(
            name=self.name(),
            labels=None,
            features=np.ascontiguousarray(gist, dtype=np.float32),
            images=_images(variables.get("img"), len(gist)),
        )


def _read_mat(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        header = file.read(128)
    if header.startswith(b"MATLAB 7.3"):
        raise ValueError(
            f"{path} is a MATLAB 7.3 (HDF5) file, which is not read here; in MATLAB run "
            "save('LabelMe_gist.mat', 'gist', '-v7') and use that file."
        )
    with reading(path, "a MATLAB file", "fetch it again"):
        return read_matlab(path, ("gist", "img"))


def _images(stored: Any, count: int) -> NDArray[Any] | None:
    if not isinstance(stored, np.ndarray) or stored.ndim != 4 or stored.shape[3] != count:
        return None
    return np.ascontiguousarray(stored.transpose(3, 0, 1, 2), dtype=np.uint8)
