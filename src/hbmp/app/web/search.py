"""From requests to neighbours: a query becomes scores and signs, which are searched in the index.

A query is an item of the database, a vector, an image, or scores from `/encode`. Its first bits, a code of their own,
are compared in one of three ways:

    plain      Σ_k [q_k ≠ u_k]
    weighted   Σ_k α_k [q_k ≠ u_k], α the best weights for that many bits
    real       scores instead of the query's signs, weighted: a bit near zero costs little
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hbmp import hamming
from hbmp.app.web.pictures import Pictures
from hbmp.app.web.schema import Query, Source
from hbmp.database import Database
from hbmp.images import Images, UnreadableImage


class Refused(ValueError):
    """A request that is refused: the sentence and the HTTP status."""

    def __init__(self, sentence: str, status: int = 422):
        super().__init__(sentence)
        self.status = status


class Collection:
    """A database with the pictures of its items.

    `encode` and `search` take the content of a request and return values for JSON.
    """

    def __init__(self, database: Database, pictures: Pictures | None = None, *, max_k: int = 1000):
        self.database, self.max_k = database, max_k
        self.model, self.index = database.model, database.index
        self.pictures = Pictures(database.ids) if pictures is None else pictures
        self.n_features: int | None = getattr(self.model, "n_features_in_", None)  # None for a model of images
        self.weights_for = lru_cache(maxsize=None)(self._weights_for)

    def about(self) -> dict[str, Any]:
        """Facts about the database for the page."""
        return {
            "method": type(self.model).__name__,
            "items": len(self.database),
            "n_bits": self.index.n_bits,
            "takes": "images" if self.n_features is None else "vectors",
            "n_features": self.n_features,
            "weights": self.index.bit_weights.tolist(),
            "labelled": self.database.labels is not None,
            "pictures": self.pictures.kind,
            "scores_of_items": self._has_scores(),
            "max_k": self.max_k,
            "source": self.database.source,
        }

    def item(self, item_id: int) -> dict[str, Any]:
        """An item: its label, its code, and its features if they are available."""
        place = self.place(item_id)
        (label,) = self.database.labels_of([item_id])
        features = self.pictures.features(place)
        return {
            "id": item_id,
            "label": label,
            "name": self._name(place),
            "code": self.index.codes([item_id])[0].tolist(),
            "features": None if features is None else features[0].astype(float).tolist(),
            "picture": f"items/{item_id}/picture",
        }

    def random_id(self) -> int:
        """The id of a random item."""
        if not len(self.database):
            raise Refused("The database is empty; index some items first.", 404)
        return int(self.database.ids[np.random.default_rng().integers(len(self.database))])

    def draw(self, item_id: int) -> tuple[bytes, str]:
        """The picture of an item and its media type."""
        place = self.place(item_id)
        try:
            return self.pictures.draw(place, self.index.codes([item_id])[0])
        except UnreadableImage as error:
            raise Refused(self._lost(place), 404) from error

    def place(self, item_id: int) -> int:
        """The position of an id among the items."""
        place = int(np.searchsorted(self.database.ids, item_id))
        if place >= len(self.database) or self.database.ids[place] != item_id:
            raise Refused(f"There is no item {item_id}. GET /items/random returns one that exists.", 404)
        return place

    def encode(self, source: Source, image: Path | None = None) -> dict[str, Any]:
        """Signs of a query and, if they are available, its scores."""
        started = time.perf_counter()
        signs, scores = self._code(source, image)
        return {
            "code": signs.tolist(),
            "scores": None if scores is None else scores.astype(float).tolist(),
            "weights": self.index.bit_weights.tolist(),
            "milliseconds": _since(started),
        }

    def search(self, query: Query, image: Path | None = None) -> dict[str, Any]:
        """The nearest items of a query; an item never finds itself."""
        if query.k > self.max_k:
            raise Refused(f"k must lie between 1 and {self.max_k}, found {query.k}.")
        n_bits = self.index.n_bits if query.n_bits is None else query.n_bits
        if n_bits > self.index.n_bits:
            raise Refused(f"These codes have {self.index.n_bits} bits, found n_bits={n_bits}.")
        started = time.perf_counter()
        signs, scores = self._code(source=query, image=image)
        values = scores if query.mode == "real" else signs
        if values is None:
            raise Refused(
                "The database keeps the signs of its items, not their scores, and the input of this item is not "
                "available. Use mode plain or weighted, or start the server with --features or --images."
            )
        encoded = _since(started)
        weights = np.ones(n_bits) if query.mode == "plain" else self.weights_for(n_bits)
        own = n_bits == self.index.n_bits and np.array_equal(weights, self.index.bit_weights)
        started = time.perf_counter()
        distances, ids = self.index.search(
            values[None, :n_bits],
            query.k + (query.id is not None),
            n_bits=n_bits,
            bit_weights=None if own else weights,
        )
        searched = _since(started)
        kept = (ids[0] >= 0) & (ids[0] != (-1 if query.id is None else query.id))
        return {
            "n_bits": n_bits,
            "mode": query.mode,
            "code": signs.tolist(),
            "scores": None if scores is None else scores.astype(float).tolist(),
            "weights": weights.tolist(),
            "results": self._results(ids[0][kept][: query.k], distances[0][kept][: query.k], query.id),
            "milliseconds": {"encode": encoded, "search": searched},
        }

    def _results(self, ids: np.ndarray, distances: np.ndarray, query_id: int | None) -> list[dict[str, Any]]:
        labels = self.database.labels_of(ids)
        relevant = self._relevant(ids, query_id)
        names = [self._name(self.place(item_id)) for item_id in ids.tolist()]
        rows = zip(ids.tolist(), distances.tolist(), labels, names, relevant, strict=True)
        return [
            {"id": i, "distance": d, "label": label, "name": name, "relevant": same} for i, d, label, name, same in rows
        ]

    def _relevant(self, ids: np.ndarray, query_id: int | None) -> list[bool | None]:
        """Whether each item has the class of the query, or one of its labels; None if unknown."""
        labels = self.database.labels
        if labels is None or query_id is None:
            return [None] * len(ids)
        mine, theirs = labels[self.place(query_id)], labels[np.searchsorted(self.database.ids, ids)]
        same = theirs == mine if labels.ndim == 1 else (theirs.astype(bool) & mine.astype(bool)).any(axis=1)
        return np.asarray(same).astype(bool).tolist()

    def _code(self, source: Source, image: Path | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Signs (n_bits,) int8 and scores (n_bits,) float32 or None."""
        given = [name for name in ("id", "vector", "scores") if getattr(source, name) is not None]
        given += [] if image is None else ["image"]
        if len(given) != 1:
            raise Refused(f"Give one of id, vector, scores or an image; found {', '.join(given) or 'none of them'}.")
        if source.id is not None:
            place = self.place(source.id)
            return self.index.codes([source.id])[0], self._scores_of(place)
        if source.vector is not None:
            scores = self.model.project(self._vector(source.vector))[0]
        elif source.scores is not None:
            scores = _finite(source.scores, self.index.n_bits, "scores", "the codes have that many bits")
        else:
            assert image is not None
            scores = self._image_scores(image)
        return hamming.signs(scores), scores

    def _vector(self, numbers: list[float]) -> np.ndarray:
        if self.n_features is None:
            raise Refused("This model takes images; send one as multipart/form-data in the field `image`.")
        return _finite(numbers, self.n_features, "vector", "the model was fitted on that many features")[None]

    def _image_scores(self, path: Path) -> np.ndarray:
        if self.n_features is not None:
            raise Refused(f"This model takes vectors of {self.n_features} numbers, not images.")
        try:
            return self.model.project(Images.from_paths([path]))[0]
        except UnreadableImage as error:
            raise Refused("The file cannot be read as an image; send a whole JPEG, PNG or WebP file.") from error

    def _has_scores(self) -> bool:
        """Whether items can be encoded again, from their features or, for image models, their pictures."""
        return self.pictures.kind == "image" if self.n_features is None else self._features_fit()

    def _features_fit(self) -> bool:
        if not len(self.database):
            return False
        features = self.pictures.features(0)
        return features is not None and features.shape[1] == self.n_features

    def _scores_of(self, place: int) -> np.ndarray | None:
        if not self._has_scores():
            return None
        found = self.pictures.image(place) if self.n_features is None else self.pictures.features(place)
        try:
            return self.model.project(found)[0]
        except UnreadableImage:  # its file is missing; its signs are in the index
            return None

    def _lost(self, place: int) -> str:
        files = self.database.files
        name = f"item {self.database.ids[place]}" if files is None else files.name(place)
        return f"The image of {name} is missing or cannot be read; restore it, or index the folder again."

    def _name(self, place: int) -> str | None:
        return None if self.database.files is None else self.database.files.name(place)

    def _weights_for(self, n_bits: int) -> np.ndarray:
        """The best weights for the first bits if the model has them, else the first of its weights."""
        if n_bits == self.index.n_bits or not hasattr(self.model, "weights_for"):
            return self.index.bit_weights[:n_bits]
        return np.asarray(self.model.weights_for(n_bits))


def _finite(numbers: list[float], length: int, name: str, why: str) -> np.ndarray:
    """float32 numbers of the right length."""
    if len(numbers) != length:
        raise Refused(f"The {name} must have {length} numbers, as {why}; found {len(numbers)}.")
    with np.errstate(over="ignore"):
        array = np.asarray(numbers, dtype=np.float64).astype(np.float32)
    if not np.isfinite(array).all():
        raise Refused(f"The {name} must hold finite numbers that fit in 32 bits, found others.")
    return array


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
