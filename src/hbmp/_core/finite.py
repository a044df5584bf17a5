"""Values for JSON, which has no infinity and no NaN: they become null."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """The value with None for every number that JSON cannot write, inside lists and dicts too."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
