"""Download of data sets from their official sources: download, verify, unpack, record.

    NAME.part    what has been downloaded so far; a later attempt resumes it
    verify       size, SHA-256 and MD5 as published, before anything reads the file
    fetch.json   beside the data: address, size and SHA-256 of each download, and the files it unpacked to

If no digest is published, the first download pins it, and a later one that differs is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hbmp._core.download import DownloadError, discard, download
from hbmp._core.files import write_into_place
from hbmp._core.unpack import is_archive, unpack
from hbmp.datasets._shared import base
from hbmp.datasets._shared.base import DataSet, Remote

_LOCK = "fetch.json"


@dataclass(frozen=True)
class Fetched:
    """Result of `fetch`.

    Parameters
    ----------
    name : str
        Name of the data set.
    folder : Path
        Its folder.
    files : tuple of str
        Files now in the folder.
    downloaded_bytes : int
        Bytes that were downloaded.
    pinned : tuple of str, default=()
        Downloads without a published digest, whose first download was trusted.
    note : str, default=""
        How to get the rest.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hbmp.datasets import Fetched
    >>> Fetched("mnist", Path("data/mnist"), (), 0).pinned
    ()
    """

    name: str
    folder: Path
    files: tuple[str, ...]
    downloaded_bytes: int
    pinned: tuple[str, ...] = ()
    note: str = ""


def fetch(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    attempts: int = 5,
    pause: float = 1.0,
) -> Fetched:
    """Download a data set into its folder of the data directory, unless it is there already.

    Parameters
    ----------
    name : str
        Public name.
    data_dir : str or Path, default=None
        Data directory.
    force : bool, default=False
        Whether to download existing files again.
    attempts : int, default=5
        How often a broken download is retried.
    pause : float, default=1.0
        Seconds before a retry.

    Returns
    -------
    Fetched
        The result of the download.

    Examples
    --------
    >>> from hbmp import datasets
    >>> try:
    ...     datasets.fetch("digits")
    ... except ValueError as error:
    ...     print(error)
    Digits (scikit-learn) cannot be downloaded. It comes with scikit-learn and needs no download.
    """
    dataset = base.get(name)
    folder = base.data_dir(data_dir) / dataset.name()
    if not dataset.files:
        raise ValueError(f"{dataset.title} cannot be downloaded. {dataset.how_to_get}")
    folder.mkdir(parents=True, exist_ok=True)
    lock = _read_lock(folder)
    downloaded = 0
    for remote in dataset.files:
        if force or not _is_there(folder, lock.get(remote.filename)):
            downloaded += _get(dataset, remote, folder, lock, force, attempts, pause)
            _write_lock(folder, lock)
    files = tuple(file for remote in dataset.files for file in lock[remote.filename]["files"])
    pinned = tuple(remote.filename for remote in dataset.files if not (remote.sha256 or remote.md5))
    return Fetched(dataset.name(), folder, files, downloaded, pinned, dataset.how_to_get)


def _get(
    dataset: DataSet, remote: Remote, folder: Path, lock: dict[str, Any], force: bool, attempts: int, pause: float
) -> int:
    """Download one file and record it in the lock; returns the bytes downloaded, 0 for a file of the user's own."""
    target = folder / remote.filename
    pinned = lock.get(remote.filename, {}).get("sha256", "")
    downloaded = 0
    if force or not target.is_file():
        part = folder / f"{remote.filename}.part"
        found = _download_verified(dataset, remote, part, pinned, attempts, pause)
        downloaded = found["bytes"]
        os.replace(part, target)
        discard(part)
    else:
        found = _measure(target)
        problem = _problem(remote, found, pinned)
        if problem:
            raise ValueError(f"{target} {problem}. Delete it, or run the same command with --force.")
    files = {remote.filename: found["bytes"]}
    if is_archive(target):
        try:
            files = unpack(target, folder, bound=dataset.unpacked_bytes)
        finally:
            if downloaded:  # an archive that the user put there stays
                target.unlink()
    lock[remote.filename] = {"url": remote.url, **found, "files": files}
    return downloaded


def _download_verified(
    dataset: DataSet, remote: Remote, part: Path, pinned: str, attempts: int, pause: float
) -> dict[str, Any]:
    """Fill the part from the first address with the right bytes; returns their size and digests."""
    _check_space(part.parent, remote)
    problems = []
    for url in (remote.url, *remote.mirrors):
        for _ in range(2):  # wrong bytes may come from an old part, so each address is tried once more from the start
            resumed = part.is_file()
            try:
                download(
                    url,
                    part,
                    size=remote.bytes,
                    bound=remote.bytes or dataset.unpacked_bytes,
                    attempts=attempts,
                    pause=pause,
                    title=remote.filename,
                )
            except DownloadError as error:
                problems.append(str(error))
                break
            found = _measure(part)
            problem = _problem(remote, found, pinned)
            if not problem:
                return found
            discard(part)
            problems.append(f"{url} {problem}; it was deleted.")
            if not resumed:
                break
    raise ValueError(f"{dataset.title} could not be fetched: {' '.join(problems)}")


def _problem(remote: Remote, found: dict[str, Any], pinned: str) -> str:
    """What is wrong with a file, or an empty string."""
    if remote.bytes and found["bytes"] != remote.bytes:
        return f"has {found['bytes']} bytes where {remote.bytes} are published"
    for kind in ("sha256", "md5"):
        published = getattr(remote, kind)
        if published and found[kind] != published:
            return f"has {kind.upper()} {found[kind]} where {published} is published"
    if pinned and not (remote.sha256 or remote.md5) and found["sha256"] != pinned:
        return f"has SHA256 {found['sha256']} where the first download had {pinned} (noted in {_LOCK})"
    return ""


def _measure(path: Path) -> dict[str, Any]:
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            sha256.update(block)
            md5.update(block)
    return {"bytes": path.stat().st_size, "sha256": sha256.hexdigest(), "md5": md5.hexdigest()}


def _check_space(folder: Path, remote: Remote) -> None:
    free = shutil.disk_usage(folder).free
    if remote.bytes > free:
        raise ValueError(f"{remote.filename} needs {remote.bytes} bytes; {folder} has {free} free. Choose --data-dir.")


def _is_there(folder: Path, entry: dict[str, Any] | None) -> bool:
    """Whether every file of an earlier fetch is still there, complete."""
    if entry is None:
        return False
    paths = {folder / name: size for name, size in entry["files"].items()}
    return all(path.is_file() and path.stat().st_size == size for path, size in paths.items())


def _read_lock(folder: Path) -> dict[str, Any]:
    path = folder / _LOCK
    if not path.is_file():
        return {}
    try:
        lock: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for entry in lock.values():
            if not isinstance(entry["sha256"], str) or any(type(size) is not int for size in entry["files"].values()):
                raise TypeError("an entry has no digest or no sizes")
        return lock
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a record of downloads ({error}); delete it and fetch again.") from error


def _write_lock(folder: Path, lock: dict[str, Any]) -> None:
    write_into_place(folder / _LOCK, json.dumps(lock, indent=1, sort_keys=True) + "\n")
