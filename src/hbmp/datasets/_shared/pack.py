"""Image files of a data set as one array, in the order of its labels, so that training needs no decoding.

Images are stretched to squares, as in the paper for NUS-WIDE. A centre crop would cut off labelled objects at the edge.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.arrays import read_npz
from hbmp._core.files import beside
from hbmp._core.reading import reading
from hbmp.images.decode import require_pillow


def pack_images(folder: str | os.PathLike[str], *, size: int = 112) -> Path:
    """Decode the images named in labels.npz, and write them as images.npy.

    Parameters
    ----------
    folder : str or Path
        Folder with labels.npz, and `images/NAME.jpg` or a `.tar` archive of such files.
    size : int, default=112
        Side of the square images in pixels.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> from hbmp import datasets
    >>> try:
    ...     datasets.pack_images("no/such/folder")
    ... except ValueError as error:
    ...     print(str(error)[-13:])
    no such file.
    """
    folder = Path(folder)
    require_pillow()
    labels = folder / "labels.npz"
    stored = read_npz(labels) if labels.is_file() else {}
    if "names" not in stored:
        raise ValueError(
            f"{labels} must hold `names`, one image per item; found {', '.join(stored) or 'no such file'}."
        )
    names = [str(name) for name in stored["names"]]
    places = {name: place for place, name in enumerate(names)}
    pixels = np.empty((len(names), size, size, 3), dtype=np.uint8)
    missing = set(names)
    for name, content in _files(folder):
        if name in places:
            with reading(folder / f"{name}.jpg", "an image", "get it again"):
                pixels[places[name]] = _stretched(content, size)
            missing.discard(name)
    if missing:
        raise ValueError(
            f"{folder} lacks {len(missing)} of {len(names)} images, {min(missing)}.jpg first. Put them into images/."
        )
    with beside(folder / "images.npy") as part, open(part, "wb") as file:
        np.save(file, pixels)
        file.flush()
        os.fsync(file.fileno())
    return folder / "images.npy"


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """(name without ending, bytes) of every JPEG in the folder's images/ and archives."""
    for path in sorted((folder / "images").glob("*.jpg")):
        yield path.stem, path.read_bytes()
    for archive in sorted(folder.glob("*.tar")):
        with reading(archive, "an archive of images", "get it again"), tarfile.open(archive, "r:") as members:
            for member in members:
                file = members.extractfile(member) if member.isfile() and member.name.endswith(".jpg") else None
                if file is not None:
                    yield Path(member.name).stem, file.read()


def _stretched(content: bytes, size: int) -> NDArray[Any]:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC))
