"""From data to a database on disk: what `hbmp index` does.

Features are encoded in one go. Image files go through `hbmp.encode_dataset` into a folder of parts beside the database
(`db.parts` for `db`), because a network needs hours where a projection needs seconds: a run that was stopped goes on
with the parts it finds, and they are removed once the database is written.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from hbmp.app.inputs import inputs_for
from hbmp.database import Database, check_free, encode
from hbmp.database.item_files import ItemFiles
from hbmp.datasets import Data
from hbmp.encode import Encoded, encode_dataset, read_codes
from hbmp.hasher import Hasher
from hbmp.images import Images

_PER_PART = 4096  # images that a stopped run may have to encode again


@dataclass(frozen=True)
class Indexed:
    """The database, the images left out of it, and how many items an earlier run had encoded."""

    database: Database
    skipped: tuple[str, ...] = ()
    n_resumed: int = 0


def index_data(
    model: Hasher, data: Data, name, path, *, ids=None, kind="auto", on_error="refuse", progress=False
) -> Indexed:
    """Encode the data by the model and save the database at `path`; name: what messages call the data."""
    check_free(path)
    if ids is not None and len(ids) != len(data):
        raise ValueError(f"{name} has {len(data)} items but there are {len(ids)} ids; every item needs its own.")
    inputs = inputs_for(model, data, name)
    about = {"label_names": data.label_names, "kind": kind}
    source = {"name": data.name, "rows": len(data), "checksum": data.checksum()}
    if not isinstance(inputs, Images) or inputs.folder is None:
        files = ItemFiles.of(inputs) if isinstance(inputs, Images) else None
        codes = encode(model, inputs, progress=progress)
        done = Indexed(
            Database.of_codes(model, codes, ids=ids, labels=data.labels, source=source, files=files, **about)
        )
        done.database.save(path)
        return done
    parts = Path(path).with_name(f"{Path(path).name}.parts")
    encoded = _encoded(model, inputs, parts, on_error, progress)
    names, codes = _read(parts)
    kept = np.flatnonzero(~np.isin(_posix(inputs.names), encoded.skipped)) if encoded.skipped else np.arange(len(data))
    database = Database.of_codes(
        model,
        codes,
        ids=None if ids is None else np.asarray(ids)[kept],
        labels=None if data.labels is None else data.labels[kept],
        source={**source, "rows": len(kept)},
        files=ItemFiles(str(inputs.folder), names),
        **about,
    )
    database.save(path)
    shutil.rmtree(parts)
    resumed = min(encoded.n_resumed * _PER_PART, len(database))
    return Indexed(database, encoded.skipped, resumed)


def _encoded(model: Hasher, images: Images, parts: Path, on_error: str, progress: bool) -> Encoded:
    from tqdm import tqdm

    with tqdm(total=len(images), desc="encoding", unit="image", disable=None if progress else True) as bar:
        counted = _Counted(model, bar)
        try:
            return encode_dataset(
                counted, str(images.folder), parts, rows_per_part=_PER_PART, on_error=on_error, files=images.names
            )
        except ValueError as error:
            if "was begun with another" not in str(error):
                raise
            raise ValueError(
                f"{parts} holds the codes of a run that was stopped, of another model or of other images; remove it to "
                "start afresh."
            ) from error


class _Counted:
    """A model that moves a progress bar by what it has encoded."""

    def __init__(self, model: Hasher, bar):
        self._model, self._bar = model, bar

    def transform(self, X):
        """The codes of the model."""
        codes = self._model.transform(X)
        self._bar.update(len(codes))
        return codes


def _read(parts: Path) -> tuple[list[str], np.ndarray]:
    """Names and codes of all parts, in order."""
    tables, codes = zip(*read_codes(parts), strict=True)
    return [name for table in tables for name in table["id"].to_pylist()], np.concatenate(codes)


def _posix(names: list[str]) -> list[str]:
    return [PurePath(name).as_posix() for name in names]
