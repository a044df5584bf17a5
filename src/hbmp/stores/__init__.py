"""Stores that keep codes in a database engine, one file per engine: `PGVector` and `Milvus`."""

from hbmp._core import catalog
from hbmp.stores._shared.base import Store, check_ids, check_name

__all__ = ["Store", "check_ids", "check_name"]


def __getattr__(name: str):
    return catalog.load_class("stores", name)


def __dir__():
    return sorted([*__all__, *catalog.names("stores")])
