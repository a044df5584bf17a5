"""A model directory: `model.json` names its arrays file and carries digests of that file and of itself.

    model.json           settings, scalars, names           renamed into place last: the one atomic switch
    arrays.safetensors   the arrays of a first save
    arrays-….safetensors the arrays of a later save, beside those of the model that it replaces
    card.md              a description, written afterwards and removed by the next save

A reader that still holds the previous `model.json` finds its arrays until the new one is in place, and starts again if
they are gone. A save that is killed leaves the previous model whole; the next save removes its files. A lock file marks
a save under way, so that two writers do not remove each other's files. Digests detect damage, not forgery.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.files import naming

DESCRIPTION = "model.json"
ARRAYS = "arrays.safetensors"
_ARRAYS_NAME = re.compile(r"arrays(-[0-9a-f]{32})?\.safetensors")
_OURS = re.compile(
    rf"{_ARRAYS_NAME.pattern}|model\.json|card\.md|\.card\.md\..*\.part|\.saving-[0-9a-f]{{32}}\.(lock|json)"
)
_MOST_RETRIES = 100  # readings of a model that other processes replace again and again
_UNCHANGED, _TICK = 2, 0.005  # readings, and seconds between them, after which it is damaged and not being replaced


def check_free(path: str | Path) -> None:
    """Refuse a place that holds anything other than a model; an empty folder is free."""
    path = Path(path)
    if path.exists() and not (path.is_dir() and all(_OURS.fullmatch(item.name) for item in path.iterdir())):
        raise ValueError(f"{path} is not a model directory, or holds more than a model; choose another name.")


def write(path: Path, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a model, or replace an existing one; on any failure the existing one is unchanged."""
    from safetensors.numpy import save

    check_free(path)
    data = save({key: np.ascontiguousarray(value) for key, value in arrays.items()})
    new = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        with _saving(path) as part:
            _write_and_switch(path, part, content, data)
    finally:
        if new:
            with suppress(OSError):
                path.rmdir()  # succeeds only where nothing was written


def _write_and_switch(path: Path, part: Path, content: dict[str, Any], data: bytes) -> None:
    name = _claim(path, data)
    try:
        described = {**content, "arrays": name, "arrays_sha256": hashlib.sha256(data).hexdigest()}
        _write_new(part, json.dumps({**described, "sha256": digest(described)}, indent=1).encode())
        (path / "card.md").unlink(missing_ok=True)  # it describes the model that is about to go
        os.replace(part, path / DESCRIPTION)
    except BaseException:
        if _used(path) != name:  # an interrupt may arrive after the switch
            (path / name).unlink(missing_ok=True)
        raise
    _sync_folder(path)


def _used(path: Path) -> str | None:
    """The arrays file of the model that is in place."""
    try:
        return json.loads((path / DESCRIPTION).read_bytes()).get("arrays", ARRAYS)
    except (OSError, ValueError, AttributeError, RecursionError):
        return None


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The content of `model.json` and its arrays, read again if the model was replaced in between."""
    before, unchanged = None, 0
    for _ in range(_MOST_RETRIES):
        with open(path / DESCRIPTION, "rb") as file:
            text, status = file.read(), os.fstat(file.fileno())
        try:
            return _read_once(path, text)
        except Exception:
            found = (status.st_ino, status.st_mtime_ns)  # another save may write the same text
            unchanged = unchanged + 1 if found == before else 0
            if unchanged == _UNCHANGED:
                raise
            before = found
            time.sleep(_TICK)
    raise ValueError("it is replaced faster than it can be read")


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of content as JSON with sorted keys and no spaces, without the entry `sha256`."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _read_once(path: Path, text: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    from safetensors.numpy import load

    content = json.loads(text.decode("utf-8"))
    if not isinstance(content, dict):
        return {}, {}
    later = "sha256" in content or content.get("format") != 1
    if later and isinstance(content.get("format"), int) and content["format"] > 2:
        return content, {}  # the caller refuses it by its number
    if later and content.get("sha256") != digest(content):
        raise ValueError("model.json does not match its SHA-256 digest")
    name = content.get("arrays", ARRAYS)
    if not isinstance(name, str) or not _ARRAYS_NAME.fullmatch(name):
        raise ValueError(f"model.json names {name!r} as its arrays file")
    data = (path / name).read_bytes()
    if later and content.get("arrays_sha256") != hashlib.sha256(data).hexdigest():
        raise ValueError(f"{name} does not match its SHA-256 digest in model.json")
    return content, load(data)


def _claim(path: Path, data: bytes) -> str:
    """Write the arrays under a name that no other save uses."""
    name = ARRAYS
    try:
        _write_new(path / name, data)
    except FileExistsError:
        name = f"arrays-{uuid.uuid4().hex}.safetensors"
        _write_new(path / name, data)
    return name


def _write_new(path: Path, data: bytes) -> None:
    """Write and sync a file that must not exist yet; a file that fails half-way is removed."""
    with naming(path), open(path, "xb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            file.close()
            path.unlink(missing_ok=True)
            raise


@contextmanager
def _saving(path: Path) -> Iterator[Path]:
    """Mark a save under way; gives the path of its unfinished `model.json`. Leftovers go at the end of a good save."""
    from filelock import FileLock

    marker = path / f".saving-{uuid.uuid4().hex}.lock"
    part = marker.with_suffix(".json")
    lock = FileLock(marker)
    lock.acquire()
    try:
        yield part
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        lock.release()
        marker.unlink(missing_ok=True)
    _remove_leftovers(path)


def _remove_leftovers(path: Path) -> None:
    """Remove unused files, unless another save is in progress.

    The order matters: a save that began after the listing has only new names, and one that ended before the markers
    were checked is the one that `model.json` names.
    """
    listed = [item for item in path.iterdir() if item.name != DESCRIPTION and _OURS.fullmatch(item.name)]
    if any(_is_held(item) for item in listed if item.suffix == ".lock"):
        return
    used = _used(path)
    for item in listed:
        if item.name not in (used, "card.md"):
            with suppress(OSError):  # a file that a reader holds open cannot be removed on Windows
                item.unlink(missing_ok=True)


def _is_held(marker: Path) -> bool:
    """Whether the process that made this marker still lives."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(marker, timeout=0):
            return False
    except Timeout:
        return True


def _sync_folder(path: Path) -> None:
    with suppress(OSError):  # not every system can open a folder
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
