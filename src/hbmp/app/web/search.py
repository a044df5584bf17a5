"""From requests to neighbours: queries become scores and signs, which are searched in the database.

The first bits of a query, a code of their own, are compared in one of three ways:

    plain      Σ_k [q_k ≠ u_k]
    weighted   Σ_k α_k [q_k ≠ u_k], α the best weights for that many bits
    real       scores instead of the query's signs, weighted: a bit near zero costs little

With `rescore`, the vectors that the database keeps rank the nearest codes; real is then the default.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from hbmp.app.web.looks import roles
from hbmp.app.web.pictures import Pictures
from hbmp.app.web.queries import Asked, Reader, Refused
from hbmp.app.web.schema import Batch, How, Query, Source
from hbmp.database import Database
from hbmp.images import UnreadableImage

_MOST_AT_ONCE = 1000  # queries of one batch
_SINGLE = {"ids": "id", "scores": "scores"}
_MOST_RESULTS = 100_000  # of one batch

__all__ = ["Collection", "Refused"]


class Collection:
    """A database with the pictures of its items.

    `encode`, `search` and `search_batch` take the content of a request and return values for JSON.
    """

    def __init__(self, database: Database, pictures: Pictures | None = None, *, max_k: int = 1000):
        self.database, self.max_k = database, max_k
        self.pictures = Pictures(database, files=database.has_files) if pictures is None else pictures
        self.reader = Reader(database, self.pictures)
        self._weights: dict[int, tuple[Any, NDArray[Any]]] = {}

    def about(self) -> dict[str, Any]:
        """Facts about the database for the page."""
        database, shown = self.database, roles(self.database.columns)
        words = shown["title"] is not None or shown["text"] is not None
        return {
            "method": type(database.model).__name__,
            "items": len(database),
            "n_bits": database.index.n_bits,
            "takes": self.reader.takes,
            "n_features": self.reader.n_features,
            "weights": database.index.bit_weights.tolist(),
            "ids": "text" if database.id_type is str else "int",
            "labelled": database.label_kind is not None,
            "columns": database.columns,
            "shown": shown,
            "pictures": "text" if words and self.pictures.kind != "image" else self.pictures.kind,
            "scores_of_items": self.reader.scores_of_items(),
            "vectors": database.vectors,
            "max_k": self.max_k,
            "source": database.source,
        }

    def item(self, item_id: int | str) -> dict[str, Any]:
        """An item: its label, its payload, its code, and its features if they are available."""
        known = self.reader.known(item_id)
        features = self.pictures.features(known)
        return {
            "id": known,
            "label": self.database.labels_of([known])[0],
            "name": self.database.file_names_of([known])[0],
            "payload": self.database.payload_of([known])[0] or {},
            "code": self.database.codes([known])[0].tolist(),
            "features": None if features is None else features[0].astype(float).tolist(),
            "picture": f"items/{quote(str(known), safe='')}/picture",
        }

    def random_id(self) -> int | str:
        """The id of a random item."""
        if not len(self.database):
            raise Refused("The database is empty; index some items first.", 404)
        found: list[int | str] = self.database.ids_at([np.random.default_rng().integers(len(self.database))]).tolist()
        return found[0]

    def draw(self, item_id: int | str) -> tuple[bytes, str]:
        """The picture of an item and its media type."""
        known = self.reader.known(item_id)
        try:
            return self.pictures.draw(known)
        except UnreadableImage as error:
            name = self.database.file_names_of([known])[0] or f"item {known}"
            raise Refused(
                f"The image of {name} is missing or cannot be read; restore it, or index the folder again.", 404
            ) from error

    def encode(self, source: Source, image: Any = None) -> dict[str, Any]:
        """Signs of a query and, if they are available, its scores."""
        started = time.perf_counter()
        asked = self.reader.read(source, image)
        return {
            "code": asked.signs.tolist(),
            "scores": None if asked.scores is None else asked.scores.astype(float).tolist(),
            "weights": self.database.index.bit_weights.tolist(),
            "milliseconds": _since(started),
        }

    def search(self, query: Query, image: Any = None) -> dict[str, Any]:
        """The nearest items of a query; an item never finds itself."""
        self._check(query)
        started = time.perf_counter()
        asked = self.reader.read(query, image)
        encoded = _since(started)
        item_id = None if query.id is None else self.reader.known(query.id)
        started = time.perf_counter()
        distances, ids, weights = self._nearest([asked], query, query.k + (item_id is not None))
        searched = _since(started)
        return {
            **self._described(query),
            "code": asked.signs.tolist(),
            "scores": None if asked.scores is None else asked.scores.astype(float).tolist(),
            "weights": weights.tolist(),
            "results": self._results(ids[0], distances[0], query.k, item_id),
            "milliseconds": {"encode": encoded, "search": searched},
        }

    def search_batch(self, batch: Batch, image: Any = None) -> dict[str, Any]:
        """The nearest items of many queries."""
        self._check(batch)
        started = time.perf_counter()
        asked, own = self._read_all(batch)
        encoded = _since(started)
        if len(asked) * batch.k > _MOST_RESULTS:
            raise Refused(f"{len(asked)} queries of k={batch.k} are more than {_MOST_RESULTS:,} results; send fewer.")
        started = time.perf_counter()
        more = any(one is not None for one in own)
        distances, ids, _ = self._nearest(asked, batch, batch.k + more)
        searched = _since(started)
        rows = zip(ids, distances, own, strict=True)
        return {
            **self._described(batch),
            "results": [self._results(row, near, batch.k, one) for row, near, one in rows],
            "milliseconds": {"encode": encoded, "search": searched},
        }

    def facets(self) -> dict[str, Any]:
        """Columns with few values, each with the number of its items."""
        found = self.database.facets()
        return {name: [{"value": value, "items": n} for value, n in values] for name, values in found.items()}

    def _check(self, how: How) -> None:
        if how.k > self.max_k:
            raise Refused(f"k must lie between 1 and {self.max_k}, found {how.k}.")
        n_bits = self.database.index.n_bits
        if how.n_bits is not None and how.n_bits > n_bits:
            raise Refused(f"These codes have {n_bits} bits, found n_bits={how.n_bits}.")
        if how.rescore is not None and self.database.vectors is None:
            raise Refused(
                "Rescoring needs the original vectors, which this database does not store: index it with --vectors "
                "float16."
            )
        if how.rescore is not None and how.rescore > 10 * self.max_k:
            raise Refused(f"rescore must lie between 1 and {10 * self.max_k}, found {how.rescore}.")

    def _read_all(self, batch: Batch) -> tuple[list[Asked], list[int | str | None]]:
        """Queries of a batch, and for each the item that it is."""
        lists = {"ids": batch.ids, "texts": batch.texts, "vectors": batch.vectors, "scores": batch.scores}
        given = {name: values for name, values in lists.items() if values is not None}
        if len(given) != 1 or not next(iter(given.values())):
            found = " and ".join(f"{len(values)} {name}" for name, values in given.items()) or "none of them"
            raise Refused(f"Pass one list of ids, texts, vectors or scores; found {found}.")
        ((kind, values),) = given.items()
        if len(values) > _MOST_AT_ONCE:
            raise Refused(f"A batch has at most {_MOST_AT_ONCE:,} queries, found {len(values):,}; send several.")
        own: list[int | str | None] = [None] * len(values)
        if batch.ids is not None:
            own = [self.reader.known(one) for one in batch.ids]
        if kind in ("texts", "vectors"):
            rows = (
                self.reader.texts(batch.texts)
                if batch.texts is not None
                else np.array([self.reader.checked(row) for row in batch.vectors or []])
            )
            scores = self.database.model.project(rows)
            signs = np.where(scores >= 0, 1, -1).astype(np.int8)
            return [Asked(*parts) for parts in zip(signs, scores, rows, strict=True)], own
        return [self.reader.read(Source.model_validate({_SINGLE[kind]: value})) for value in values], own

    def _nearest(self, asked: list[Asked], how: How, k: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Distances, ids and the weights of the compared bits."""
        index = self.database.index
        n_bits = index.n_bits if how.n_bits is None else how.n_bits
        values = [one.scores if how.compared == "real" else one.signs for one in asked]
        if any(value is None for value in values):
            raise Refused(
                "The database stores the signs of its items, not their scores, and the input of this item is not "
                "available. Use mode plain or weighted, or start the server with --features or --images."
            )
        weights = np.ones(n_bits) if how.compared == "plain" else self._weights_for(n_bits)
        own = n_bits == index.n_bits and np.array_equal(weights, index.bit_weights)
        vectors = [one.vector for one in asked]
        if how.rescore is not None and any(vector is None for vector in vectors):
            raise Refused("Rescoring needs the vector of the query: pass an item, a text or a vector, not scores.")
        try:
            if how.rescore is not None:
                found = self.database.search(
                    np.array(vectors),
                    k,
                    n_bits=n_bits,
                    real_valued=how.compared == "real",
                    where=how.where,
                    rescore=max(how.rescore, k),
                )
            else:
                found = self.database.search_codes(
                    np.array(values)[:, :n_bits],
                    k,
                    n_bits=n_bits,
                    bit_weights=None if own else weights,
                    where=how.where,
                )
        except ValueError as error:
            raise Refused(str(error)) from error
        return (*found, weights)

    def _described(self, how: How) -> dict[str, Any]:
        n_bits = self.database.index.n_bits if how.n_bits is None else how.n_bits
        return {"n_bits": n_bits, "mode": how.compared, "metric": "hamming" if how.rescore is None else "cosine"}

    def _results(
        self, ids: NDArray[Any], distances: NDArray[Any], k: int, own: int | str | None
    ) -> list[dict[str, Any]]:
        """Items that were found, without padding and the query itself."""
        kept = np.isfinite(distances) & np.array([one != own for one in ids.tolist()], bool)
        found, near = ids[kept][:k].tolist(), distances[kept][:k].tolist()
        if not found:
            return []
        labels, payloads = self.database.labels_of(found), self.database.payload_of(found)
        names, relevant = self.database.file_names_of(found), self._relevant(labels, own)
        rows = zip(found, near, labels, names, relevant, payloads, strict=True)
        return [
            {"id": i, "distance": d, "label": label, "name": name, "relevant": same, "payload": payload or {}}
            for i, d, label, name, same, payload in rows
        ]

    def _relevant(self, labels: list[str | None], own: int | str | None) -> list[bool | None]:
        """Whether each item has the class of the query, or one of its labels; None if unknown."""
        kind = self.database.label_kind
        if kind is None or own is None:
            return [None] * len(labels)
        (mine,) = self.database.labels_of([own])
        if kind == "classes":
            return [label == mine for label in labels]
        wanted = set((mine or "").split(";")) - {""}
        return [bool(wanted & set((label or "").split(";"))) for label in labels]

    def _weights_for(self, n_bits: int) -> NDArray[Any]:
        """The best weights for the first bits if the model has them, else the first of its weights."""
        index, model = self.database.index, self.database.model
        if n_bits == index.n_bits or not hasattr(model, "weights_for"):
            return index.bit_weights[:n_bits]
        kept = self._weights.get(n_bits)
        if kept is None or kept[0] is not model:
            kept = self._weights[n_bits] = (model, np.asarray(model.weights_for(n_bits)))
        return kept[1]


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
