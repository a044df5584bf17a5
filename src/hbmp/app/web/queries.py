"""From the source of a query to its vector, its scores and its signs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.app.web.pictures import Pictures
from hbmp.app.web.schema import Source
from hbmp.database import Database
from hbmp.database.encoding import vectors_of
from hbmp.images import Images, UnreadableImage

SOURCES = ("id", "text", "vector", "scores")


class Refused(ValueError):
    """A request that is refused: the sentence and the HTTP status."""

    def __init__(self, sentence: str, status: int = 422):
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Asked:
    """A query: its code, and its scores and vector if known."""

    signs: NDArray[np.int8]
    scores: NDArray[Any] | None = None
    vector: NDArray[Any] | None = None


class Reader:
    """Reads queries with the model of a database."""

    def __init__(self, database: Database, pictures: Pictures):
        self.database, self.pictures = database, pictures

    @property
    def n_features(self) -> int | None:
        """Length of a vector; None for a model that takes nothing but images."""
        return getattr(self.database.model, "n_features_in_", None)

    @property
    def takes(self) -> str:
        """Kinds of queries in addition to vectors and items: "texts", "images" or "vectors" alone."""
        encoder = getattr(self.database.model, "input_encoder_", None)
        if encoder is not None:
            return str(encoder.takes)
        return "images" if self.n_features is None else "vectors"

    def read(self, source: Source, image: Path | None = None) -> Asked:
        """The query of a request."""
        given = [name for name in SOURCES if getattr(source, name) is not None]
        given += [] if image is None else ["image"]
        if len(given) != 1:
            raise Refused(
                f"Pass one of id, text, vector, scores or an image; found {', '.join(given) or 'none of them'}."
            )
        if image is not None:
            return self.image(image)
        if source.id is not None:
            return self.item(self.known(source.id))
        if source.text is not None:
            return self.vector(self.texts([source.text])[0])
        if source.vector is not None:
            return self.vector(self.checked(source.vector))
        scores = finite(source.scores or [], self.database.index.n_bits, "scores", "the codes have that many bits")
        return Asked(hamming.signs(scores), scores)

    def known(self, item_id: int | str) -> int | str:
        """An id in the type of the database, which must be there."""
        kind = self.database.id_type
        found = int(item_id) if kind is int and isinstance(item_id, str) and item_id.isdecimal() else item_id
        if found in self.database:
            return found
        shown = item_id if kind is int and str(item_id).lstrip("-").isdecimal() else repr(item_id)
        raise Refused(f"There is no item {shown}. GET /items/random returns an existing item.", 404)

    def item(self, item_id: int | str) -> Asked:
        """An item of the database as a query."""
        signs = self.database.codes([item_id])[0]
        vector = None if self.n_features is None else self.vector_of(item_id)
        if vector is not None:
            return Asked(signs, self.database.model.project(vector)[0], vector[0])
        try:
            image = self.pictures.image(item_id) if self.takes == "images" else None
            return Asked(signs, None if image is None else self.database.model.project(image)[0])
        except UnreadableImage:  # its file is missing; its signs are in the index
            return Asked(signs)

    def vector_of(self, item_id: int | str) -> NDArray[Any] | None:
        """The features of an item, (1, d), where the model takes such features."""
        features = self.pictures.features(item_id)
        return features if features is not None and features.shape[1] == self.n_features else None

    def vector(self, vector: NDArray[Any]) -> Asked:
        """A vector as a query."""
        scores = self.database.model.project(vector[None])[0]
        return Asked(hamming.signs(scores), scores, vector)

    def checked(self, numbers: list[float]) -> NDArray[np.float32]:
        """A vector of a request."""
        if self.n_features is None:
            raise Refused("This model takes images; send one as multipart/form-data in the field `image`.")
        return finite(numbers, self.n_features, "vector", "the model was fitted on that many features")

    def texts(self, texts: list[str]) -> NDArray[Any]:
        """Vectors of texts by the model's encoder."""
        if self.takes != "texts":
            raise Refused(f"This model takes {self._taken()}, not texts.")
        return np.asarray(vectors_of(self.database.model, texts))

    def image(self, path: Path) -> Asked:
        """An image as a query."""
        if self.takes != "images":
            raise Refused(f"This model takes {self._taken()}, not images.")
        model = self.database.model
        try:
            if self.n_features is not None:
                return self.vector(np.asarray(vectors_of(model, Images.from_paths([path])))[0])
            scores = model.project(Images.from_paths([path]))[0]
            return Asked(hamming.signs(scores), scores)
        except UnreadableImage as error:
            raise Refused("The file cannot be read as an image; send a whole JPEG, PNG or WebP file.") from error

    def scores_of_items(self) -> bool:
        """Whether items can be encoded again, from their features or, for models of images, their pictures."""
        if not len(self.database):
            return False
        if self.n_features is None:
            return self.pictures.kind == "image"
        return self.vector_of(self.database.ids_at([0])[0]) is not None

    def _taken(self) -> str:
        return self.takes if self.takes != "vectors" else f"vectors of {self.n_features} numbers"


def finite(numbers: list[float], length: int, name: str, why: str) -> NDArray[np.float32]:
    """float32 numbers of the right length."""
    if len(numbers) != length:
        raise Refused(f"The {name} must have {length} numbers, as {why}; found {len(numbers)}.")
    with np.errstate(over="ignore"):
        array = np.asarray(numbers, dtype=np.float64).astype(np.float32)
    if not np.isfinite(array).all():
        raise Refused(f"The {name} must contain finite numbers that fit in 32 bits.")
    return array
