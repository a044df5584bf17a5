# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.

from hbmp.stores._shared.base import Store as Store
from hbmp.stores._shared.names import check_ids as check_ids
from hbmp.stores._shared.names import check_name as check_name
from hbmp.stores.lancedb import LanceDB as LanceDB
from hbmp.stores.milvus import Milvus as Milvus
from hbmp.stores.pgvector import PGVector as PGVector
from hbmp.stores.sqlite_vec import SQLiteVec as SQLiteVec
