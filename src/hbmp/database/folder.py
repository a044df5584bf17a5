"""Databases of formats 1 and 2: a directory whose `database.json` names its parts. They are only read.

    database.json   format, sizes, origin of the items, names of the parts, digests
    index.hbmp      the codes, see `hbmp.Index`          index-….hbmp   those of a later save
    items.npz       ids, labels, names of image files    items-….npz
    model/          the model, see `hbmp.load`           model-…/

Format 1 had fixed names and no digests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.arrays import read_npz
from hbmp._core.model_directory import digest
from hbmp._core.reading import json_object
from hbmp.hasher import Hasher, load
from hbmp.index import Index

FORMAT = 2
DESCRIPTION = "database.json"
_PLAIN = {"index": "index.hbmp", "items": "items.npz", "model": "model"}  # the names of a first save, and of format 1
_TOKEN = "(-[0-9a-f]{32})?"
_NAMES = {"index": rf"index{_TOKEN}\.hbmp", "items": rf"items{_TOKEN}\.npz", "model": rf"model{_TOKEN}"}
_MOST_RETRIES = 100  # readings of a database that other processes replace again and again


@dataclass(frozen=True)
class Parts:
    """The content of a database directory."""

    model: Hasher
    index: Index
    items: dict[str, np.ndarray]
    described: dict[str, Any]


def is_folder(path: str | Path) -> bool:
    """Whether a path is a database of format 1 or 2."""
    return (Path(path) / DESCRIPTION).is_file()


def read(path: Path, module: Any = None) -> Parts:
    """Read the parts of a database; repeat if it was replaced in between."""
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
    if "ids" not in items:
        raise ValueError(f"{items_file} holds no ids. Make the database again.")
    index = Index.load(path / names["index"])
    if len(index) != len(items["ids"]):
        raise ValueError(f"{path} holds {len(index)} codes but {len(items['ids'])} ids. Make the database again.")
    return Parts(load(path / names["model"], module=module), index, items, described)


def _described(path: Path, text: bytes) -> dict[str, Any]:
    """The content of `database.json`, checked."""
    try:
        described = json_object(text, format=int, parts=dict)
        found = described["format"]
    except ValueError as error:
        raise ValueError(f"{path}/{DESCRIPTION} cannot be read ({error}). Make the database again.") from error
    except KeyError:
        raise ValueError(f"{path}/{DESCRIPTION} names no format. Make the database again.") from None
    if found > FORMAT:
        raise ValueError(f"{path} was saved in format {found}; this version reads up to {FORMAT}. Upgrade hbmp.")
    if (found != 1 or "sha256" in described) and described.get("sha256") != digest(described):
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
