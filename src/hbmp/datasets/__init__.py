"""Data sets in their official layouts, one per file; `hbmp.datasets.load("cifar10")` reads one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hbmp._core import catalog
from hbmp.datasets._shared.base import Data, DataSet, MissingData, Remote, data_dir, get, load, names

if TYPE_CHECKING:
    from hbmp.datasets._shared.fetch import Fetched, fetch
    from hbmp.datasets._shared.pack import pack_images

_LATER = {"Fetched": "fetch", "fetch": "fetch", "pack_images": "pack"}
__all__ = [
    "Data",
    "DataSet",
    "Fetched",
    "MissingData",
    "Remote",
    "data_dir",
    "fetch",
    "get",
    "load",
    "names",
    "pack_images",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"hbmp.datasets._shared.{_LATER[name]}"), name)
    return catalog.load_class("datasets", name)


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("datasets")])
