"""The place of a database on disk: whether it is free, and how a new file gets there.

A file is written under a hidden name beside the place and renamed into it once it is whole, so that a build that is
killed leaves nothing. A database that is there already gets the new content in one transaction instead: its readers
keep their connection and see the previous content or the new one. A lock admits one builder at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hbmp.database.database_file import DatabaseFile, header_of
from hbmp.database.folder import is_folder

_BESIDE = ("-wal", "-shm", "-journal")


def is_database(path: str | Path) -> bool:
    """Whether a path is a database: a file, or a directory of format 1 or 2.

    Parameters
    ----------
    path : path
        Any path.

    Returns
    -------
    bool

    Examples
    --------
    >>> from hbmp.database import is_database
    >>> is_database("no-such-file")
    False
    """
    return header_of(path) is not None or is_folder(path)


def check_free(path: str | Path) -> None:
    """Refuse a place that holds anything other than a database, or cannot be written.

    Parameters
    ----------
    path : path
        The place of a future database.

    Examples
    --------
    >>> from hbmp.database import check_free
    >>> check_free("no-such-file")
    """
    path = Path(path)
    if is_folder(path):
        raise ValueError(
            f"{path} is a database folder of an earlier version, which is not replaced; remove it, or choose another "
            "name."
        )
    if path.exists() and header_of(path) is None:
        raise ValueError(f"{path} exists and is not a database; choose another name.")
    absolute = path.absolute()
    place = next(place for place in absolute.parents if place.exists())
    if not place.is_dir():
        raise ValueError(f"{path} cannot be written: {place} is a file. Choose another name.")
    if not os.access(absolute if path.exists() else place, os.W_OK):
        raise ValueError(f"{path} cannot be written: {place} is read-only. Choose another place.")


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A path for a file that comes to `path` when the block ends, and goes when it fails."""
    from filelock import FileLock

    path = Path(os.path.abspath(path))
    check_free(path)
    made = _make_folders(path.parent)
    part, lock = path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.lock")
    try:
        with FileLock(lock):
            _remove(part)  # of a build that was killed
            try:
                yield part
                _sync(part)
                if path.exists():
                    _replace(path, part)
                else:
                    for ending in _BESIDE:  # of a database that was deleted without them
                        Path(f"{path}{ending}").unlink(missing_ok=True)
                    os.replace(part, path)
                    _sync(path.parent)
            finally:
                _remove(part)
                lock.unlink(missing_ok=True)
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()  # succeeds only where nothing was written


def _replace(path: Path, part: Path) -> None:
    source = DatabaseFile(part)
    try:
        source.copy_to(path)
    finally:
        source.close()


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and its parents; gives those that are new, innermost first."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _remove(part: Path) -> None:
    for ending in ("", *_BESIDE):
        Path(f"{part}{ending}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with suppress(PermissionError):  # not every system can open a folder
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
