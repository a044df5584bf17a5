"""The parts of a large encoding job: cut, read, encoded and written.

A part is a range of rows of one source file, or of the images of a folder. It is encoded batch by batch, so memory
holds one batch. It is written under a temporary name and renamed into place, so an existing part is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.arrays import read_npy
from hbmp._core.files import beside
from hbmp._core.parquet_files import open_parquet
from hbmp._core.reading import first_line, reading
from hbmp.encode.images import cut_folder, encode_images, first_codes, read_images
from hbmp.images.files import holds_images
from hbmp.images.sources import image_columns, tables_in

_ROWS_PER_PART = {"features": 262_144, "images": 16_384}
_BATCH_SIZE = {"features": 8192, "images": 1024}
_SKIPPED = b"hbmp.skipped"


@dataclass(frozen=True)
class Part:
    """Rows `start` to `stop` of a file, whole row groups in Parquet; or these `images` of a folder."""

    number: int
    file: str
    start: int
    stop: int
    row_groups: tuple[int, ...] = ()
    kind: str = "features"
    images: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """File name of the encoded part."""
        return f"part-{self.number:06d}.parquet"


@dataclass(frozen=True)
class Job:
    """Settings of all parts."""

    column: str
    destination: str
    batch_size: int | None
    n_bits: int
    on_error: str = "refuse"

    def rows_at_once(self, part: Part) -> int:
        """Rows of one batch: as set, or the default of the kind."""
        return self.batch_size or _BATCH_SIZE[part.kind]


def plan_parts(source: Path, column: str, rows_per_part: int | None, files: Sequence[str] | None = None) -> list[Part]:
    """Cut a .npy file, Parquet files, or (some) images of a folder into parts of about `rows_per_part` rows."""
    parts: list[Part] = []
    for file in [source] if files is not None else source_files(source):
        pieces = _cut(file, column, rows_per_part, files)
        parts += [Part(len(parts) + i, str(file), *piece) for i, piece in enumerate(pieces)]
    if not parts:
        raise ValueError(f"{source} holds no rows to encode.")
    return parts


def source_files(source: Path) -> list[Path]:
    """The files to read, in order, or the folder itself if it holds images."""
    if not source.exists():
        raise ValueError(
            f"There is nothing at {source}; pass a .npy file, a .parquet file, or a folder of Parquet files or images."
        )
    if source.is_file():
        if source.suffix not in (".npy", ".parquet"):
            raise ValueError(f"{source} is neither .npy nor .parquet; only these files can be encoded.")
        return [source]
    files = tables_in(source)
    if not files:
        if holds_images(source):
            return [source]
        raise ValueError(f"{source} is a folder without .parquet files or images.")
    return files


def _cut(file: Path, column: str, rows_per_part: int | None, files: Sequence[str] | None) -> list[tuple[Any, ...]]:
    """The fields of each part after its number and file."""
    if file.is_dir():
        return [
            (start, stop, (), "images", names)
            for start, stop, names in cut_folder(file, rows_per_part or _ROWS_PER_PART["images"], files)
        ]
    if file.suffix == ".npy":
        return _cut_npy(file, rows_per_part or _ROWS_PER_PART["features"])
    kind = "images" if column in image_columns(file) else "features"
    return [(*piece, kind) for piece in _cut_parquet(file, column, kind, rows_per_part or _ROWS_PER_PART[kind])]


def _cut_npy(file: Path, rows_per_part: int) -> list[tuple[Any, ...]]:
    shape = read_npy(file).shape
    if len(shape) != 2:
        raise ValueError(f"{file} must hold an array of shape (n, n_features), found {shape}.")
    return [(start, min(start + rows_per_part, shape[0])) for start in range(0, shape[0], rows_per_part)]


def _cut_parquet(file: Path, column: str, kind: str, rows_per_part: int) -> list[tuple[Any, ...]]:
    with open_parquet(file) as parquet:
        _check_columns(file, parquet.schema_arrow, column, kind)
        sizes = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
    pieces: list[tuple[Any, ...]] = []
    start = stop = 0
    groups: list[int] = []
    for group, size in enumerate(sizes):
        groups.append(group)
        stop += size
        if stop - start >= rows_per_part or (group == len(sizes) - 1 and stop > start):
            pieces.append((start, stop, tuple(groups)))
            start, groups = stop, []
    return pieces


def _check_columns(file: Path, schema: Any, column: str, kind: str) -> None:
    import pyarrow as pa

    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    lists = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
    if kind == "features" and column not in lists:
        images = image_columns(file)
        raise ValueError(
            f"{file} has no column {column!r} of feature lists; its list columns are: {', '.join(lists) or 'none'}"
            + (f", and columns that may hold images: {', '.join(images)}." if images else ".")
        )
    if "code" in schema.names:
        raise ValueError(f"{file} has a column 'code' already; rename it, as the codes need this name.")


def encode_part(model: Any, part: Part, job: Job) -> int:
    """Encode one part and rename its file into place; return its number of rows."""
    # Each writer has a temporary file of its own, as a worker that was presumed dead may still write the same part.
    path = Path(job.destination) / part.name
    with beside(path) as beside_it:
        try:
            rows = _write_part(model, part, job, beside_it)
            with open(beside_it, "rb+") as file:
                os.fsync(file.fileno())
        except OSError as error:
            if error.filename is not None:
                raise
            raise OSError(f"{path} cannot be written ({first_line(error)}).") from error
    return rows


def _write_part(model: Any, part: Part, job: Job, path: Path) -> int:
    import pyarrow.parquet as pq

    rows, writer = 0, None
    skipped: list[str] = []
    try:
        for inputs, carried in _read(part, job):
            codes, encoded, left_out = _transform(model, inputs, part, rows + len(skipped), job)
            coded = _with_codes(carried.take(encoded) if left_out else carried, codes, job.n_bits)
            writer = writer or pq.ParquetWriter(path, coded.schema, write_page_checksum=True)
            writer.write_table(coded)
            rows, skipped = rows + coded.num_rows, skipped + left_out
        found = rows + len(skipped)
        if writer is None or found != part.stop - part.start:
            raise ValueError(f"{part.file} changed while it was encoded: {part.stop - part.start} rows became {found}.")
        if skipped:
            writer.add_key_value_metadata({_SKIPPED.decode(): json.dumps(skipped)})
    finally:
        if writer is not None:
            writer.close()
    return rows


def is_whole(part: Part, job: Job) -> bool:
    """Whether the file of a part is there with all its rows. Its footer is read, not its pages."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(job.destination) / part.name
    try:
        return int(pq.read_metadata(path).num_rows) + len(skipped_in(path)) == part.stop - part.start
    except (OSError, ValueError, pa.ArrowException):
        return False


