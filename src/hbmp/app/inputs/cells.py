"""Cells of CSV as values: numbers where a whole column holds numbers, None where a cell is empty."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def _is_number(cell: str) -> bool:
    return bool(_WHOLE.fullmatch(cell)) or (("." in cell or "e" in cell.lower()) and bool(_NUMBER.fullmatch(cell)))
