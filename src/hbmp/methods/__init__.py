"""Published hashing methods, one per file; `make_method` creates one from plain settings."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hbmp._core import catalog

if TYPE_CHECKING:
    from hbmp.methods._shared.making import make_method, make_piece

__all__ = ["make_method", "make_piece"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("hbmp.methods._shared.making"), name)
    return catalog.load_class("methods", name)


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("methods")])
