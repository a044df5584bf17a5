"""CSV cells as values (numbers if a whole column is numeric, None for empty cells), and errors that name the file."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")  # a leading zero is part of a name, such as a postcode
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def as_values(cells: Sequence[str]) -> list[Any]:
    """Whole numbers if every cell is one, numbers if every cell is one, else texts; empty cells are None."""
    filled = [cell for cell in cells if cell]
    if filled and all(_WHOLE.fullmatch(cell) for cell in filled):
        return [int(cell) if cell else None for cell in cells]
    if filled and all(_is_number(cell) for cell in filled):
        return [float(cell) if cell else None for cell in cells]
    return [cell or None for cell in cells]


@contextlib.contextmanager
def naming_csv(path: Path) -> Iterator[None]:
    """Name the file in errors of decoding and of CSV."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); save it as UTF-8.") from error
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as CSV ({error}); write it again.") from error


def _is_number(cell: str) -> bool:
    return bool(_WHOLE.fullmatch(cell)) or (("." in cell or "e" in cell.lower()) and bool(_NUMBER.fullmatch(cell)))
