"""Stores that keep codes in a database engine, one file per engine: PostgreSQL, Milvus, SQLite and LanceDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hbmp._core import catalog
from hbmp.stores._shared.base import Store
from hbmp.stores._shared.names import check_ids, check_name

if TYPE_CHECKING:
    from hbmp.stores.lancedb import LanceDB as LanceDB
    from hbmp.stores.milvus import Milvus as Milvus
    from hbmp.stores.pgvector import PGVector as PGVector
    from hbmp.stores.sqlite_vec import SQLiteVec as SQLiteVec
else:

    def __getattr__(name):
        return catalog.load_class("stores", name)


__all__ = ["Store", "check_ids", "check_name"]


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("stores")])
