"""Files of others: whatever a library raises on damaged bytes becomes one sentence with the name of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OF_THE_SYSTEM = (FileNotFoundError, PermissionError, IsADirectoryError, ImportError)  # they say it themselves


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


def first_line(error: BaseException) -> str:
    """The first line of a message, or the name of the error where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
