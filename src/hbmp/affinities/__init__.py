"""Affinities: how close two items should be, one kind per file.

`Affinity` is the base class and the extension point: a subclass with three methods is an affinity that
`hbmp.infer_codes` and `hbmp.HBMP(affinity=…)` take.
"""

from __future__ import annotations

from hbmp._core import catalog
from hbmp.affinities._shared.base import Affinity

__all__ = ["Affinity"]


def __getattr__(name: str) -> type:
    return catalog.load_class("affinities", name)


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("affinities")])
