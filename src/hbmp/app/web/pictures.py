"""Pictures of items: a thumbnail, else bars of the features, else bars of the bits.

Rows of pictures and features are in the order of the ids; if there are more rows than items, the id is the row. The
same rows serve real-valued queries by an item, because the database keeps only signs.
"""

from __future__ import annotations

import io
import zlib

import numpy as np

from hbmp.images import Images, as_images

SIDE = 112  # pixels of a thumbnail
_BARS = 64  # at most, in a bar picture


class Pictures:
    """Images, features, or neither, for the items of a database.

    `ids` (n,) ascend; `images` is an `hbmp.Images`, a folder or an array of pixels; `features` is (n, d).
    """

    def __init__(self, ids, *, images=None, features=None):
        self._ids = ids
        self._images = None if images is None else _as_images(images)
        self._features = features
        self._image_rows = rows_of(ids, len(ids) if self._images is None else len(self._images), "pictures")
        self._feature_rows = rows_of(ids, len(ids) if features is None else len(features), "rows of features")

    @property
    def kind(self) -> str:
        """Content of a picture: "image", "features" or "bits"."""
        return "image" if self._images is not None else "features" if self._features is not None else "bits"

    def image(self, place: int) -> Images | None:
        """The image of an item, as input of a model."""
        return None if self._images is None else self._images[self._image_rows[[place]]]

    def features(self, place: int) -> np.ndarray | None:
        """The features of an item, (1, d)."""
        return None if self._features is None else np.asarray(self._features[self._feature_rows[[place]]])

    def draw(self, place: int, code: np.ndarray) -> tuple[bytes, str]:
        """The picture of an item as bytes, and its media type; an unreadable file raises `UnreadableImage`."""
        if self._images is not None:
            return thumbnail(self._images, int(self._image_rows[place])), "image/png"
        features = self.features(place)
        return bars(code if features is None else features[0]).encode(), "image/svg+xml"


def rows_of(ids, n_rows: int, what: str) -> np.ndarray:
    """The row of each item among n_rows: its position, or its id if there are more rows than items."""
    if n_rows == len(ids):
        return np.arange(n_rows)
    if len(ids) and n_rows > int(ids[-1]) and n_rows > len(ids):
        return np.asarray(ids)
    raise ValueError(
        f"The database holds {len(ids):,} items with ids up to {int(ids[-1]) if len(ids) else 0}, "
        f"found {n_rows:,} {what}; give one per item, or one per id."
    )


def thumbnail(images: Images, row: int) -> bytes:
    """PNG of one image, scaled and cropped to its centre; small arrays of pixels stay as they are."""
    from PIL import Image

    one = images[[row]]
    pixels = one.pixels
    if pixels is None or min(pixels.shape[1:3]) > SIDE:
        pixels = one.decode([0], SIDE)
    picture = Image.fromarray(np.ascontiguousarray(pixels[0]))
    out = io.BytesIO()
    picture.save(out, format="PNG")
    return out.getvalue()


def bars(values: np.ndarray) -> str:
    """SVG of a vector, one bar per number, up or down from the middle; a long vector is averaged in equal parts."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) > _BARS:
        values = np.array([part.mean() for part in np.array_split(values, _BARS)])
    # Scaled by the largest value; bars start at the bottom where none is negative.
    largest = np.abs(values).max(initial=0) or 1.0
    middle, room = (SIDE - 4, SIDE - 8) if (values >= 0).all() else (SIDE / 2, SIDE / 2 - 4)
    width = (SIDE - 8) / max(1, len(values))
    hue = 190 + zlib.crc32(values.tobytes()) % 60  # different vectors get different colours
    parts = []
    for number, value in enumerate(values):
        height = max(0.5, abs(value) / largest * room)
        top = middle - height if value >= 0 else middle
        parts.append(
            f'<rect x="{4 + number * width:.2f}" y="{top:.2f}" width="{max(0.6, width * 0.8):.2f}" '
            f'height="{height:.2f}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" width="{SIDE}" height="{SIDE}">'
        f'<g fill="hsl({hue} 45% 52%)">{"".join(parts)}</g></svg>'
    )


def _as_images(images) -> Images:
    """Images from any input of `hbmp.as_images`, and from grey pixels (n, h, w)."""
    if isinstance(images, np.ndarray):
        if (
            images.dtype != np.uint8
            or images.ndim not in (3, 4)
            or (images.ndim == 4 and images.shape[3] not in (1, 3))
        ):
            raise ValueError(
                f"Thumbnails are uint8 (n, h, w) or (n, h, w, 3), found {images.dtype} of shape {images.shape}."
            )
        return Images.from_array(images)
    return as_images(images)
