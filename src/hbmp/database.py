"""A searchable collection in one directory: the codes, their ids and labels, and the model that encodes queries.

db = hbmp.Database.build(model, X, ids=ids, labels=y)
distances, ids = db.search(queries, 10)     # queries are features; the model turns them into codes
db.save("db"); db = hbmp.Database.load("db")

database.json   format, sizes, where the items came from      index.hbmp   the codes, see `hbmp.Index`
items.npz       ids and, where there are any, labels          model/       the model, see `hbmp.load`
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

import hbmp
from hbmp.datasets._arrays import read_npz
from hbmp.hasher import Hasher, load
from hbmp.index import Index
from hbmp.stores._base import check_ids

FORMAT = 1
_DESCRIPTION = "database.json"
_ROWS = 16_384  # encoded at a time


class Database:
    """Items that can be asked for by features.

    ids (n,) rise · labels (n,) classes, (n, c) 0/1 or None, in their order · label_names: of the c columns ·
    source: a few words and numbers about where the items came from, kept in the description
    """

    def __init__(self, model: Hasher, index: Index, ids, *, labels=None, label_names=(), source=None):
        self.model, self.index, self.ids = model, index, ids
        self.labels, self.label_names = labels, tuple(label_names)
        self.source = dict(source or {})

    @classmethod
    def build(
        cls, model: Hasher, features, *, ids=None, labels=None, label_names=(), kind="auto", source=None, progress=False
    ) -> Database:
        """Encode features (n, d) by a fitted model and index the codes; see `hbmp.Index.build` for the kinds.

        ids : distinct whole numbers, or the row numbers if None
        """
        codes = encode(model, features, progress=progress)
        ids = np.arange(len(codes)) if ids is None else check_ids(ids, len(codes))
        if labels is not None and len(labels) != len(codes):
            raise ValueError(f"There are {len(codes)} rows but {len(labels)} labels; every row needs its label.")
        index = Index.build(codes, ids=ids, bit_weights=model.bit_weights_, kind=kind)
        order = np.argsort(ids)
        kept = None if labels is None else np.asarray(labels)[order]
        return cls(model, index, ids[order], labels=kept, label_names=label_names, source=source)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Database({len(self)} items of {self.index.n_bits} bits, {type(self.model).__name__})"

    def search(self, features, k: int = 10, *, real_valued: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Distances and ids (n, k) of the nearest items to each row of features; real_valued: by scores, not signs."""
        queries = self.model.project(features) if real_valued else self.model.transform(features)
        return self.index.search(queries, k)

    def labels_of(self, ids) -> list[str | None]:
        """The labels of items as text, `sea;sand` where there are several; None for an id that is not here."""
        wanted = np.asarray(ids).reshape(-1)
        if self.labels is None or not len(self):
            return [None] * len(wanted)
        places = np.minimum(np.searchsorted(self.ids, wanted), len(self) - 1)
        found = self.ids[places] == wanted
        return [self._label(place) if here else None for place, here in zip(places, found, strict=True)]

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
        if path.exists() and not (path / _DESCRIPTION).is_file():
            raise ValueError(f"{path} is there already and is no database of hbmp; choose another name.")
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        try:
            self._write(beside / "new")
            if path.exists():
                path.rename(beside / "old")
            (beside / "new").rename(path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _write(self, folder: Path) -> None:
        folder.mkdir()
        self.model.save(folder / "model")
        self.index.save(folder / "index.hbmp")
        items = {"ids": self.ids}
        if self.labels is not None:
            items["labels"] = self.labels.astype(str) if self.labels.dtype == object else self.labels
            items["label_names"] = np.array(self.label_names, dtype=str)
        np.savez(folder / "items.npz", allow_pickle=False, **items)
        described = {"format": FORMAT, "hbmp": hbmp.__version__, "items": len(self), "bits": self.index.n_bits}
        text = json.dumps({**described, "source": self.source}, indent=1, ensure_ascii=False)
        (folder / _DESCRIPTION).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path) -> Database:
        """Read a directory written by `save`; the codes are memory-mapped."""
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
            load(path / "model"),
            index,
            items["ids"],
            labels=items.get("labels"),
            label_names=[str(name) for name in items.get("label_names", ())],
            source=described.get("source"),
        )


def encode(model: Hasher, features, *, progress: bool = False, out: np.ndarray | None = None) -> np.ndarray:
    """Codes int8 (n, n_bits) of features (n, d), some thousand rows at a time; packed where `out` is uint8."""
    from tqdm import tqdm

    if np.ndim(features) != 2:
        raise ValueError(f"Features must have shape (n, d), found {np.shape(features)}.")
    codes = np.empty((len(features), model.n_bits), dtype=np.int8) if out is None else out
    with tqdm(total=len(features), desc="encoding", unit="row", disable=None if progress else True) as bar:
        for start in range(0, len(features), _ROWS):
            block = model.transform(np.asarray(features[start : start + _ROWS]))
            codes[start : start + _ROWS] = hbmp.hamming.pack(block) if codes.dtype == np.uint8 else block
            bar.update(len(block))
    return codes
