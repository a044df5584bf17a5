"""Results on disk: one JSON line per finished cell, one file per protocol, safe against kills and parallel writers.

A line is appended in one write under a lock and forced to disk. A kill leaves at most a torn last line: readers
ignore it, and the next writer removes it. A cell has one key. When a default of its method changes, the cell runs
again and its newest line counts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock

from hbmp._core.files import naming
from hbmp._core.reading import json_object

Record = dict[str, Any]
"""One result line, as JSON holds it."""

_WITHOUT_EFFECT = ("device", "verbose", "compile", "workers")


def read(path: str | os.PathLike[str]) -> list[Record]:
    """Read all complete records of a file.

    Parameters
    ----------
    path : str or Path
        A `.jsonl` file, which need not exist.

    Returns
    -------
    list of dict
        The records, oldest first.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import store
    >>> folder = tempfile.TemporaryDirectory()
    >>> store.append(f"{folder.name}/cifar-1.jsonl", {"key": "a", "scores": {"map": 0.5}})
    True
    >>> store.read(f"{folder.name}/cifar-1.jsonl")
    [{'key': 'a', 'scores': {'map': 0.5}}]
    >>> folder.cleanup()
    """
    path = Path(path)
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    return [_parse(line, path, number) for number, line in enumerate(whole.splitlines(), start=1) if line.strip()]


def newest(records: list[Record]) -> dict[str, Record]:
    """Keep the newest record of every key.

    Parameters
    ----------
    records : list of dict
        Records, oldest first.

    Returns
    -------
    dict of str to dict
        The newest record by key.

    Examples
    --------
    >>> from hbmp.experiments import store
    >>> store.newest([{"key": "a", "seconds": 1}, {"key": "a", "seconds": 2}])
    {'a': {'key': 'a', 'seconds': 2}}
    """
    return {record["key"]: record for record in records}


def same_settings(record: Record, settings: dict[str, Any]) -> bool:
    """Whether a record was made with these settings.

    Settings without an effect on scores (such as the device) and settings newer than the record are ignored.

    Parameters
    ----------
    record : dict
        A result line.
    settings : dict
        Settings of the method today.

    Returns
    -------
    bool
        True where every setting that both have is equal.

    Examples
    --------
    >>> from hbmp.experiments import store
    >>> store.same_settings({"settings": {"lr": 0.1, "device": "cuda"}}, {"lr": 0.1, "device": "cpu", "new": 1})
    True
    """
    known = record.get("settings", {})
    return all(
        known.get(name, value) == value
        for name, value in settings.items()
        if name.rpartition("__")[2] not in _WITHOUT_EFFECT
    )


def append(path: str | os.PathLike[str], record: Record) -> bool:
    """Add a record, unless the file has one with the same key, settings and source.

    Parameters
    ----------
    path : str or Path
        A `.jsonl` file; it is created if missing.
    record : dict
        A result line with a "key".

    Returns
    -------
    bool
        Whether the record was added.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import store
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/cifar-1.jsonl"
    >>> store.append(path, {"key": "a"}), store.append(path, {"key": "a"})
    (True, False)
    >>> folder.cleanup()
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, ensure_ascii=False, allow_nan=False, sort_keys=True).encode() + b"\n"
    # The lock is a separate file, because Windows blocks reads of a locked file.
    with FileLock(path.with_name(f".{path.name}.lock")), naming(path), open(path, "a+b") as file:
        file.seek(0)
        content = file.read()
        file.seek(content.rfind(b"\n") + 1)
        file.truncate()  # removes a torn last line
        before = newest(read(path)).get(record["key"])
        if before is not None and _same_source(before, record) and same_settings(before, record.get("settings", {})):
            return False
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return True


def _same_source(before: Record, record: Record) -> bool:
    """Whether two records were made by the same source of their method; an unknown source equals every other."""
    known = [each.get("source", {}).get("method") for each in (before, record)]
    return None in known or known[0] == known[1]


def _parse(line: bytes, path: Path, number: int) -> Record:
    """One line as a record, or an error that names the line."""
    try:
        record = json_object(line)
    except ValueError as error:
        raise ValueError(
            f"Line {number} of {path} is not JSON ({error}). Remove the line; its cell runs again."
        ) from None
    if "key" not in record:
        raise ValueError(f"Line {number} of {path} is not a result: it has no key. Remove the line.")
    return record
