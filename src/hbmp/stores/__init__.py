"""Stores that keep codes in a database engine, one file per engine: `PGVector` and `Milvus`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hbmp._core import catalog
from hbmp.stores._shared.base import Store, check_ids, check_name

if TYPE_CHECKING:
    from hbmp.stores.milvus import Milvus as Milvus
    from hbmp.stores.pgvector import PGVector as PGVector
else:

    def __getattr__(name):
        return catalog.load_class("stores", name)


__all__ = ["Store", "check_ids", "check_name"]


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("stores")])
