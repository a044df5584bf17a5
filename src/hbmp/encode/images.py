"""Images as parts of a large encoding job: a folder of files, or a Parquet column of encoded images.

Images are decoded by the model, so memory holds only its batches. Unreadable images are searched for only after the
model has refused a batch, so sound data have no extra cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.reading import reading
from hbmp.images import Images, UnreadableImage
from hbmp.images.files import image_files
from hbmp.images.sources import FileSource, ParquetSource


def cut_folder(
    folder: Path, rows_per_part: int, files: Sequence[str] | None = None
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """(start, stop, files) of each part of a folder of images; names are relative to the folder."""
    files = image_files(folder) if files is None else files
    for start in range(0, len(files), rows_per_part):
        yield start, min(start + rows_per_part, len(files)), tuple(files[start : start + rows_per_part])


def stamp_of(path: str | Path) -> tuple[int, int]:
    """Size and modification time of a file, to detect one that was replaced or changed in place."""
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns


def read_images(part: Any, column: str, batch_size: int) -> Iterator[tuple[Images, Any]]:
    """Batches of `Images` with a table of the copied columns: `id`, or the other columns of the Parquet file."""
    import pyarrow as pa

    if part.images:
        images = Images(FileSource(part.images, part.file))
        for start in range(0, len(images), batch_size):
            batch = images[start : start + batch_size]
            yield batch, pa.table({"id": pa.array([PurePath(name).as_posix() for name in batch.names], pa.string())})
        return
    images = Images(ParquetSource([Path(part.file)], column))
    for start, carried in _carried(part, column, batch_size):
        yield images[start : start + carried.num_rows], carried


def _carried(part: Any, column: str, batch_size: int) -> Iterator[tuple[int, Any]]:
    """(first row, table without the images) of each batch; row numbers as `id` if there is no other column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    start = part.start
    with reading(part.file, "Parquet"), pq.ParquetFile(part.file, pre_buffer=False) as parquet:
        others = [name for name in parquet.schema_arrow.names if name != column]
        if not others:
            for start in range(part.start, part.stop, batch_size):
                yield start, pa.table({"id": np.arange(start, min(start + batch_size, part.stop))})
            return
        for batch in parquet.iter_batches(batch_size, row_groups=list(part.row_groups), columns=others):
            yield start, pa.Table.from_batches([batch])
            start += len(batch)


def first_codes(model: Any, images: Images, on_error: str, where: str) -> NDArray[np.int8] | None:
    """Codes of the first images; None if none can be read. A model of features raises an error."""
    try:
        return encode_images(model, images, on_error)[0]
    except UnreadableImage:
        raise
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where}, but this model takes features ({error}): compute features with the network of the training data "
            "and encode those."
        ) from error


def encode_images(
    model: Any, images: Images, on_error: str
) -> tuple[NDArray[np.int8] | None, NDArray[np.int64], list[str]]:
    """(codes, rows of their images, names of skipped images) of one batch; codes are None if no image can be read."""
    everything = np.arange(len(images))
    try:
        return model.transform(images), everything, []
    except ValueError:
        broken = images.unreadable() if on_error == "skip" else []
        if not broken:
            raise
    sound = np.setdiff1d(everything, broken)
    return model.transform(images[sound]) if len(sound) else None, sound, images[broken].names


def warn_of_skipped(skipped: list[str], n_images: int) -> None:
    """One warning for all images that were left out."""
    if skipped:
        more = f" and {len(skipped) - 3} more" if len(skipped) > 3 else ""
        warnings.warn(
            f"{len(skipped)} of {n_images} images could not be read and were left out: {', '.join(skipped[:3])}{more}.",
            UserWarning,
            stacklevel=3,
        )
