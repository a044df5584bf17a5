"""The database class for users. Its parts are listed in `hbmp.database`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp._core.filters import Where
from hbmp._core.reading import reading
from hbmp.database import folder, place
from hbmp.database.building import Rows, fill
from hbmp.database.database_file import DatabaseFile
from hbmp.database.encoding import items_of
from hbmp.database.files import read_model, write_model
from hbmp.database.item_files import ItemFiles, folder_of
from hbmp.database.searching import Searchable
from hbmp.hasher import Hasher
from hbmp.images import Images

Kind = Literal["auto", "flat", "ivf"]


class Database(Searchable):
    """Items that are searched by features or by images, with ids, labels and a payload.

    `build` and `of_codes` create a database, in memory or as one file; `load` opens a file. Changes of a database in a
    file are transactions: after a crash there is the state before a change or the state after it. Any number of
    processes may read a file while one writes; each search sees the latest state. Any number of threads may share a
    database.

    Attributes
    ----------
    model : Hasher
        The fitted model that made the codes; it encodes queries.
    index : Index
        The codes, for searches by code. It changes with the database alone and knows items by their integer ids, or by
        numbers in the order of arrival where ids are texts.
    path : Path or None
        The file.
    ids : ndarray of shape (n,)
        Ids of the items: ascending integers, or texts in the order of arrival.
    labels : ndarray of shape (n,) or (n, n_labels), or None
        One class per item, or a 0/1 row per item for multi-label data, in the order of `ids`.
    label_kind : {"classes", "rows"} or None
        Whether items have one class each, or rows of 0 and 1.
    label_names : tuple of str
        Names of the label columns.
    columns : dict of str to str
        The kind of each column of the payload: "text", "int", "float", "bool" or "json".
    filterable : dict of str to str
        The kind of each column that `where` may name; "label" is among them where items have classes.
    vectors : str or None
        How the original vectors are kept: "float32", "float16", "int8" or not at all.
    source : dict
        Origin of the items: a few words and numbers.
    has_files : bool
        Whether items have image files.
    files : ItemFiles or None
        The image file of each item, in the order of `ids`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import hbmp
    >>> X, y = load_digits(return_X_y=True)
    >>> model = hbmp.get_method("itq")(16, random_state=0).fit(X)
    >>> ids = [f"digit-{number}" for number in range(100)]
    >>> payload = [{"even": bool(label % 2 == 0)} for label in y[:100]]
    >>> database = hbmp.Database.build(model, X[:100], ids=ids, labels=y[:100], payload=payload)
    >>> database
    Database(100 items of 16 bits, ITQ)
    >>> distances, found = database.search(X[:2], 3, where={"even": True})
    >>> found.shape
    (2, 3)
    >>> database.labels_of(["digit-0", "digit-1"]), database.payload_of(["digit-1"])
    (['0', '1'], [{'even': False}])
    >>> database.remove(["digit-0"]), len(database)
    (1, 99)
    """

    @classmethod
    def build(
        cls,
        model: Hasher,
        X: Any,
        *,
        ids: Any = None,
        labels: ArrayLike | None = None,
        label_names: Sequence[str] = (),
        payload: Any = None,
        vectors: str | None = None,
        path: str | Path | None = None,
        replace: bool = False,
        kind: Kind = "auto",
        source: Mapping[str, Any] | None = None,
        files: ItemFiles | None = None,
        progress: bool = False,
    ) -> Database:
        """Encode features or images with a fitted model and store them.

        Rows are read in blocks, so X may be a memory map larger than memory. A build with a `path` that is interrupted
        or killed leaves nothing there, or the previous database.

        Parameters
        ----------
        model : Hasher
            A fitted model.
        X : array-like of shape (n, n_features), Images, path or list of str
            Features, images (an `hbmp.Images` or a folder), or texts for a model that has an encoder.
        ids : array-like of int or str of shape (n,), default=None
            Distinct ids; row numbers if None.
        labels : array-like of shape (n,) or (n, n_labels), default=None
            Labels of the items. Images in class folders have their own.
        label_names : sequence of str, default=()
            Names of the label columns.
        payload : list of dict, mapping of columns, or table, default=None
            Payload of each item: texts, numbers, booleans, lists. Tables of pandas, pyarrow and polars work.
        vectors : {"float32", "float16", "int8"}, default=None
            Also store X, for rescoring; "int8" has one scale per row.
        path : path, default=None
            The file to write; in memory if None.
        replace : bool, default=False
            Replace a database that is at `path` already, in one transaction.
        kind : {"auto", "flat", "ivf"}, default="auto"
            Kind of the index, see `hbmp.Index.build`. "auto" is exact.
        source : mapping, default=None
            Origin of the items.
        files : ItemFiles, default=None
            The image file of each row.
        progress : bool, default=False
            Show a progress bar on a terminal.

        Returns
        -------
        Database

        Examples
        --------
        >>> import numpy as np, hbmp
        >>> X = np.random.default_rng(0).standard_normal((50, 8))
        >>> model = hbmp.get_method("lsh")(16, random_state=0).fit(X)
        >>> len(hbmp.Database.build(model, X, ids=range(100, 150), vectors="float16"))
        50
        """
        X = items_of(model, X)
        if isinstance(X, Images):
            labels = X.labels if labels is None else labels
            files = ItemFiles.of(X) if files is None else files
        rows = Rows.encoded(model, X, vectors=vectors, progress=progress)
        about = {"label_names": label_names, "kind": kind, "source": source, "files": files}
        return cls._made(model, rows, path, replace, ids=ids, labels=labels, payload=payload, **about)

    @classmethod
    def of_codes(
        cls,
        model: Hasher,
        codes: NDArray[np.int8],
        *,
        ids: Any = None,
        labels: ArrayLike | None = None,
        label_names: Sequence[str] = (),
        payload: Any = None,
        path: str | Path | None = None,
        replace: bool = False,
        kind: Kind = "auto",
        source: Mapping[str, Any] | None = None,
        files: ItemFiles | None = None,
    ) -> Database:
        """Create a database from codes that the model has computed before.

        Parameters
        ----------
        model : Hasher
            The model that made the codes.
        codes : ndarray of shape (n, n_bits)
            Signs, -1 and +1.
        ids, labels, label_names, payload, path, replace, kind, source, files
            As for `build`.

        Returns
        -------
        Database

        Examples
        --------
        >>> import numpy as np, hbmp
        >>> X = np.random.default_rng(0).standard_normal((50, 8))
        >>> model = hbmp.get_method("lsh")(16, random_state=0).fit(X)
        >>> database = hbmp.Database.of_codes(model, model.transform(X))
        >>> int(database.search(X[:1], 1)[1][0, 0])
        0
        """
        about = {"label_names": label_names, "kind": kind, "source": source, "files": files}
        rows = Rows.of_codes(codes, model.n_bits)
        return cls._made(model, rows, path, replace, ids=ids, labels=labels, payload=payload, **about)

    @classmethod
    def _made(cls, model: Hasher, rows: Rows, path: str | Path | None, replace: bool, **items: Any) -> Database:
        if path is None:
            store = DatabaseFile.create()
            fill(store, model, rows, path=None, **items)
            return cls(model, store)
        if place.is_database(path) and not replace:
            raise ValueError(f"{path} is a database already; pass replace=True to replace it, or choose another name.")
        with place.new_file(path) as part:
            store = DatabaseFile.create(part)
            try:
                fill(store, model, rows, path=Path(path), **items)
                with store.transaction():
                    write_model(store, model)
                store.finish()
            finally:
                store.close()
        return cls(model, DatabaseFile(path))

    @classmethod
    def load(cls, path: str | Path, *, module: Any = None) -> Database:
        """Open a database.

        Directories of formats 1 and 2 open too, and cannot be changed; `save` writes them as a file of this format.

        Parameters
        ----------
        path : path
            The file.
        module : torch.nn.Module, default=None
            The network of the model, if it was your own; see `hbmp.load`.

        Returns
        -------
        Database
        """
        if not folder.is_folder(path):
            store = DatabaseFile(path)
            with store.transaction(writes=False):  # model and codes of one state
                return cls(read_model(store, module), store, module=module)
        parts = folder.read(Path(path), module)
        with reading(path, "a database of an earlier version", "make it again"):
            images = parts.described.get("images")
            files = None if images is None else ItemFiles.restored(parts.items, images, Path(path))
            store = DatabaseFile.create()
            fill(
                store,
                parts.model,
                Rows.of_codes(parts.index.codes(parts.items["ids"]), parts.index.n_bits),
                path=None,
                weights=parts.index.bit_weights,
                ids=parts.items["ids"],
                labels=parts.items.get("labels"),
                label_names=[str(name) for name in parts.items.get("label_names", ())],
                source=parts.described.get("source"),
                files=files,
            )
        found = parts.described["format"]
        return cls(parts.model, store, fixed=f"{path} is a database of format {found}, which can only be read")

    def save(self, path: str | Path) -> None:
        """Write a copy of the database to a file.

        A database that is there already is replaced in one transaction: a reader finds the previous one or the new one,
        and a save that is interrupted or killed leaves the previous one whole. Other files are refused. Later changes
        of this database do not reach the copy; `load` it to work with it.

        Parameters
        ----------
        path : path
            The file.
        """
        if self.path is not None and self.path == Path(os.path.abspath(path)):
            self._keep_place_of_files()
            return
        with place.new_file(path) as part:
            self._store.copy_to(part)
            copy = DatabaseFile.created(part)
            try:
                with copy.transaction():
                    write_model(copy, self.model)
                    copy.new_generation()
                    self._move_files(copy, Path(path))
                copy.finish()
            finally:
                copy.close()

    def _keep_place_of_files(self) -> None:
        """Every change is in the file already, except that its images may have been found elsewhere."""
        if self.files is not None and self._fixed is None:
            place_now = self.files.place_seen_from(Path(str(self.path)))
            if place_now != self._contents.facts["images"]:
                with self._contents.writing():
                    self._store.put("facts", {**self._contents.facts, "images": place_now})

    def _move_files(self, copy: DatabaseFile, path: Path) -> None:
        facts = copy.get("facts")
        if facts.get("images") is not None:
            files = self._files or ItemFiles(folder_of(facts["images"], self.path), ())
            copy.put("facts", {**facts, "images": files.place_seen_from(path)})

    def close(self) -> None:
        """Close the file; the database cannot be used afterwards. The end of a `with` block closes it too."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(
        self,
        X: Any,
        *,
        ids: Any = None,
        labels: ArrayLike | None = None,
        payload: Any = None,
        replace: bool = False,
        progress: bool = False,
    ) -> Self:
        """Add items, all of them or, on any error, none.

        Parameters
        ----------
        X : array-like of shape (n, n_features), Images or path
            Features or images, as the model takes them.
        ids : array-like of int or str of shape (n,), default=None
            Distinct ids that are not in the database; the next free integers if None.
        labels : array-like of shape (n,) or (n, n_labels), default=None
            Labels, if and only if the database has labels.
        payload : list of dict, mapping of columns, or table, default=None
            Payload of the items; it may have new columns.
        replace : bool, default=False
            Items that have one of these ids are removed first, with their payload. Otherwise known ids are refused.
        progress : bool, default=False
            Show a progress bar on a terminal.

        Returns
        -------
        self : Database
        """
        self._check_changeable()
        files = None
        X = items_of(self.model, X)
        if isinstance(X, Images):
            labels = X.labels if labels is None and self.labels is not None else labels
            files = self._relative(ItemFiles.of(X))
        rows = Rows.encoded(self.model, X, vectors=self.vectors, progress=progress)
        rows.compute()  # before the transaction, so that other writers do not wait for the model
        items = {"ids": ids, "labels": labels, "payload": payload, "files": files}
        fill(self._store, self.model, rows, contents=self._contents, replace=replace, **items)
        return self

    def remove(self, ids: Any = None, *, where: Where | None = None) -> int:
        """Remove items with their payload.

        Parameters
        ----------
        ids : array-like of int or str, default=None
            Ids of items; unknown ones are ignored.
        where : mapping, default=None
            Conditions as for `search`; with `ids`, both must hold. At least one of the two is needed.

        Returns
        -------
        int
            Number of removed items.
        """
        if ids is None and not where:
            raise ValueError("No items given: pass ids, or where with at least one condition.")
        self._check_changeable()
        with self._contents.writing():
            numbers = self._contents.chosen(ids, where)
            assert numbers is not None
            if len(numbers):
                self._contents.remove(numbers)
        return len(numbers)

    def update(self, ids: Any, *, X: Any = None, labels: ArrayLike | None = None, payload: Any = None) -> Self:
        """Change items, all of them or, on any error, none.

        Parameters
        ----------
        ids : array-like of int or str of shape (n,)
            Distinct ids of items in the database.
        X : array-like of shape (n, n_features), Images or path, default=None
            New features or images: new codes and vectors.
        labels : array-like of shape (n,) or (n, n_labels), default=None
            New labels.
        payload : list of dict, mapping of columns, or table, default=None
            New values of some columns; other columns do not change.

        Returns
        -------
        self : Database
        """
        from hbmp.database.building import change

        self._check_changeable()
        rows = None if X is None else Rows.encoded(self.model, X, vectors=self.vectors)
        change(self._contents, [ids] if isinstance(ids, str) else ids, rows, labels, payload)
        return self

    def _check_changeable(self) -> None:
        if self._fixed is not None:
            raise ValueError(f"{self._fixed}. Save it as a new file, db.save('new.db'), and change that one.")

    def _relative(self, files: ItemFiles | None) -> list[str] | None:
        """Names of files relative to the folder of the database's images."""
        about = self._contents.facts["images"]
        if about is None:
            return None
        if files is None:
            raise ValueError("The items of this database are image files: add a folder of images or files.")
        where = self._files_folder()
        names = [Path(os.path.relpath(files.folder / name, where)).as_posix() for name in files.names()]
        outside = next((name for name in names if name.startswith("..")), None)
        if outside is not None:
            raise ValueError(f"The images of this database lie in {where}; {outside} is outside. Move it there first.")
        return names
