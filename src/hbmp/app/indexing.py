"""From data to a database on disk, for `hbmp index` and `hbmp add`.

Features are encoded in memory. Image files go through `hbmp.encode_dataset` into a folder of parts beside the database
(`db.parts` for `db`), because a network may need hours: the next run resumes from these parts, which are removed once
the database is written.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np

from hbmp._core.label_matrix import matrix_of
from hbmp._core.progress import counted
from hbmp.app.carried import Carried
from hbmp.app.inputs import inputs_for
from hbmp.database import Database, check_free, is_database
from hbmp.database.item_files import ItemFiles
from hbmp.datasets import Data
from hbmp.encode import Encoded, encode_dataset, read_codes
from hbmp.hasher import Hasher
from hbmp.images import Images

_PER_PART = 4096  # images per part: the most that a stopped run encodes again


def check_database_place(path: str | Path, *, replace: bool) -> None:
    """Refuse an output that cannot be a new database, or an existing one that must not be replaced."""
    check_free(path)
    if not replace and is_database(path):
        raise ValueError(f"{path} is a database already; pass --replace to replace it, or choose another name.")


@dataclass(frozen=True)
class Indexed:
    """The database, the skipped images, and the number of items that an earlier run had encoded."""

    database: Database
    skipped: tuple[str, ...] = ()
    n_resumed: int = 0


def index_data(
    model: Hasher,
    data: Data,
    name: str,
    path: str | Path,
    *,
    items: Carried | None = None,
    vectors: str | None = None,
    kind: Literal["auto", "flat", "ivf"] = "auto",
    on_error: Literal["refuse", "skip"] = "refuse",
    progress: bool = False,
) -> Indexed:
    """Encode the data and save the database at `path`; `name` is the name of the data in messages."""
    check_free(path)
    found = Carried() if items is None else items
    labels, names = (data.labels, data.label_names) if data.labels is not None else (found.labels, found.label_names)
    inputs = inputs_for(model, data, name)
    settings: dict[str, Any] = {"label_names": names, "kind": kind, "path": path, "replace": True}
    source = {"name": data.name, "rows": len(data), "checksum": data.checksum()}
    if not isinstance(inputs, Images) or inputs.folder is None or vectors is not None:
        if isinstance(inputs, Images):
            settings["files"] = ItemFiles.of(inputs)
        given: dict[str, Any] = {"ids": found.ids, "labels": labels, "payload": found.payload, "source": source}
        return Indexed(Database.build(model, inputs, vectors=vectors, progress=progress, **given, **settings))
    parts = Path(path).with_name(f"{Path(path).name}.parts")
    encoded = _encoded(model, inputs, parts, on_error, progress)
    files, codes = _read(parts)
    kept = np.flatnonzero(~np.isin(_posix(inputs.names), encoded.skipped)) if encoded.skipped else np.arange(len(data))
    rows = found.taken(kept)
    database = Database.of_codes(
        model,
        codes,
        ids=rows.ids,
        labels=None if labels is None else labels[kept],
        payload=rows.payload,
        source={**source, "rows": len(kept)},
        files=ItemFiles(str(inputs.folder), files),
        **settings,
    )
    _remove(parts)
    resumed = min(encoded.n_resumed * _PER_PART, len(database))
    return Indexed(database, encoded.skipped, resumed)


def add_data(
    database: Database, data: Data, name: str, *, items: Carried, replace: bool = False, progress: bool = False
) -> int:
    """Encode the data and add them to a database; gives the number of new items."""
    labels, names = (data.labels, data.label_names) if data.labels is not None else (items.labels, items.label_names)
    inputs = inputs_for(database.model, data, name)
    if not len(data):
        return 0
    database.add(
        inputs,
        ids=items.ids,
        labels=_labels_for(database, labels, names, name),
        payload=items.payload,
        replace=replace,
        progress=progress,
    )
    return len(data)


def _labels_for(database: Database, labels: np.ndarray | None, names: Sequence[str], name: str) -> np.ndarray | None:
    """New labels in the form of the database: classes in its type, 0/1 rows over its label names."""
    if labels is None or not len(database):
        return labels
    if database.label_kind is None:
        return None  # those that came with the data
    if database.label_kind == "classes":
        return labels.astype(str) if labels.ndim == 1 and database.filterable.get("label") == "text" else labels
    known = database.label_names
    if labels.ndim == 1 and known:
        names, labels = _as_rows(labels)
    if not names or not known or tuple(names) == known:
        return labels
    unknown = next((label for label in names if label not in known), None)
    if unknown is not None:
        raise ValueError(
            f"{name} has the label {unknown!r}, which the database does not have; it has {', '.join(known)}."
        )
    rows = np.zeros((len(labels), len(known)), np.uint8)
    rows[:, [known.index(label) for label in names]] = labels
    return rows


def _as_rows(labels: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Classes as 0/1 rows with their names."""
    matrix, names = matrix_of([[label] for label in labels.tolist()])
    return names, matrix


def _encoded(
    model: Hasher, images: Images, parts: Path, on_error: Literal["refuse", "skip"], progress: bool
) -> Encoded:
    with counted("encoding", len(images), "image", show=progress) as done:
        reporting = _Reporting(model, done)
        try:
            return encode_dataset(
                reporting, str(images.folder), parts, rows_per_part=_PER_PART, on_error=on_error, files=images.names
            )
        except ValueError as error:
            if "was begun with another" not in str(error):
                raise
            raise ValueError(
                f"{parts} contains codes from an interrupted run with a different model or different images; remove "
                "it to start again."
            ) from error


class _Reporting:
    """A model that reports its progress as it encodes; its first call is a sample, by which a run is recognised."""

    def __init__(self, model: Hasher, done: Callable[..., None]):
        self._model, self._done, self._sampled = model, done, False

    def transform(self, X: Any) -> np.ndarray:
        """The codes of the model."""
        codes = self._model.transform(X)
        self._done(len(codes) if self._sampled else 0)
        self._sampled = True
        return codes


def _remove(parts: Path) -> None:
    """Remove parts, their description last: a folder that is removed half-way can still be resumed."""
    for part in parts.glob("*.parquet"):
        part.unlink()
    shutil.rmtree(parts)


def _read(parts: Path) -> tuple[list[str], np.ndarray]:
    """Names and codes of all parts, in order."""
    tables, codes = zip(*read_codes(parts), strict=True)
    return [name for table in tables for name in table["id"].to_pylist()], np.concatenate(codes)


def _posix(names: list[str]) -> list[str]:
    return [PurePath(name).as_posix() for name in names]
