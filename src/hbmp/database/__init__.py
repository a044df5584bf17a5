"""A searchable collection in one directory: the codes, their ids and labels, and the model that encodes queries.

db = hbmp.Database.build(model, X, ids=ids, labels=y)     # X: features, or images for a model of images
distances, ids = db.search(queries, 10)                   # the model turns queries into codes
db.paths_of(ids[0]); db.save("db"); db = hbmp.Database.load("db")

database.json   format, sizes, where the items came from      index.hbmp   the codes, see `hbmp.Index`
items.npz       ids; labels and names of image files, if any  model/       the model, see `hbmp.load`
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

import hbmp
from hbmp._core.arrays import read_npz
from hbmp.database.item_files import ItemFiles
from hbmp.hasher import Hasher, load
from hbmp.images import Images, as_images, is_images
from hbmp.index import Index
from hbmp.stores import check_ids

FORMAT = 1
_DESCRIPTION = "database.json"
_ROWS, _IMAGES = 16_384, 1_024  # encoded at a time


class Database:
    """Items that can be asked for by features, or by images.

    ids (n,) rise · labels (n,) classes, (n, c) 0/1 or None, in their order · label_names: of the c columns ·
    source: a few words and numbers about where the items came from, kept in the description ·
    files: the image file of each item, or None
    """

    def __init__(
        self,
        model: Hasher,
        index: Index,
        ids,
        *,
        labels=None,
        label_names=(),
        source=None,
        files: ItemFiles | None = None,
    ):
        self.model, self.index, self.ids = model, index, ids
        self.labels, self.label_names = labels, tuple(label_names)
        self.source, self.files = dict(source or {}), files

    @classmethod
    def build(cls, model: Hasher, X, *, ids=None, labels=None, progress=False, **more) -> Database:
        """Encode features (n, d) or images (`hbmp.Images`, a folder) by a fitted model and index the codes.

        ids, labels, more : as for `of_codes`; images from folders bring their classes as labels
        """
        if is_images(X):
            X = as_images(X)
            labels = X.labels if labels is None else labels
            more = {"files": ItemFiles.of(X), **more}
        return cls.of_codes(model, encode(model, X, progress=progress), ids=ids, labels=labels, **more)

    @classmethod
    def of_codes(
        cls, model: Hasher, codes, *, ids=None, labels=None, label_names=(), kind="auto", source=None, files=None
    ) -> Database:
        """A database of codes (n, n_bits) that the model has given before; see `hbmp.Index.build` for the kinds.

        ids : distinct whole numbers, or the row numbers if None · files : the image file of each row
        """
        ids = np.arange(len(codes)) if ids is None else check_ids(ids, len(codes))
        if labels is not None and len(labels) != len(codes):
            raise ValueError(f"There are {len(codes)} rows but {len(labels)} labels; every row needs its label.")
        index = Index.build(codes, ids=ids, bit_weights=model.bit_weights_, kind=kind)
        order = np.argsort(ids)
        kept = None if labels is None else np.asarray(labels)[order]
        if files is not None and (order[1:] < order[:-1]).any():
            files = files.taken(order)
        return cls(model, index, ids[order], labels=kept, label_names=label_names, source=source, files=files)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Database({len(self)} items of {self.index.n_bits} bits, {type(self.model).__name__})"

    def search(self, X, k: int = 10, *, real_valued: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Distances and ids (n, k) of the nearest items to each row or image; real_valued: by scores, not signs."""
        queries = self.model.project(X) if real_valued else self.model.transform(X)
        return self.index.search(queries, k)

    def paths_of(self, ids) -> list[str | None]:
        """Where the image files of items are; None for an id that is not here, or has none."""
        places, found = self._places(ids)
        if self.files is None:
            return [None] * len(places)
        return [self.files.path(int(place)) if here else None for place, here in zip(places, found, strict=True)]

    def labels_of(self, ids) -> list[str | None]:
        """The labels of items as text, `sea;sand` where there are several; None for an id that is not here."""
        places, found = self._places(ids)
        if self.labels is None:
            return [None] * len(places)
        return [self._label(place) if here else None for place, here in zip(places, found, strict=True)]

    def _places(self, ids) -> tuple[np.ndarray, np.ndarray]:
        """Where each id stands, and whether it is there at all."""
        wanted = np.asarray(ids).reshape(-1)
        if not len(self):
            return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
        places = np.minimum(np.searchsorted(self.ids, wanted), len(self) - 1)
        return places, self.ids[places] == wanted

    def _label(self, place: int) -> str:
        value = self.labels[place]
        if self.labels.ndim == 1:
            return str(value)
        names = self.label_names or [str(column) for column in range(len(value))]
        return ";".join(names[column] for column in np.flatnonzero(value))

    def codes(self) -> np.ndarray:
        """The codes in the order of `ids`, int8 (n, n_bits)."""
        return self.index.codes(self.ids)

    def save(self, path) -> None:
        """Write the directory, replacing an earlier database of that name and nothing else."""
        path = Path(path)
        check_free(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        try:
            self._write(beside / "new", path)
            if path.exists():
                path.rename(beside / "old")
            (beside / "new").rename(path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _write(self, folder: Path, path: Path) -> None:
        folder.mkdir()
        self.model.save(folder / "model")
        self.index.save(folder / "index.hbmp")
        items = {"ids": self.ids}
        if self.labels is not None:
            items["labels"] = self.labels.astype(str) if self.labels.dtype == object else self.labels
            items["label_names"] = np.array(self.label_names, dtype=str)
        described = {"format": FORMAT, "hbmp": hbmp.__version__, "items": len(self), "bits": self.index.n_bits}
        if self.files is not None:
            items |= self.files.arrays()
            described["images"] = self.files.place_seen_from(path)
        np.savez(folder / "items.npz", allow_pickle=False, **items)
        text = json.dumps({**described, "source": self.source}, indent=1, ensure_ascii=False)
        (folder / _DESCRIPTION).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path, *, module=None) -> Database:
        """Read a directory written by `save`, the codes memory-mapped; module: as for `hbmp.load`."""
        path = Path(path)
        if not (path / _DESCRIPTION).is_file():
            raise ValueError(f"{path} is not a database: it has no {_DESCRIPTION}. Make one with `hbmp index`.")
        try:
            described = json.loads((path / _DESCRIPTION).read_text(encoding="utf-8"))
            found = int(described["format"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}/{_DESCRIPTION} cannot be read ({error}). Make the database again.") from error
        if found > FORMAT:
            raise ValueError(f"{path} was saved in format {found}; this version reads up to {FORMAT}. Upgrade hbmp.")
        items = read_npz(path / "items.npz")
        index = Index.load(path / "index.hbmp")
        if len(index) != len(items["ids"]):
            raise ValueError(f"{path} holds {len(index)} codes but {len(items['ids'])} ids. Make the database again.")
        return cls(
            load(path / "model", module=module),
            index,
            items["ids"],
            labels=items.get("labels"),
            label_names=[str(name) for name in items.get("label_names", ())],
            source=described.get("source"),
            files=ItemFiles.restored(items, described["images"], path) if "images" in described else None,
        )


def check_free(path) -> None:
    """Say in a sentence that a database cannot be written there, before work is done for it."""
    path = Path(path)
    if path.exists() and not (path / _DESCRIPTION).is_file():
        raise ValueError(f"{path} is there already and is no database of hbmp; choose another name.")


def encode(model: Hasher, X, *, progress: bool = False, out: np.ndarray | None = None) -> np.ndarray:
    """Codes int8 (n, n_bits) of features (n, d) or images, a block of rows at a time; packed where `out` is uint8."""
    from tqdm import tqdm

    images = is_images(X)
    X = as_images(X) if images else X
    if not images and np.ndim(X) != 2:
        raise ValueError(f"Features must have shape (n, d), found {np.shape(X)}.")
    rows = _IMAGES if images else _ROWS
    codes = np.empty((len(X), model.n_bits), dtype=np.int8) if out is None else out
    unit = "image" if images else "row"
    with tqdm(total=len(X), desc="encoding", unit=unit, disable=None if progress else True) as bar:
        for start in range(0, len(X), rows):
            part = X[start : start + rows]
            block = model.transform(part if isinstance(part, Images) else np.asarray(part))
            codes[start : start + rows] = hbmp.hamming.pack(block) if codes.dtype == np.uint8 else block
            bar.update(len(block))
    return codes
