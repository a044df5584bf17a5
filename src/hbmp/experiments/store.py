"""Results on disk: one JSON line a finished cell, one file a protocol, safe against kills and parallel writers.

A line is appended in one write under a lock and forced to disk. A kill can only leave a torn last line: readers
ignore it and the next writer cuts it off. A cell has one key; where a default of its method has changed since, it is
run again and its newest line counts.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DO_NOT_COUNT = ("device", "verbose", "compile", "workers")


def read(path) -> list[dict]:
    """All whole records of a file, oldest first; none where there is no file."""
    path = Path(path)
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    return [_parse(line, path, number) for number, line in enumerate(whole.splitlines(), start=1) if line.strip()]


def read_all(folder) -> list[dict]:
    """The records of every `.jsonl` file of a folder, file by file."""
    return [record for path in sorted(Path(folder).glob("*.jsonl")) for record in read(path)]


def newest(records: list[dict]) -> dict[str, dict]:
    """The newest record of every key."""
    return {record["key"]: record for record in records}


def same_settings(record: dict, settings: dict) -> bool:
    """Whether a record was made with these settings; how it ran aside, and what it did not know of yet."""
    known = record.get("settings", {})
    return all(
        known.get(name, value) == value
        for name, value in settings.items()
        if name.rpartition("__")[2] not in _DO_NOT_COUNT
    )


def append(path, record: dict) -> bool:
    """Add a record unless one with its key and settings is there already; says whether it was added."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, ensure_ascii=False, allow_nan=False, sort_keys=True).encode() + b"\n"
    with _locked(path) as file:
        content = file.read()
        file.seek(content.rfind(b"\n") + 1)
        file.truncate()  # a torn last line, where there is one
        before = newest(read(path)).get(record["key"])
        if before is not None and same_settings(before, record.get("settings", {})):
            return False
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return True


@contextmanager
def _locked(path: Path) -> Iterator:
    with open(path, "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed, also by a kill
        file.seek(0)
        yield file


def _parse(line: bytes, path: Path, number: int) -> dict:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(
            f"Line {number} of {path} is not JSON ({error}). Remove the line; its cell runs again."
        ) from None
    if not isinstance(record, dict) or "key" not in record:
        raise ValueError(f"Line {number} of {path} is not a result: it has no key. Remove the line.")
    return record
