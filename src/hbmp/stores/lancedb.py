"""Codes in LanceDB: one table in a folder, no server.

    id     int64
    code   fixed_size_list<uint8>      bits padded to whole bytes, distance "hamming"
    signs  fixed_size_list<float16>    the code as ±1, distance "dot"

Every search compares with all codes. Each write is a new version of the table; a reader sees one version whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.filters import Condition
from hbmp.stores._shared.base import Neighbours, Store
from hbmp.stores._shared.columns import as_sql
from hbmp.stores._shared.names import check_name

_TYPES = {str: "string", int: "int64", float: "double", bool: "bool"}
MOST_BITS = 32_768
_IDS_AT_ONCE = 5000  # in one condition


class LanceDB(Store):
    """A table of codes in LanceDB.

    Parameters
    ----------
    n_bits : int
        Code length, at most 32,768.
    uri : str or path
        A folder, or the address of object storage as LanceDB takes it.
    table : str, default="hbmp_codes"
        Name of the table; created if it does not exist.
    columns : mapping of str to type, default=None
        Columns in addition to the codes, such as ``{"brand": str}``; see `add` and the `where` of `search`.

    Attributes
    ----------
    n_bits, table, columns
        As given.

    Examples
    --------
    >>> import hbmp
    >>> with hbmp.stores.LanceDB(4, "codes.lancedb") as store:  # doctest: +SKIP
    ...     store.add([[1, -1, 1, 1], [-1, -1, 1, 1]], [10, 11])
    ...     distances, ids = store.search([[1, -1, 1, 1]], 2)
    ...     print(ids, distances)
    [[10 11]] [[0. 1.]]
    """

    def __init__(
        self,
        n_bits: int,
        uri: str | Path,
        *,
        table: str = "hbmp_codes",
        columns: Mapping[str, type] | None = None,
    ):
        super().__init__(n_bits, columns)
        if self.n_bits > MOST_BITS:
            raise ValueError(f"The LanceDB store holds codes of at most {MOST_BITS} bits, found n_bits={n_bits}.")
        self.table = check_name(table, "table")
        self._database = _connect(uri)
        self._schema = self._wanted()
        try:
            self._table = self._database.open_table(self.table)
        except ValueError:  # there is none
            self._table = self._database.create_table(self.table, schema=self._schema, exist_ok=True)
        if not self._table.schema.equals(self._schema, check_metadata=True):
            found = self._table.schema
            bits = (found.metadata or {}).get(b"n_bits", b"an unknown number of").decode()
            raise ValueError(
                f"A store of {self.n_bits} bits needs the columns {_listed(self._schema)}; table {self.table!r} has "
                f"{bits} bits and the columns {_listed(found)}. Open it with its own n_bits and columns, or name "
                "another table."
            )

    def count(self) -> int:
        """Number of codes in the table.

        Returns
        -------
        int
        """
        self._check_open()
        return int(self._table.count_rows())

    def drop(self) -> None:
        """Delete the table, and close the connection."""
        self._check_open()
        self._database.drop_table(self.table)
        self.close()

    def _wanted(self) -> Any:
        import pyarrow as pa

        fields = [
            pa.field("id", pa.int64()),
            pa.field("code", pa.list_(pa.uint8(), hamming.bytes_for(self.n_bits))),
            pa.field("signs", pa.list_(pa.float16(), self.n_bits)),
            *(pa.field(name, pa.type_for_alias(_TYPES[kind])) for name, kind in self.columns.items()),
        ]
        return pa.schema(fields, metadata={"n_bits": str(self.n_bits)})

    def _upsert(
        self, codes: NDArray[np.int8], ids: NDArray[np.int64], values: dict[str, list[Any]], batch_size: int
    ) -> None:
        import pyarrow as pa

        def batches() -> Any:
            for start in range(0, len(ids), batch_size):
                part = slice(start, start + batch_size)
                packed, signs = hamming.pack(codes[part]), codes[part].astype(np.float16)
                arrays = [
                    pa.array(ids[part]),
                    pa.FixedSizeListArray.from_arrays(pa.array(packed.ravel()), packed.shape[1]),
                    pa.FixedSizeListArray.from_arrays(pa.array(signs.ravel()), self.n_bits),
                    *(pa.array(column[part], self._schema.field(name).type) for name, column in values.items()),
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

        merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.RecordBatchReader.from_batches(self._schema, batches()))

    def _delete(self, ids: NDArray[np.int64]) -> int:
        known = self._fetch(ids)[0]
        for start in range(0, len(known), _IDS_AT_ONCE):
            self._table.delete(_among(known[start : start + _IDS_AT_ONCE]))
        return len(known)

    def _nearest_by_bits(self, signs: NDArray[np.int8], n: int, where: list[Condition]) -> list[Neighbours]:
        return self._nearest("code", "hamming", list(hamming.pack(signs)), n, where)

    def _nearest_by_product(self, vectors: NDArray[np.float16], n: int, where: list[Condition]) -> list[Neighbours]:
        return self._nearest("signs", "dot", list(vectors), n, where)

    def _nearest(
        self, column: str, metric: str, queries: list[Any], n: int, where: list[Condition]
    ) -> list[Neighbours]:
        found = []
        for query in queries:
            search = self._table.search(query, vector_column_name=column).distance_type(metric).limit(n)
            if where:
                search = search.where(as_sql(where, quote="`"), prefilter=True)
            rows = search.select(["id", "_distance"]).to_arrow()
            found.append(Neighbours(rows["id"].to_numpy(), rows["_distance"].to_numpy()))
        return found

    def _fetch(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        known, packed = [np.empty(0, np.int64)], [np.empty((0, hamming.bytes_for(self.n_bits)), np.uint8)]
        for start in range(0, len(ids), _IDS_AT_ONCE):
            part = ids[start : start + _IDS_AT_ONCE]
            rows = self._table.search().where(_among(part)).select(["id", "code"]).limit(len(part)).to_arrow()
            known.append(rows["id"].to_numpy())
            packed.append(
                rows["code"].combine_chunks().flatten().to_numpy().reshape(len(rows), hamming.bytes_for(self.n_bits))
            )
        return np.concatenate(known), hamming.unpack(np.concatenate(packed), self.n_bits)

    def _disconnect(self) -> None:
        del self._table, self._database


def _connect(uri: str | Path) -> Any:
    try:
        import lancedb
    except ImportError:
        raise ImportError("The LanceDB store needs lancedb: pip install 'hbmp[lancedb]'.") from None
    return lancedb.connect(str(uri))


def _among(ids: NDArray[np.int64]) -> str:
    return f"id IN ({', '.join(map(str, ids.tolist()))})"


def _listed(schema: Any) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
