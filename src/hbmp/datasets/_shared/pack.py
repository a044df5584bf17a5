"""Image files of a data set as one array, in the order of its labels, so that training needs no decoding.

Pictures are stretched to squares, as the paper does with NUS-WIDE: what stands at the edge keeps its label, where a
centre crop would cut it off.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np

from hbmp._core.arrays import read_npz
from hbmp.images.decode import require_pillow


def pack_images(folder, *, size: int = 112) -> Path:
    """Decode `folder/images/NAME.jpg`, or the same inside a .tar, for the names in labels.npz; write images.npy."""
    folder = Path(folder)
    require_pillow()
    labels = folder / "labels.npz"
    stored = read_npz(labels) if labels.is_file() else {}
    if "names" not in stored:
        raise ValueError(f"{labels} must hold `names`, one image an item; found {', '.join(stored) or 'no such file'}.")
    names = [str(name) for name in stored["names"]]
    places = {name: place for place, name in enumerate(names)}
    pixels = np.empty((len(names), size, size, 3), dtype=np.uint8)
    missing = set(names)
    for name, content in _files(folder):
        if name in places:
            pixels[places[name]] = _stretched(content, size)
            missing.discard(name)
    if missing:
        raise ValueError(
            f"{folder} lacks {len(missing)} of {len(names)} images, {min(missing)}.jpg first. Put them into images/."
        )
    beside = folder / ".images.npy"
    np.save(beside, pixels)
    return beside.replace(folder / "images.npy")


def _files(folder: Path):
    """(name without ending, bytes) of every JPEG in the folder's images/ and archives."""
    for path in sorted((folder / "images").glob("*.jpg")):
        yield path.stem, path.read_bytes()
    for archive in sorted(folder.glob("*.tar")):
        with tarfile.open(archive) as members:
            for member in members:
                file = members.extractfile(member) if member.isfile() and member.name.endswith(".jpg") else None
                if file is not None:
                    yield Path(member.name).stem, file.read()


def _stretched(content: bytes, size: int) -> np.ndarray:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC))
