"""The paper's tables and figures, one a file: what to run, the paper's numbers, and how to show both."""

from __future__ import annotations

from hbmp import catalog
from hbmp.recipes._reproduce import reproduce

__all__ = ["names", "reproduce"]


def names() -> tuple[str, ...]:
    """The names of all recipes."""
    return catalog.names("recipes")
