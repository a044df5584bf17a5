"""Images as one lazy sequence, from memory, files, a folder or Parquet.

`Images` decodes batch by batch, ahead of time in threads. A folder of any size passes through a network in the memory
of a few batches.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import ArrayLike

from hbmp.images.batches import decoded_batches
from hbmp.images.decode import UnreadableImage, decode_square, require_pillow
from hbmp.images.files import classes_of, holds_images, image_files, is_image_file
from hbmp.images.sources import ArraySource, FileSource, ParquetSource, image_columns, parquet_files, tables_in

__all__ = ["Images", "UnreadableImage", "as_images", "is_images"]


class Images:
    """A sequence of images that are decoded when needed.

    Slices, masks and index arrays give `Images` again.

    Parameters
    ----------
    source : ndarray of shape (n, h, w, 3) or (n, h, w), uint8
        Pixels in memory. The class methods `from_paths`, `from_folder` and `from_parquet` read other sources.
    rows : ndarray of int, optional
        Positions in the source. By default all.
    labels : ndarray, optional
        One class per image.

    Attributes
    ----------
    labels : ndarray of shape (n,) or None
        One class per image, if the folder names classes.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> images = hbmp.Images(np.zeros((5, 8, 8, 3), dtype=np.uint8))
    >>> images[1:3]
    <2 images from an array (5, 8, 8, 3)>
    >>> [(rows.tolist(), pixels.shape) for rows, pixels in images.batches(3, size=8)]
    [([0, 1, 2], (3, 8, 8, 3)), ([3, 4], (2, 8, 8, 3))]
    """

    def __init__(self, source: Any, rows: np.ndarray | None = None, labels: Any = None):
        self._source = ArraySource(source) if isinstance(source, np.ndarray) else source
        self._rows = np.arange(len(source)) if rows is None else rows
        self.labels = labels

    @classmethod
    def from_array(cls, array: ArrayLike) -> Images:
        """Images from pixels (n, h, w, 3), or (n, h, w) for grey ones, uint8. A memory-mapped array stays on disk."""
        return cls(ArraySource(array))

    @classmethod
    def from_paths(cls, paths: Sequence[str | Path]) -> Images:
        """Images from files, in the given order."""
        if isinstance(paths, (str, Path)):
            raise ValueError(f"from_paths takes a list of files, found the one path {paths}; use from_folder.")
        return cls(FileSource([os.fspath(path) for path in paths]))

    @classmethod
    def from_files(cls, names: Sequence[str], folder: str | Path, labels: Any = None) -> Images:
        """Images from files by their names relative to a folder, in the given order."""
        return cls(FileSource(names, os.fspath(folder)), labels=labels)

    @classmethod
    def from_folder(cls, folder: str | Path) -> Images:
        """All images under a folder, sorted. The first folder of each is its class, if all images are in folders."""
        folder = Path(folder)
        if not folder.is_dir():
            raise ValueError(f"There is no folder {folder} to take images from.")
        files = image_files(folder)
        if not files:
            raise ValueError(f"{folder} holds no images: no file in it ends in .jpg, .png, .webp or the like.")
        classes = classes_of(files)
        return cls(FileSource(files, str(folder)), labels=None if classes is None else np.array(classes))

    @classmethod
    def from_parquet(cls, path: str | Path, column: str = "image") -> Images:
        """Images from a Parquet column of bytes or {bytes, path} (as in Hugging Face data); `path` may be a folder."""
        return cls(ParquetSource(parquet_files(Path(path)), column))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: Any) -> Images:
        rows = _positions(key, len(self))
        return Images(self._source, self._rows[rows], None if self.labels is None else self.labels[rows])

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Images are decoded batch by batch and are not an array of features; use decode or batches.")

    def __repr__(self) -> str:
        return f"<{len(self)} images from {self._source.about()}>"

    @property
    def names(self) -> list[str]:
        """Name of each image: its path (relative to the folder), or its position in the array or Parquet file."""
        return [self._source.name(int(row)) for row in self._rows]

    @property
    def folder(self) -> str | None:
        """The folder that names are relative to, or None."""
        return getattr(self._source, "folder", None)

    @property
    def files(self) -> list[str] | None:
        """Paths of the image files, or None for images in an array or in Parquet."""
        return [self._source.path(int(row)) for row in self._rows] if isinstance(self._source, FileSource) else None

    def origin(self) -> tuple[Any, list[str]]:
        """What identifies the images without decoding them: pixels in memory or names, and the files that are read."""
        origin: tuple[Any, list[str]] = self._source.origin(self._rows)
        return origin

    @property
    def pixels(self) -> np.ndarray | None:
        """The pixels in memory, uint8 (n, h, w, 3), or None for images that must be decoded."""
        array = getattr(self._source, "array", None)
        if array is None:
            return None
        whole = len(self) == len(array) and (self._rows == np.arange(len(array))).all()
        mine = array if whole else array[self._rows]
        return mine if mine.ndim == 4 and mine.shape[3] == 3 else np.repeat(mine.reshape(*mine.shape[:3], 1), 3, axis=3)

    def read_together(self, order: np.ndarray) -> np.ndarray:
        """Rearrange a shuffled order of positions, (k,), for fast reads.

        Parquet is shuffled among the row groups that fit in memory at a time. Other orders do not change.
        """
        together = getattr(self._source, "read_together", None)
        return order if together is None else order[together(self._rows[order])]

    def decode(self, rows: Any, size: int) -> np.ndarray:
        """Decode some images.

        Parameters
        ----------
        rows : int, slice, mask or sequence of int
            Which images.
        size : int
            Side of the result. The short side is scaled to it and the centre is cropped.

        Returns
        -------
        pixels : ndarray of shape (k, size, size, 3), uint8
            RGB.
        """
        rows = _positions(rows, len(self))
        pixels = np.empty((len(rows), _whole("size", size), size, 3), dtype=np.uint8)
        require_pillow()
        for error in self._fill(pixels, rows):
            if error is not None:
                raise error
        return pixels

    def batches(
        self, batch_size: int, size: int, *, workers: int | None = None, on_error: str = "refuse"
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Decode all images in order, batch by batch.

        Parameters
        ----------
        batch_size : int
            Images per batch.
        size : int
            Side of the pixels.
        workers : int or None, default=None
            Threads that decode ahead. None is one per core, at most 8. With 0 each batch is decoded on demand.
        on_error : {"refuse", "skip"}, default="refuse"
            Raise `UnreadableImage` at the first broken or oversized image, or skip such images and name them in one
            warning at the end.

        Yields
        ------
        rows : ndarray of shape (k,)
            Positions of the images.
        pixels : ndarray of shape (k, size, size, 3), uint8
            Their pixels.
        """
        if on_error not in ("refuse", "skip"):
            raise ValueError(f"on_error must be 'refuse' or 'skip', found {on_error!r}.")
        _whole("batch_size", batch_size), _whole("size", size)
        require_pillow()
        n_workers = min(8, cpu_count()) if workers is None else _whole("workers", workers, least=0)
        return self._batches(batch_size, size, n_workers, on_error)

    def unreadable(self) -> list[int]:
        """Positions of images that cannot be decoded. Every image is tried."""
        rows = np.arange(len(self))
        pixels = np.empty((1, 8, 8, 3), dtype=np.uint8)
        return [int(row) for row in rows if self._fill(pixels, rows[row : row + 1])[0] is not None]

    def _batches(
        self, batch_size: int, size: int, workers: int, on_error: str
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        skipped: list[int] = []
        for rows, pixels, errors in decoded_batches(self._fill, len(self), batch_size, size, workers):
            bad = np.array([error is not None for error in errors])
            if not bad.any():
                yield rows, pixels
                continue
            if on_error == "refuse":
                raise next(error for error in errors if error is not None)
            skipped += rows[bad].tolist()
            if not bad.all():
                yield rows[~bad], pixels[~bad]
        if skipped:
            names = ", ".join(self[skipped[:3]].names)
            more = f" and {len(skipped) - 3} more" if len(skipped) > 3 else ""
            text = f"{len(skipped)} of {len(self)} images could not be read and were left out: {names}{more}."
            warnings.warn(text, UserWarning, stacklevel=3)

    def _fill(self, pixels: np.ndarray, rows: np.ndarray) -> list[UnreadableImage | None]:
        """Decode images into an array. Returns an error or None for each."""
        errors: list[UnreadableImage | None] = []
        for place, row in enumerate(self._rows[rows]):
            picture = self._source.picture(int(row))
            try:
                pixels[place] = decode_square(picture, pixels.shape[1])
            except UnreadableImage as error:
                name = picture if isinstance(picture, str) else self._source.name(int(row))
                errors.append(UnreadableImage(_unreadable(name, error)))
            else:
                errors.append(None)
        return errors


def is_images(X: Any) -> bool:
    """Return whether `as_images` accepts X.

    Parameters
    ----------
    X : object
        Accepted are `Images`, a uint8 array (n, h, w, c), a list of image files, a folder of images, and a Parquet file
        (or a folder of them) with encoded images in its column `image`.

    Returns
    -------
    accepted : bool

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.images import is_images
    >>> is_images(np.zeros((5, 8, 8, 3), dtype=np.uint8)), is_images(np.zeros((5, 8)))
    (True, False)
    """
    if isinstance(X, np.ndarray):
        return X.dtype == np.uint8 and X.ndim == 4
    if isinstance(X, (str, Path)):
        path = Path(X)
        return (path.is_dir() and holds_images(path)) or _is_image_table(path)
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(isinstance(item, (str, Path)) and is_image_file(item) for item in X)
    return isinstance(X, Images)


def as_images(X: Any) -> Images:
    """Convert to `Images`.

    Parameters
    ----------
    X : Images, ndarray, list of paths, or path
        Anything that `is_images` accepts.

    Returns
    -------
    images : Images

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.images import as_images
    >>> as_images(np.zeros((5, 8, 8, 3), dtype=np.uint8))
    <5 images from an array (5, 8, 8, 3)>
    """
    if isinstance(X, Images):
        return X
    if not is_images(X):
        raise ValueError(
            f"Images come as a uint8 array (n, h, w, 3), a folder, a Parquet file with a column 'image', or a list of "
            f"image files; found {_described(X)}."
        )
    if isinstance(X, np.ndarray):
        return Images.from_array(X)
    if isinstance(X, (list, tuple)):
        return Images.from_paths(X)
    return Images.from_parquet(X) if _is_image_table(Path(X)) else Images.from_folder(X)


def _is_image_table(path: Path) -> bool:
    """Whether a path is a Parquet file, or a folder of them, with encoded images in a column `image`."""
    if path.is_dir():
        return not holds_images(path) and any(_is_image_table(file) for file in tables_in(path)[:1])
    return path.suffix in (".parquet", ".pq") and path.is_file() and "image" in image_columns(path)


def _unreadable(name: str, why: UnreadableImage) -> str:
    return (
        f"{name} cannot be read as an image ({why}); repair or remove it, or pass on_error='skip' to skip such images."
    )


def _positions(key: Any, n_images: int) -> np.ndarray:
    """Positions (k,) from a slice, a mask, a number or a list of numbers."""
    if not isinstance(key, slice):
        key = np.atleast_1d(np.asarray(key))
        key = key.astype(np.intp) if key.size == 0 else key
    return np.arange(n_images)[key]


def _described(X: Any) -> str:
    if isinstance(X, np.ndarray):
        return f"an array {X.dtype} of shape {X.shape}"
    return f"{X}" if isinstance(X, (str, Path)) else f"a {type(X).__name__}"


def _whole(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, found {value!r}.")
    return int(value)