def encode_head(model: Any, parts: list[Part], job: Job, n_rows: int) -> NDArray[np.int8]:
    """Codes of the first rows, which identify the model."""
    for part in parts:
        for inputs, _ in _read(part, job):
            if part.kind == "features":
                signs: NDArray[np.int8] = model.transform(inputs[:n_rows])
                return signs
            where = f"{part.file} " + ("is a folder of images" if part.images else f"holds images in {job.column!r}")
            codes = first_codes(model, inputs[:n_rows], job.on_error, where)
            if codes is not None:
                return codes
    raise ValueError(f"None of the images of {parts[0].file} can be read.")


def skipped_in(file: Path) -> list[str]:
    """The names of skipped images of an encoded part."""
    import pyarrow.parquet as pq

    names: list[str] = json.loads((pq.read_metadata(file).metadata or {}).get(_SKIPPED, b"[]"))
    return names


def _read(part: Part, job: Job) -> Iterator[tuple[Any, Any]]:
    """Batches of features (rows, n_features) or images, each with a table of the copied columns."""
    import pyarrow as pa

    batch_size = job.rows_at_once(part)
    if part.kind == "images":
        yield from read_images(part, job.column, batch_size)
        return
    if not part.row_groups:
        array = read_npy(Path(part.file))
        for start in range(part.start, part.stop, batch_size):
            stop = min(start + batch_size, part.stop)
            yield np.array(array[start:stop]), pa.table({"id": np.arange(start, stop)})
        return
    first = part.start
    for batch in _batches(part, batch_size):
        table = pa.Table.from_batches([batch])
        where = f"{part.file}, rows {first} to {first + len(batch) - 1}"
        yield _features(batch.column(job.column), job.column, where), table.drop_columns([job.column])
        first += len(batch)


def _batches(part: Part, batch_size: int) -> Iterator[Any]:
    """The record batches of a part of a Parquet file."""
    import pyarrow.parquet as pq

    # Without pre-buffering a row group is decoded batch by batch instead of loaded whole.
    with (
        reading(part.file, "Parquet"),
        pq.ParquetFile(part.file, pre_buffer=False, buffer_size=1 << 20) as parquet,
    ):
        for batch in parquet.iter_batches(batch_size, row_groups=list(part.row_groups)):
            batch.validate(full=True)  # damaged pages give texts that are not UTF-8
            yield batch


def _features(lists: Any, column: str, where: str) -> NDArray[Any]:
    """A column of lists of equal length as an array (rows, n_features)."""
    import pyarrow as pa

    values = lists.flatten()
    if lists.null_count or values.null_count:
        raise ValueError(f"{where}: column {column!r} has missing values; fill them or remove those rows.")
    if pa.types.is_fixed_size_list(lists.type):
        width = lists.type.list_size
    else:
        lengths = np.diff(lists.offsets.to_numpy())
        width = int(lengths[0])
        if (lengths != width).any():
            raise ValueError(f"{where}: column {column!r} has lists of {lengths.min()} to {lengths.max()} values.")
    features: NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(len(lists), width)
    return features


def _transform(
    model: Any, inputs: Any, part: Part, rows: int, job: Job
) -> tuple[NDArray[np.int8], NDArray[np.int64], list[str]]:
    """(codes, their rows, names of skipped images) of one batch."""
    try:
        if part.kind == "features":
            return model.transform(inputs), np.arange(len(inputs)), []
        codes, encoded, left_out = encode_images(model, inputs, job.on_error)
    except ValueError as error:
        first = part.start + rows
        raise ValueError(f"{part.file}, rows {first} to {first + len(inputs) - 1}: {error}") from error
    return np.empty((0, job.n_bits), np.int8) if codes is None else codes, encoded, left_out


def _with_codes(carried: Any, codes: NDArray[np.int8], n_bits: int) -> Any:
    """The copied columns and `code`, packed little-endian into ceil(n_bits / 8) bytes per row."""
    import pyarrow as pa

    packed = hamming.pack(codes)
    column = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(packed.shape[1]), len(packed), [None, pa.py_buffer(packed.tobytes())]
    )
    table = carried.append_column("code", column)
    return table.replace_schema_metadata(
        {**(carried.schema.metadata or {}), "hbmp.n_bits": str(n_bits), "hbmp.bit_order": "little"}
    )
