"""Filling a database: rows come in blocks, are encoded, and written with what belongs to them in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import hamming
from hbmp.database import labels as label_values
from hbmp.database.contents import Contents
from hbmp.database.database_file import DatabaseFile
from hbmp.database.encoding import blocks_of, items_of
from hbmp.database.item_files import ItemFiles
from hbmp.database.payload import Payload
from hbmp.database.vectors import check_kind
from hbmp.hasher import Hasher

_CODES = 1 << 16  # per block

Part = tuple[slice, NDArray[np.uint8], NDArray[Any] | None]  # rows, packed codes, vectors


class Rows:
    """n rows that come as packed codes, with their vectors where these are kept."""

    def __init__(self, n: int, parts: Callable[[], Iterator[Part]], vectors: dict[str, Any] | None = None):
        self.n, self._parts, self.vectors = n, parts, vectors

    @classmethod
    def encoded(cls, model: Hasher, X: Any, *, vectors: str | None = None, progress: bool = False) -> Rows:
        """Features or images, encoded a block at a time."""
        items = items_of(model, X)
        about = None
        if vectors is not None:
            if model.fitted_on_images:
                raise ValueError("A model of images has no vectors to keep; leave vectors out.")
            about = {"kind": check_kind(vectors), "dimension": int(model.n_features_in_)}

        def parts() -> Iterator[Part]:
            for rows, block, codes in blocks_of(model, items, progress=progress):
                yield rows, hamming.pack(codes), block if about else None

        return cls(len(items), parts, about)

    @classmethod
    def of_codes(cls, codes: ArrayLike, n_bits: int) -> Rows:
        """Codes that have been computed before."""
        signs = hamming.check_codes(codes, n_bits)

        def parts() -> Iterator[Part]:
            for start in range(0, len(signs), _CODES):
                rows = slice(start, min(start + _CODES, len(signs)))
                yield rows, hamming.pack(signs[rows]), None

        return cls(len(signs), parts)

    def compute(self) -> None:
        """Encode all rows now."""
        found = list(self._parts())
        self._parts = lambda: iter(found)

    def __iter__(self) -> Iterator[Part]:
        return self._parts()


def fill(
    store: DatabaseFile,
    model: Hasher,
    rows: Rows,
    *,
    path: Path | None = None,
    contents: Contents | None = None,
    ids: Any = None,
    labels: ArrayLike | None = None,
    label_names: Sequence[str] = (),
    payload: Any = None,
    kind: str = "auto",
    source: Mapping[str, Any] | None = None,
    files: ItemFiles | Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    replace: bool = False,
) -> None:
    """Write rows into a new store, or add them to the contents of one; replace: items with the same ids go."""
    carried = None if payload is None else Payload(payload, rows.n)
    classes = None if labels is None else label_values.as_labels(labels, rows.n)
    names = files.names() if isinstance(files, ItemFiles) else files
    if names is not None and len(names) != rows.n:
        raise ValueError(f"There are {rows.n} rows but {len(names)} image files.")
    if contents is None:
        with store.transaction():
            Contents.begin(store, model.n_bits, model.bit_weights_ if weights is None else weights)
        contents = Contents(store)
        contents.facts |= {"label_names": list(label_names), "source": dict(source or {}), "vectors": rows.vectors}
        if isinstance(files, ItemFiles):
            contents.facts["images"] = files.place_seen_from(path) if path else {"absolute": str(files.folder)}
        with store.transaction():
            store.put("facts", contents.facts)
    with contents.writing():
        facts = contents.facts
        facts["labels"] = label_values.check_form(facts["labels"], classes, len(contents.numbers))
        numbers, texts = contents.new_numbers(ids, rows.n, replace=replace)
        store.put("facts", facts)
        for part, codes, vectors in rows:
            contents.write(
                numbers[part],
                codes,
                ids=None if texts is None else texts[part],
                columns=None if carried is None else carried.columns(part.start, part.stop),
                classes=None if classes is None else classes[part],
                files=None if names is None else names[part],
                vectors=vectors,
            )
    if kind == "ivf" and rows.n:
        with store.transaction():
            contents.keep_index(kind)


def change(contents: Contents, ids: Any, rows: Rows | None, labels: ArrayLike | None, payload: Any) -> None:
    """Change items in one transaction."""
    from hbmp.database.contents import as_ids

    n = len(ids)
    wanted = as_ids(ids, n)
    if rows is not None:
        rows.compute()
        if rows.n != n:
            raise ValueError(f"There are {n} ids but {rows.n} rows; give one row per id.")
    with contents.writing():
        numbers = contents.numbers_of(wanted)
        if (numbers < 0).any():
            unknown = wanted[int(np.argmin(numbers))]
            raise LookupError(f"{(numbers < 0).sum()} of the {n} ids are not in the database, e.g. {unknown!r}.")
        classes = None if labels is None else label_values.as_labels(labels, n)
        if classes is not None:
            if contents.facts["labels"] is None:
                raise ValueError("The items of this database have no labels; build it again with labels.")
            contents.facts["labels"] = label_values.check_form(contents.facts["labels"], classes, len(contents.numbers))
        columns = None if payload is None else Payload(payload, n).columns(0, n)
        contents.change(numbers, classes=classes, columns=columns)
        for part, codes, vectors in rows or ():
            contents.change(numbers[part], codes=codes, vectors=vectors)
