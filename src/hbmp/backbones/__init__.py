"""Backbones: networks that turn images into features, with their preprocessing and weights, one per file.

`Backbone` is the base class and the extension point. `Module` wraps a torch network of one's own without a subclass.
"""

from __future__ import annotations

from hbmp._core import catalog
from hbmp.backbones._shared.base import Backbone

__all__ = ["Backbone"]


def __getattr__(name: str) -> type:
    return catalog.load_class("backbones", name)


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("backbones")])
