"""The content of a database: ids, labels, payload, files and codes of its items, as of the latest commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hbmp._core.filters import Where
from hbmp.database import labels as label_values
from hbmp.database.contents import Contents
from hbmp.database.database_file import DatabaseFile
from hbmp.database.facets import facets_of
from hbmp.database.files import read_model
from hbmp.database.item_files import ItemFiles, check_inside, folder_of, shortest
from hbmp.database.payload import KINDS, restored
from hbmp.hasher import Hasher
from hbmp.index import Index

_T = TypeVar("_T")
_MOST_LOOKS = 100  # at a file that other processes change again and again


class Items:
    """The part of a `Database` that reads."""

    def __init__(self, model: Hasher, store: DatabaseFile, *, module: Any = None, fixed: str | None = None):
        self.model = model
        self._store, self._contents = store, Contents(store)
        self._module, self._fixed = module, fixed  # fixed: why the database cannot be changed
        self._model_digest = store.get("model", None)
        self._files: ItemFiles | None = None
        self._kept: dict[str, tuple[int, Any]] = {}

    def __len__(self) -> int:
        return len(self._latest().numbers)

    def __contains__(self, item_id: object) -> bool:
        with self._store.lock:
            return bool(self._latest().numbers_of([item_id])[0] >= 0)

    def __repr__(self) -> str:
        return f"Database({len(self)} items of {self.index.n_bits} bits, {type(self.model).__name__})"

    @property
    def path(self) -> Path | None:
        """The file; None for a database in memory."""
        return self._store.path

    @property
    def index(self) -> Index:
        """The codes, which only the database changes."""
        return self._latest().index

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of the items: ascending integers, or texts in the order of arrival."""
        return self._cached("ids", self._contents.all_ids)

    def ids_at(self, places: Any) -> NDArray[Any]:
        """Some of `ids`, without reading the others.

        Parameters
        ----------
        places : array-like of int
            Positions in the order of `ids`.

        Returns
        -------
        ndarray of shape (n,)
            Ids.
        """
        with self._store.lock:
            contents = self._latest()
            return contents.ids_at(contents.numbers[np.asarray(places)])

    @property
    def id_type(self) -> type:
        """The type of ids, int or str."""
        return str if self._latest().id_kind == "text" else int

    @property
    def labels(self) -> NDArray[Any] | None:
        """Labels in the order of `ids`."""
        form = self._latest().facts["labels"]
        if form is None:
            return None
        with self._store.decoding("its labels cannot be read"):
            return self._cached("labels", lambda: label_values.restored(self._contents.column("label"), form))

    @property
    def label_kind(self) -> str | None:
        """The form of labels: "classes", one per item; "rows" of 0 and 1; or None."""
        form = self._latest().facts["labels"]
        return None if form is None else str(form["kind"])

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the label columns."""
        return tuple(self._latest().facts["label_names"])

    @property
    def columns(self) -> dict[str, str]:
        """The kind of each column of the payload."""
        return {name: kind or "text" for name, kind in self._latest().facts["columns"].items()}

    @property
    def filterable(self) -> dict[str, str]:
        """The kind of each column that `where` may name; "label" is among them where items have classes."""
        with self._store.lock:
            found = self._latest().sql_columns()
        kinds = {name: kind or "text" for name, (_, kind) in found.items() if kind != "json"}
        return {name: kind if kind in KINDS else _number_kind(kind) for name, kind in kinds.items()}

    @property
    def vectors(self) -> str | None:
        """How the original vectors are kept."""
        about = self._latest().facts["vectors"]
        return None if about is None else about["kind"]

    @property
    def source(self) -> dict[str, Any]:
        """Origin of the items."""
        return dict(self._latest().facts["source"])

    @property
    def has_files(self) -> bool:
        """Whether items have image files."""
        return self._latest().facts["images"] is not None

    @property
    def files(self) -> ItemFiles | None:
        """The image file of each item, in the order of `ids`."""
        about = self._latest().facts["images"]
        if about is None:
            return None
        where = self._files_folder()
        return self._cached("files", lambda: ItemFiles(where, self._file_names()))

    @files.setter
    def files(self, files: ItemFiles) -> None:
        """Look for the image files in another folder, for this object alone."""
        self._files = files
        self._kept.pop("files", None)

    def _files_folder(self) -> Path:
        if self._files is not None:
            return self._files.folder
        place = self._contents.facts["images"]
        if place is None:
            raise self._store.damaged("its items name files, and it names no folder of files")
        return folder_of(place, self.path)

    def _file_names(self) -> list[str]:
        return [check_inside(name, self.path) for name in self._contents.column("file")]

    def facets(self, most: int = 50) -> dict[str, list[tuple[Any, int]]]:
        """Columns with few values, for filters: each value and the number of its items, most frequent first.

        Parameters
        ----------
        most : int, default=50
            Columns with more values are left out, and so are columns with a distinct value for each item.

        Returns
        -------
        dict of str to list of (value, count)
            By column; "label" for classes.
        """
        with self._store.decoding("its columns cannot be read"):
            return self._cached(f"facets {most}", lambda: facets_of(self._contents, most))

    def codes(self, ids: Any = None) -> NDArray[np.int8]:
        """Codes of items.

        Parameters
        ----------
        ids : array-like of int or str, default=None
            Ids of items in the database; all of them, in the order of `ids`, if None.

        Returns
        -------
        ndarray of shape (n, n_bits)
            Signs, -1 and +1.
        """
        with self._snapshot() as contents:
            return contents.index.codes(contents.numbers if ids is None else self._known(ids))

    def vectors_of(self, ids: Any) -> NDArray[np.float32]:
        """Original vectors of items, where the database keeps them.

        Parameters
        ----------
        ids : array-like of int or str
            Ids of items in the database.

        Returns
        -------
        ndarray of shape (n, n_features)
            The vectors, in the precision given by `vectors`.
        """
        with self._snapshot() as contents:
            if self.vectors is None:
                raise ValueError("This database stores no vectors; build it with vectors='float16'.")
            return contents.vectors(self._known(ids))

    def find(self, where: Where) -> NDArray[Any]:
        """Ids of the items that meet conditions, in the order of `ids`.

        Parameters
        ----------
        where : mapping
            Conditions as for `search`.

        Returns
        -------
        ndarray of shape (n,)
            Ids.
        """
        with self._snapshot() as contents:
            numbers = contents.chosen(None, where)
            return contents.all_ids() if numbers is None else contents.ids_at(np.sort(numbers))

    def labels_of(self, ids: Any) -> list[str | None]:
        """Labels of items as text; several labels are joined, ``sea;sand``.

        Parameters
        ----------
        ids : array-like of int or str
            Ids of items.

        Returns
        -------
        list of str or None
            None for an unknown id, and for an item without labels.
        """
        form = self._latest().facts["labels"]
        names = self.label_names
        rows = self._rows_of(ids, ["label"])
        if form is None:
            return [None] * len(rows)
        with self._store.decoding("its labels cannot be read"):
            return [None if row is None else label_values.as_text(row[0], form, names) for row in rows]

    def paths_of(self, ids: Any) -> list[str | None]:
        """Paths of the image files of items.

        Parameters
        ----------
        ids : array-like of int or str
            Ids of items.

        Returns
        -------
        list of str or None
            None for an unknown id, and for an item without a file.
        """
        names = self.file_names_of(ids)
        if not any(names):
            return names
        where = self._files_folder()
        return [None if name is None else shortest(where / check_inside(name, self.path)) for name in names]

    def file_names_of(self, ids: Any) -> list[str | None]:
        """Names of the image files of items, relative to the folder of all files.

        Parameters
        ----------
        ids : array-like of int or str
            Ids of items.

        Returns
        -------
        list of str or None
            None for an unknown id, and for an item without a file.
        """
        return [row[0] if row else None for row in self._rows_of(ids, ["file"])]

    def payload_of(self, ids: Any, columns: Sequence[str] | None = None) -> list[dict[str, Any] | None]:
        """Payload of items.

        Parameters
        ----------
        ids : array-like of int or str
            Ids of items.
        columns : sequence of str, default=None
            Only these columns.

        Returns
        -------
        list of dict or None
            One value per column, None where it is missing; None instead of the dict for an unknown id.
        """
        known: dict[str, str | None] = self._latest().facts["columns"]
        kinds = known if columns is None else {name: known[name] for name in known if name in columns}
        rows = self._rows_of(ids, [f"c{number}" for number, name in enumerate(known) if name in kinds])
        with self._store.decoding("its payload cannot be read"):
            return [
                None
                if row is None
                else {name: restored(value, kinds[name]) for name, value in zip(kinds, row, strict=True)}
                for row in rows
            ]

    def _known(self, ids: Any) -> NDArray[np.int64]:
        """Numbers of ids that must exist."""
        listed = [ids] if isinstance(ids, str) else ids
        numbers = self._contents.numbers_of(listed)
        if (numbers < 0).any():
            unknown = np.asarray(listed, dtype=object).reshape(-1)[int(np.argmin(numbers))]
            raise LookupError(f"The database has no item {unknown!r}.")
        return numbers

    def _rows_of(self, ids: Any, expressions: list[str]) -> list[tuple[Any, ...] | None]:
        """Values of items by id; None for an unknown one."""
        with self._snapshot() as contents:
            numbers = contents.numbers_of([ids] if isinstance(ids, str) else ids)
            found = contents.rows(numbers, expressions)
        empty = (None,) * len(expressions)
        return [None if number < 0 else found.get(number, empty) for number in numbers.tolist()]

    def _latest(self) -> Contents:
        """The contents as of now; the model too, where another process has replaced the database."""
        with self._store.lock:
            if self._contents.is_current():
                return self._contents
            with self._store.transaction(writes=False):
                before = self._contents.generation
                self._contents.refresh()
                if self._contents.generation != before:
                    digest = self._store.get("model", None)
                    if digest != self._model_digest:
                        self.model, self._model_digest = read_model(self._store, self._module), digest
            return self._contents

    @contextmanager
    def _snapshot(self) -> Iterator[Contents]:
        """The contents as of now, and a file that stays as it is for all statements of the block."""
        with self._store.lock:
            for _ in range(_MOST_LOOKS):
                contents = self._latest()
                with self._store.transaction(writes=False):
                    if contents.is_current():
                        yield contents
                        return
        raise RuntimeError("The database changes faster than it can be read.")

    def _cached(self, name: str, compute: Callable[[], _T]) -> _T:
        with self._snapshot() as contents:
            reads = contents.reads
            if self._kept.get(name, (None,))[0] != reads:
                self._kept[name] = (reads, compute())
            found: _T = self._kept[name][1]
            return found


def _number_kind(dtype: str) -> str:
    kind = np.dtype(dtype).kind
    return "float" if kind == "f" else "bool" if kind == "b" else "int"
