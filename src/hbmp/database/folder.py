"""A database directory: `database.json` names its parts and is renamed into place last, as one atomic switch.

    database.json   format, sizes, origin of the items, names of the parts, digests
    index.hbmp      the codes, see `hbmp.Index`          index-….hbmp   those of a later save
    items.npz       ids, labels, names of image files    items-….npz
    model/          the model, see `hbmp.load`           model-…/

A later save writes new parts beside the present ones. A reader that holds the previous `database.json` finds its parts
until the new one is in place, and starts again if they are gone. A killed save leaves the previous database whole; the
next save removes what it left. A lock file admits one writer at a time and marks a first save that did not end.
Format 1 had fixed names and no digests; it still loads.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.arrays import read_npz
from hbmp._core.files import write_into_place
from hbmp._core.model_directory import digest
from hbmp.hasher import Hasher, load
from hbmp.index import Index

FORMAT = 2
DESCRIPTION = "database.json"
_LOCK = ".saving.lock"
_PLAIN = {"index": "index.hbmp", "items": "items.npz", "model": "model"}  # the names of a first save, and of format 1
_TOKEN = "(-[0-9a-f]{32})?"
_NAMES = {"index": rf"index{_TOKEN}\.hbmp", "items": rf"items{_TOKEN}\.npz", "model": rf"model{_TOKEN}"}
_FILES = "|".join([*_NAMES.values(), re.escape(DESCRIPTION)])
_OURS = re.compile(rf"{_FILES}|\.({_FILES})\..*\.part|{re.escape(_LOCK)}")
_MOST_RETRIES = 100  # readings of a database that other processes replace again and again


@dataclass(frozen=True)
class Parts:
    """What a database directory holds."""

    model: Hasher
    index: Index
    items: dict[str, np.ndarray]
    described: dict[str, Any]


def is_database(path: str | Path) -> bool:
    """Tell whether a path is a database directory.

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
    >>> is_database("no-such-folder")
    False
    """
    return (Path(path) / DESCRIPTION).is_file()


def check_free(path: str | Path) -> None:
    """Refuse a place that holds anything other than a database; an empty folder is free.

    Parameters
    ----------
    path : path
        The place of a future database.

    Examples
    --------
    >>> from hbmp.database import check_free
    >>> check_free("no-such-folder")
    """
    path = Path(path)
    if not path.exists() or is_database(path):
        return
    found = [item.name for item in path.iterdir()] if path.is_dir() else [path.name]
    unfinished = _LOCK in found and all(_OURS.fullmatch(name) for name in found)
    if found and not unfinished:
        raise ValueError(f"{path} exists and is not a database; choose another name.")


def write(
    path: Path, model: Hasher, index: Index, items: Mapping[str, np.ndarray], described: Mapping[str, Any]
) -> None:
    """Write a database, or replace the one that is there; on any failure the previous one stays."""
    from filelock import FileLock

    check_free(path)
    new = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    lock = path / _LOCK
    try:
        with FileLock(lock):
            names = _new_names(path)
            try:
                _write_parts(path, names, model, index, items, described)
            except BaseException:
                if _used(path) != names:  # an interrupt may arrive after the switch
                    _remove(path, names.values())
                raise
            finally:
                if is_database(path):
                    _remove(path, _leftovers(path))
                lock.unlink(missing_ok=True)  # before its release: a waiting writer makes a new one
    finally:
        if new:
            with suppress(OSError):
                path.rmdir()  # succeeds only where nothing was written


def _write_parts(
    path: Path,
    names: dict[str, str],
    model: Hasher,
    index: Index,
    items: Mapping[str, np.ndarray],
    described: Mapping[str, Any],
) -> None:
    model.save(path / names["model"])
    index.save(path / names["index"])
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **items)
    write_into_place(path / names["items"], stream.getvalue())
    content = {**described, "format": FORMAT, "parts": names}
    content["items_sha256"] = hashlib.sha256(stream.getvalue()).hexdigest()
    content["sha256"] = digest(content)
    write_into_place(path / DESCRIPTION, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _new_names(path: Path) -> dict[str, str]:
    """Names of parts that are still free."""
    if not any((path / name).exists() for name in _PLAIN.values()):
        return dict(_PLAIN)
    token = uuid.uuid4().hex
    return {part: name.replace(part, f"{part}-{token}", 1) for part, name in _PLAIN.items()}


def _used(path: Path) -> dict[str, str] | None:
    """Names of the parts of the database that is in place."""
    try:
        return _part_names(json.loads((path / DESCRIPTION).read_bytes()))
    except (OSError, ValueError, AttributeError, RecursionError):
        return None


def _leftovers(path: Path) -> list[str]:
    """Names of parts that the database in place does not use."""
    used = _used(path)
    if used is None:
        return []
    kept = {DESCRIPTION, _LOCK, *used.values()}
    return [item.name for item in path.iterdir() if item.name not in kept and _OURS.fullmatch(item.name)]


def _remove(path: Path, names: Any) -> None:
    for name in names:
        if (path / name).is_dir():
            shutil.rmtree(path / name, ignore_errors=True)
        else:
            with suppress(OSError):  # a file that a reader holds open cannot be removed on Windows
                (path / name).unlink(missing_ok=True)


def read(path: Path, module: Any = None) -> Parts:
    """Read the parts of a database, again where it was replaced meanwhile."""
    if not is_database(path):
        raise ValueError(f"{path} is not a database: it has no {DESCRIPTION}. Make one with `hbmp index`.")
    before = None
    for _ in range(_MOST_RETRIES):
        text = (path / DESCRIPTION).read_bytes()
        try:
            return _read_once(path, text, module)
        except Exception:
            if text == before:
                raise
            before = text
    raise ValueError(f"{path} is replaced faster than it can be read.")


def _read_once(path: Path, text: bytes, module: Any) -> Parts:
    described = _described(path, text)
    names = _part_names(described)
    items_file = path / names["items"]
    expected = described.get("items_sha256")
    if expected is not None and hashlib.sha256(items_file.read_bytes()).hexdigest() != expected:
        raise ValueError(f"{items_file} does not match its SHA-256 digest in {DESCRIPTION}. Make the database again.")
    items = read_npz(items_file)
    index = Index.load(path / names["index"])
    if len(index) != len(items["ids"]):
        raise ValueError(f"{path} holds {len(index)} codes but {len(items['ids'])} ids. Make the database again.")
    return Parts(load(path / names["model"], module=module), index, items, described)


def _described(path: Path, text: bytes) -> dict[str, Any]:
    """The content of `database.json`, checked."""
    try:
        described: dict[str, Any] = json.loads(text.decode("utf-8"))
        found = int(described["format"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}/{DESCRIPTION} cannot be read ({error}). Make the database again.") from error
    if found > FORMAT:
        raise ValueError(f"{path} was saved in format {found}; this version reads up to {FORMAT}. Upgrade hbmp.")
    if found > 1 and described.get("sha256") != digest(described):
        raise ValueError(f"{path}/{DESCRIPTION} does not match its SHA-256 digest. Make the database again.")
    return described


def _part_names(described: Mapping[str, Any]) -> dict[str, str]:
    """Names of the parts, which never lead out of the directory."""
    names = described.get("parts", _PLAIN)
    for part, pattern in _NAMES.items():
        name = names.get(part)
        if not isinstance(name, str) or not re.fullmatch(pattern, name):
            raise ValueError(f"{DESCRIPTION} names {name!r} as its {part}. Make the database again.")
    return {part: names[part] for part in _NAMES}
