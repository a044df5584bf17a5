"""A searchable collection in one directory: codes, ids, labels, and the model that encodes queries.

    db = hbmp.Database.build(model, X, ids=ids, labels=y)     # X: features, or images for a model of images
    distances, ids = db.search(queries, 10)                   # the model turns queries into codes
    db.paths_of(ids[0]); db.save("db"); db = hbmp.Database.load("db")

`folder` writes and reads the directory, `item_files` keeps the names of image files, `encoding` turns rows into codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

import hbmp
from hbmp.database import folder
from hbmp.database.encoding import encode
from hbmp.database.folder import check_free, is_database
from hbmp.database.item_files import ItemFiles
from hbmp.hasher import Hasher
from hbmp.images import as_images, is_images
from hbmp.index import Index
from hbmp.stores import check_ids

__all__ = ["Database", "ItemFiles", "check_free", "encode", "is_database"]


class Database:
    """Items that are searched by features or by images.

    `build` and `of_codes` create a database, `load` opens a saved one.

    Parameters
    ----------
    model : Hasher
        The fitted model that made the codes; it encodes queries.
    index : Index
        The codes under their ids.
    ids : ndarray of shape (n,)
        Ids of the items, ascending.
    labels : ndarray of shape (n,) or (n, n_labels), default=None
        One class per item, or a 0/1 row per item for multi-label data, in the order of `ids`.
    label_names : sequence of str, default=()
        Names of the label columns.
    source : mapping, default=None
        Origin of the items: a few words and numbers, saved with the database.
    files : ItemFiles, default=None
        The image file of each item.

    Attributes
    ----------
    model, index, ids, labels, label_names, source, files
        As given.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import hbmp
    >>> X, y = load_digits(return_X_y=True)
    >>> model = hbmp.get_method("itq")(16, random_state=0).fit(X)
    >>> database = hbmp.Database.build(model, X[:100], labels=y[:100])
    >>> database
    Database(100 items of 16 bits, ITQ)
    >>> distances, ids = database.search(X[:2], 3)
    >>> ids.shape
    (2, 3)
    >>> database.labels_of([0, 1])
    ['0', '1']
    """

    def __init__(
        self,
        model: Hasher,
        index: Index,
        ids: NDArray[np.int64],
        *,
        labels: NDArray[Any] | None = None,
        label_names: Sequence[str] = (),
        source: Mapping[str, Any] | None = None,
        files: ItemFiles | None = None,
    ):
        self.model, self.index, self.ids = model, index, ids
        self.labels, self.label_names = labels, tuple(label_names)
        self.source, self.files = dict(source or {}), files

    @classmethod
    def build(
        cls,
        model: Hasher,
        X: Any,
        *,
        ids: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        progress: bool = False,
        **more: Any,
    ) -> Database:
        """Encode features or images with a fitted model and index the codes.

        Parameters
        ----------
        model : Hasher
            A fitted model.
        X : array-like of shape (n, n_features), Images, path or list of str
            Features, images (an `hbmp.Images` or a folder), or texts for a model that remembers its encoder.
        ids : array-like of int of shape (n,), default=None
            Distinct ids; row numbers where it is None.
        labels : array-like of shape (n,) or (n, n_labels), default=None
            Labels of the items. Images in class folders have their own.
        progress : bool, default=False
            Show a progress bar on a terminal.
        **more
            Further arguments of `of_codes`.

        Returns
        -------
        Database

        Examples
        --------
        >>> import numpy as np, hbmp
        >>> X = np.random.default_rng(0).standard_normal((50, 8))
        >>> model = hbmp.get_method("lsh")(16, random_state=0).fit(X)
        >>> len(hbmp.Database.build(model, X, ids=range(100, 150)))
        50
        """
        if is_images(X):
            X = as_images(X)
            labels = X.labels if labels is None else labels
            more = {"files": ItemFiles.of(X), **more}
        ids = list(ids) if isinstance(ids, range) else ids
        return cls.of_codes(model, encode(model, X, progress=progress), ids=ids, labels=labels, **more)

    @classmethod
    def of_codes(
        cls,
        model: Hasher,
        codes: NDArray[np.int8],
        *,
        ids: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        label_names: Sequence[str] = (),
        kind: Literal["auto", "flat", "ivf"] = "auto",
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
        ids : array-like of int of shape (n,), default=None
            Distinct ids; row numbers where it is None.
        labels : array-like of shape (n,) or (n, n_labels), default=None
            One class per row, or 0/1 rows for multi-label data.
        label_names : sequence of str, default=()
            Names of the label columns.
        kind : {"auto", "flat", "ivf"}, default="auto"
            Kind of the index, see `hbmp.Index.build`.
        source : mapping, default=None
            Origin of the items.
        files : ItemFiles, default=None
            The image file of each row.

        Returns
        -------
        Database

        Examples
        --------
        >>> import numpy as np, hbmp
        >>> X = np.random.default_rng(0).standard_normal((50, 8))
        >>> model = hbmp.get_method("lsh")(16, random_state=0).fit(X)
        >>> database = hbmp.Database.of_codes(model, model.transform(X), kind="flat")
        >>> int(database.search(X[:1], 1)[1][0, 0])
        0
        """
        ids = np.arange(len(codes)) if ids is None else check_ids(ids, len(codes))
        kept = None if labels is None else np.asarray(labels)
        if kept is not None and len(kept) != len(codes):
            raise ValueError(f"There are {len(codes)} rows but {len(kept)} labels; every row needs its label.")
        index = Index.build(codes, ids=ids, bit_weights=model.bit_weights_, kind=kind)
        order = np.argsort(ids)
        kept = None if kept is None else kept[order]
        if files is not None and (order[1:] < order[:-1]).any():
            files = files.taken(order)
        return cls(model, index, ids[order], labels=kept, label_names=label_names, source=source, files=files)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Database({len(self)} items of {self.index.n_bits} bits, {type(self.model).__name__})"

    def search(self, X: Any, k: int = 10, *, real_valued: bool = False) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Find the nearest items to each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features), Images, path or list of str
            Queries, as the model takes them; texts for a model that remembers its encoder.
        k : int, default=10
            Number of items per query.
        real_valued : bool, default=False
            Compare the scores of a query before the sign: finer distances.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Weighted Hamming distances, ascending.
        ids : ndarray of shape (n_queries, k)
            Ids of the items; -1 where there are fewer than `k`.
        """
        queries = self.model.project(X) if real_valued else self.model.transform(X)
        return self.index.search(queries, k)

    def paths_of(self, ids: ArrayLike) -> list[str | None]:
        """Paths of the image files of items.

        Parameters
        ----------
        ids : array-like of int
            Ids of items.

        Returns
        -------
        list of str or None
            None for an unknown id, and for an item without a file.
        """
        places, found = self._places(ids)
        if self.files is None:
            return [None] * len(places)
        return [self.files.path(int(place)) if here else None for place, here in zip(places, found, strict=True)]

    def labels_of(self, ids: ArrayLike) -> list[str | None]:
        """Labels of items as text; several labels are joined, ``sea;sand``.

        Parameters
        ----------
        ids : array-like of int
            Ids of items.

        Returns
        -------
        list of str or None
            None for an unknown id, and for an item without labels.
        """
        places, found = self._places(ids)
        if self.labels is None:
            return [None] * len(places)
        return [self._label(int(place)) if here else None for place, here in zip(places, found, strict=True)]

    def _places(self, ids: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Position of each id, and whether the id exists."""
        wanted = np.asarray(ids).reshape(-1)
        if not len(self):
            return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
        places = np.minimum(np.searchsorted(self.ids, wanted), len(self) - 1)
        return places, self.ids[places] == wanted

    def _label(self, place: int) -> str:
        assert self.labels is not None
        value = self.labels[place]
        if self.labels.ndim == 1:
            return str(value)
        names = self.label_names or [str(column) for column in range(len(value))]
        return ";".join(names[column] for column in np.flatnonzero(value))

    def codes(self) -> NDArray[np.int8]:
        """All codes, in the order of `ids`.

        Returns
        -------
        ndarray of shape (n, n_bits)
            Signs, -1 and +1.
        """
        return self.index.codes(self.ids)

    def save(self, path: str | Path) -> None:
        """Write the database as a directory.

        A database that is there already is replaced by one atomic switch: a reader finds the previous one or the new
        one, and a save that is interrupted or killed leaves the previous one whole. Other folders are refused.

        Parameters
        ----------
        path : path
            The directory.
        """
        path = Path(path)
        items = {"ids": np.asarray(self.ids)}
        if self.labels is not None:
            items["labels"] = self.labels.astype(str) if self.labels.dtype == object else self.labels
            items["label_names"] = np.array(self.label_names, dtype=str)
        described: dict[str, Any] = {"hbmp": hbmp.__version__, "items": len(self), "bits": self.index.n_bits}
        if self.files is not None:
            items |= self.files.arrays()
            described["images"] = self.files.place_seen_from(path)
        folder.write(path, self.model, self.index, items, {**described, "source": self.source})

    @classmethod
    def load(cls, path: str | Path, *, module: Any = None) -> Database:
        """Open a database that `save` wrote; the codes are memory-mapped.

        Parameters
        ----------
        path : path
            The directory.
        module : torch.nn.Module, default=None
            The network of the model, where it was your own; see `hbmp.load`.

        Returns
        -------
        Database
        """
        path = Path(path)
        parts = folder.read(path, module)
        items, described = parts.items, parts.described
        return cls(
            parts.model,
            parts.index,
            items["ids"],
            labels=items.get("labels"),
            label_names=[str(name) for name in items.get("label_names", ())],
            source=described.get("source"),
            files=ItemFiles.restored(items, described["images"], path) if "images" in described else None,
        )
