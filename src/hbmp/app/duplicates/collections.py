"""The items of `hbmp dedup`: vectors to compare, and the parts of each item that a report shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.app.encoder_choice import encoder_of
from hbmp.app.inputs import read_data
from hbmp.app.inputs.images import without_unreadable
from hbmp.datasets import Data
from hbmp.images import Images


@dataclass(frozen=True)
class Collections:
    """Old items, if any, and new ones, numbered consecutively.

    data : one or two sets of items of one kind
    vectors : their vectors, (n, d) each
    """

    data: tuple[Data, ...]
    vectors: tuple[Any, ...]

    @property
    def kind(self) -> str:
        """ "pictures", "texts" or "rows"."""
        return _kind(self.data[-1])

    def name(self, row: int) -> str:
        """The path of a picture, else the number of a row in its own file."""
        data, place = self._placed(row)
        return data.images.names[place] if self.kind == "pictures" else str(place)

    def text(self, row: int) -> str:
        """The text of an item."""
        data, place = self._placed(row)
        return "" if data.texts is None else data.texts[place]

    def picture(self, row: int) -> Images:
        """The picture of an item."""
        data, place = self._placed(row)
        images: Images = data.images[[place]]
        return images

    def sizes(self) -> NDArray[np.float64]:
        """Pixels of pictures, or characters of texts."""
        if self.kind == "rows":
            raise ValueError("Feature rows have no size; use --keep first.")
        return np.concatenate([_sizes(data) for data in self.data])

    def _placed(self, row: int) -> tuple[Data, int]:
        first = len(self.data[0])
        return (self.data[0], row) if row < first else (self.data[1], row - first)


def read_collections(options: Any) -> Collections:
    """Read DATA and OLD, and encode them with one encoder."""
    sources = [source for source in (options.against, options.data) if source is not None]
    sets = [read_data(source, column=options.column, images=True) for source in sources]
    kinds = {_kind(data) for data in sets}
    if len(kinds) > 1:
        raise ValueError(
            f"{options.data} and {options.against} contain {' and '.join(sorted(kinds))}; both must be of the same "
            "kind."
        )
    if kinds == {"rows"}:
        if options.encoder is not None or options.backbone is not None:
            raise ValueError(f"{options.data} contains features, which need no encoder.")
        return Collections(tuple(sets), tuple(np.asanyarray(data.features) for data in sets))
    takes = "texts" if kinds == {"texts"} else "images"
    encoder = encoder_of(takes, options.encoder, options.backbone, device=options.device)
    sets = [without_unreadable(data, options.on_error) for data in sets]
    inputs = [data.texts if takes == "texts" else data.images for data in sets]
    return Collections(tuple(sets), tuple(encoder.encode(items, progress=True) for items in inputs))


def _kind(data: Data) -> str:
    return "rows" if data.features is not None else "texts" if data.texts is not None else "pictures"


def _sizes(data: Data) -> NDArray[np.float64]:
    if data.texts is not None:
        return np.array([len(text) for text in data.texts], np.float64)
    files = data.images.files
    if files is None:
        raise ValueError(f"{data.name} contains no picture files, whose sizes --keep largest compares.")
    return np.array([_pixels(file) for file in files], np.float64)


def _pixels(file: str) -> int:
    """From the head of a file, without decoding the picture."""
    from PIL import Image

    with Image.open(file) as picture:
        return picture.width * picture.height
