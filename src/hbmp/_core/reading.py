"""Files of others: whatever a library raises on damaged bytes becomes one sentence with the name of the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OF_THE_SYSTEM = (FileNotFoundError, PermissionError, IsADirectoryError, ImportError)  # they say it themselves
_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a fraction",
    bool: "a boolean",
    type(None): "null",
}


@contextmanager
def reading(path: str | Path, kind: str, remedy: str = "write it again") -> Iterator[None]:
    """Turn every error of a reader into a ValueError: "PATH cannot be read as KIND (reason); REMEDY."

    A header that claims a terabyte raises MemoryError, so that is included.
    """
    try:
        yield
    except _OF_THE_SYSTEM:
        raise
    except Exception as error:
        raise ValueError(f"{path} cannot be read as {kind} ({first_line(error)}); {remedy}.") from error


def json_object(text: str | bytes, **kinds: type) -> dict[str, Any]:
    """A JSON document that must be an object, as `parts=dict` says of its entry "parts" where there is one.

    Everything else raises ValueError with the reason, also text that is not JSON or is nested too deeply.
    """
    try:
        found = json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if type(found) is not dict:
        raise ValueError(f"it is {_KINDS[type(found)]}, not an object")
    for name, kind in kinds.items():
        if name in found and type(found[name]) is not kind:
            raise ValueError(f"its {name!r} is {_KINDS[type(found[name])]}, not {_KINDS[kind]}")
    return found


def first_line(error: BaseException) -> str:
    """The first line of a message, or the name of the error where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
