"""Texts with metadata in a database, for any framework: columns of the payload, models for new databases, similarities.

A metadata key is a column of the same name. Keys that results use themselves, such as `id` or `score`, and the names of
the adapter's own columns become `metadata.id` and so on.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp.database.database import Database
from hbmp.database.payload import RESERVED
from hbmp.hasher import Hasher, get_method

TEXT = "text"
_PREFIX = "metadata."
_FEW = 1000  # texts from which codes are learned; fewer get random hyperplanes
_MOST = 20_000  # texts that codes are learned from


def column_of(key: str, text_column: str = TEXT) -> str:
    """The column of a metadata key."""
    return f"{_PREFIX}{key}" if key in (*RESERVED, text_column) or key.startswith(_PREFIX) else key


def payload_of(
    texts: Sequence[str], metadatas: Sequence[Mapping[str, Any]], text_column: str = TEXT
) -> list[dict[str, Any]]:
    """One row of the payload per text."""
    return [
        {text_column: text, **{column_of(key, text_column): value for key, value in metadata.items()}}
        for text, metadata in zip(texts, metadatas, strict=True)
    ]


def metadata_in(row: Mapping[str, Any], text_column: str = TEXT) -> dict[str, Any]:
    """The metadata in a row of the payload; missing values are left out."""
    return {
        name.removeprefix(_PREFIX): value for name, value in row.items() if name != text_column and value is not None
    }


def conditions_of(where: Mapping[str, Any] | None, text_column: str = TEXT) -> dict[str, Any] | None:
    """Conditions on metadata as conditions on columns; `label` refers to the labels of a database and is unchanged."""
    if where is None:
        return None
    return {key if key == "label" else column_of(key, text_column): value for key, value in where.items()}


def learn(vectors: ArrayLike, n_bits: int, random_state: int = 0) -> Hasher:
    """A model for these vectors: HBMP without labels, or random hyperplanes if there are few."""
    X = np.asarray(vectors, dtype=np.float32)
    if X.ndim != 2 or not len(X):
        raise ValueError("Codes are learned from vectors: pass at least one text, or a database or a model.")
    if len(X) < _FEW:
        both = X if len(X) > 1 else np.concatenate([X, -X])
        return get_method("lsh")(n_bits, random_state=random_state).fit(both)  # type: ignore[no-any-return]
    rows = np.random.default_rng(random_state).permutation(len(X))[:_MOST]
    return get_method("hbmp")(n_bits, random_state=random_state).fit(X[np.sort(rows)])  # type: ignore[no-any-return]


def make(vectors: ArrayLike, *, model: Hasher | None, n_bits: int, path: str | Path | None, kind: str) -> Database:
    """An empty database for such vectors."""
    found = learn(vectors, n_bits) if model is None else model
    nothing = np.empty((0, np.shape(vectors)[1]), np.float32)
    return Database.build(found, nothing, ids=[], vectors=kind, path=path)


def nearest(
    database: Database, vector: ArrayLike, k: int, where: Mapping[str, Any] | None, ids: Any, rescore: int | None
) -> tuple[NDArray[Any], list[Any]]:
    """Distances and ids of the nearest items; by the original vectors where the database keeps them."""
    if k < 1 or not len(database):
        return np.empty(0), []
    keeps = database.vectors is not None
    candidates = (rescore or max(100, 10 * k)) if keeps else None
    distances, found = database.search(
        np.asarray(vector, np.float32)[None], k, real_valued=True, where=where, ids=ids, rescore=candidates
    )
    kept = np.isfinite(distances[0])
    return distances[0][kept], found[0][kept].tolist()


def similarities(database: Database, distances: NDArray[Any], vector: ArrayLike) -> list[float]:
    """Distances as similarities: the cosine where vectors are kept, else 1 for the nearest possible code and 0 for the
    farthest."""
    if database.vectors is not None:
        return [float(value) for value in 1 - distances]
    weights = database.index.bit_weights
    scores = np.abs(database.model.project(np.asarray(vector, np.float32)[None])[0])
    worst = float(np.abs(weights * scores).sum()) or 1.0
    low = float(np.minimum(weights * scores, 0).sum())
    return [float(value) for value in np.clip(1 - (distances - low) / worst, 0, 1)]


def new_ids(database: Database, given: Sequence[str | None]) -> list[Any]:
    """Ids for new items, in the type of the database: those that are given, else random or the next free ones."""
    if database.id_type is str or not len(database):
        return [one or uuid.uuid4().hex for one in given]
    free = itertools.count(int(database.ids[-1]) + 1)
    return [next(free) if one is None else as_id(database, one) for one in given]


def as_id(database: Database, one: str) -> Any:
    """An id in the type of the database; one that cannot exist remains a string, which is never found."""
    return int(one) if database.id_type is int and one.isdecimal() else one
