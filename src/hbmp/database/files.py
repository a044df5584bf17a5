"""Files inside a database: the model, and inverted lists, in parts that SQLite can hold."""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path
from typing import Any

from hbmp.database.database_file import DatabaseFile
from hbmp.hasher import Hasher, load

_PART = 1 << 26  # bytes
_MODEL = "model/"
_NAME = re.compile(_MODEL + r"[\w-][\w.-]*")


def write_file(store: DatabaseFile, name: str, content: bytes) -> None:
    """Write or replace a file, inside a transaction."""
    store.rows("DELETE FROM files WHERE name = ?", [name])
    for part in range(max(1, -(-len(content) // _PART))):
        piece = content[part * _PART : (part + 1) * _PART]
        store.rows("INSERT INTO files VALUES (?, ?, ?)", [name, part, piece])


def read_file(store: DatabaseFile, name: str) -> bytes:
    """The content of a file."""
    with store.decoding(f"its file {name!r} cannot be read"):
        return b"".join(row[0] for row in store.rows("SELECT content FROM files WHERE name = ? ORDER BY part", [name]))


def write_model(store: DatabaseFile, model: Hasher) -> None:
    """Write a model, inside a transaction."""
    with tempfile.TemporaryDirectory(prefix="hbmp-") as folder:
        model.save(Path(folder) / "model")
        digest = hashlib.sha256()
        for path in sorted((Path(folder) / "model").iterdir()):
            content = path.read_bytes()
            digest.update(content)
            write_file(store, _MODEL + path.name, content)
    store.put("model", digest.hexdigest())


def read_model(store: DatabaseFile, module: Any = None) -> Hasher:
    """The model of a database."""
    with tempfile.TemporaryDirectory(prefix="hbmp-") as folder:
        path = Path(folder) / "model"
        path.mkdir()
        for (name,) in store.rows("SELECT DISTINCT name FROM files WHERE name LIKE 'model/%'"):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise store.damaged(f"it holds a file {name!r}")
            (path / name.removeprefix(_MODEL)).write_bytes(read_file(store, name))
        try:
            return load(path, module=module)  # type: ignore[no-any-return]
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), f"The model in {store.name}")) from error
