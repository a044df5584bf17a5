"""The paper's tables and figures, one a file: what to run, the paper's numbers, and how to show both."""

from __future__ import annotations

from hbmp._core import catalog
from hbmp.experiments.recipes._shared.reproduce import reproduce

__all__ = ["names", "reproduce"]


def names() -> tuple[str, ...]:
    """The names of all recipes."""
    return catalog.names("recipes")
