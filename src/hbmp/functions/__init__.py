"""Hash functions: features or images in, scores whose signs are the codes out, one kind per file.

`HashFunction` is the base class and the extension point: an object of a subclass goes to `hbmp.HBMP(function=…)`.
"""

from __future__ import annotations

from hbmp._core import catalog
from hbmp.functions._shared.base import HashFunction

__all__ = ["HashFunction"]


def __getattr__(name: str) -> type:
    return catalog.load_class("functions", name)


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("functions")])
