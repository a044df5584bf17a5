"""Pictures of items: a thumbnail, else bars of the features, else bars of the bits.

Rows of given pictures and features are in the order of the ids; if there are more rows than items, the id is the row.
Items that are added later have no such row. Without given pictures, the image files of the database are drawn.
"""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np

from hbmp.database import Database
from hbmp.images import Images, as_images

SIDE = 112  # pixels of a thumbnail
_BARS = 64  # at most, in a bar picture


class Pictures:
    """Images, features, or neither, for the items of a database.

    `images` is an `hbmp.Images`, a folder or an array of pixels; `features` is (n, d); `files`: draw the image files of
    the database.
    """

    def __init__(
        self, database: Database, *, images: Any = None, features: np.ndarray | None = None, files: bool = False
    ) -> None:
        self._database = database
        self._images = None if images is None else _as_images(images)
        self._features, self._files = features, files and self._images is None
        self._image_rows = None if self._images is None else Rows(database.ids, len(self._images), "pictures")
        self._feature_rows = None if features is None else Rows(database.ids, len(features), "rows of features")

    @property
    def kind(self) -> str:
        """Content of a picture: "image", "features" or "bits"."""
        if self._images is not None or self._files:
            return "image"
        return "features" if self._features is not None or self._database.vectors is not None else "bits"

    def image(self, item_id: Any) -> Images | None:
        """The image of an item, as input of a model."""
        if self._files:
            (path,) = self._database.paths_of([item_id])
            return None if path is None else Images.from_paths([path])
        row = None if self._image_rows is None else self._image_rows.row_of(item_id)
        return None if row is None or self._images is None else self._images[np.array([row])]

    def features(self, item_id: Any) -> np.ndarray | None:
        """The features of an item, (1, d): those that were given, else the vectors that the database keeps."""
        row = None if self._feature_rows is None else self._feature_rows.row_of(item_id)
        if row is not None and self._features is not None:
            return np.asarray(self._features[np.array([row])])
        return None if self._database.vectors is None else self._database.vectors_of([item_id])

    def draw(self, item_id: Any) -> tuple[bytes, str]:
        """The picture of an item as bytes, and its media type; an unreadable file raises `UnreadableImage`."""
        image = self.image(item_id)
        if image is not None:
            return thumbnail(image), "image/png"
        features = self.features(item_id)
        values = self._database.codes([item_id]) if features is None else features
        return bars(values[0]).encode(), "image/svg+xml"


class Rows:
    """The row of each item among n_rows: its position, or its id if there are more rows than items."""

    def __init__(self, ids: np.ndarray, n_rows: int, what: str):
        numbers = ids.dtype != object
        self._by_id = numbers and n_rows > len(ids) > 0 and n_rows > int(ids[-1])
        if n_rows != len(ids) and not self._by_id:
            up_to = f" with ids up to {int(ids[-1])}" if numbers and len(ids) else ""
            raise ValueError(
                f"The database holds {len(ids):,} items{up_to}, found {n_rows:,} {what}; give one per item, or one "
                "per id."
            )
        self._n_rows, self._ids = n_rows, ids
        self._places = {} if numbers else {one: place for place, one in enumerate(ids.tolist())}

    def row_of(self, item_id: Any) -> int | None:
        """The row of an item; None for one that came later."""
        if self._by_id:
            return item_id if 0 <= item_id < self._n_rows else None
        if self._ids.dtype == object:
            return self._places.get(item_id)
        place = int(np.searchsorted(self._ids, item_id))
        return place if place < len(self._ids) and self._ids[place] == item_id else None


def thumbnail(one: Images) -> bytes:
    """PNG of one image, scaled and cropped to its centre; small pixel arrays are not scaled."""
    from PIL import Image

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


def _as_images(images: Any) -> Images:
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
