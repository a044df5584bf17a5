"""Codes in Milvus: one collection, embedded in a file or on a cluster.

    id     INT64 primary key
    code   BINARY_VECTOR     bits padded to whole bytes, HAMMING
    signs  FLOAT16_VECTOR    the code as ±1, IP (inner product); its width is the number of bits

`Milvus(64, "codes.db")` keeps the collection in that file with Milvus Lite and compares with every code.
`Milvus(64, "http://milvus:19530", token="user:password", index="hnsw")` is the same store on a cluster. Milvus has no
transactions: an interrupted `add` has written its first batches. Call it again; writing an id twice changes nothing.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.filters import Condition
from hbmp.stores._shared.base import Neighbours, Store
from hbmp.stores._shared.names import check_name

# Index types for `code` and `signs`. The embedded engine has only "flat".
_INDEXES = {
    "flat": ("BIN_FLAT", "FLAT"),
    "ivf": ("BIN_IVF_FLAT", "IVF_FLAT"),
    "hnsw": ("BIN_IVF_FLAT", "HNSW"),
}
_BUILD = {"IVF_FLAT": {"nlist": 1024}, "BIN_IVF_FLAT": {"nlist": 1024}, "HNSW": {"M": 16, "efConstruction": 200}}
_TYPES = {str: "VARCHAR", int: "INT64", float: "DOUBLE", bool: "BOOL"}
_LONGEST_TEXT = 65_535
_NPROBE = 64
_BYTES_AT_ONCE = 16 << 20  # per request; servers refuse more than 64 MB


class Milvus(Store):
    """A collection of codes in Milvus.

    Parameters
    ----------
    n_bits : int
        Code length, 2 to 32,768.
    uri : str or path
        A file name ending in ".db" (embedded), or the address of a cluster.
    token : str, default=""
        Token of the cluster, such as ``"user:password"``.
    collection : str, default="hbmp_codes"
        Name of the collection; created if it does not exist.
    index : {"flat", "ivf", "hnsw"}, default="flat"
        "flat" compares with every code; "ivf" and "hnsw" are approximate and need a cluster.
    columns : mapping of str to type, default=None
        Columns in addition to the codes, such as ``{"brand": str}``; see `add` and the `where` of `search`.
    timeout : float, default=60.0
        Largest number of seconds per request.

    Attributes
    ----------
    n_bits, collection, index, columns, timeout
        As given.

    Examples
    --------
    >>> import hbmp
    >>> with hbmp.stores.Milvus(4, "codes.db") as store:  # doctest: +SKIP
    ...     store.add([[1, -1, 1, 1], [-1, -1, 1, 1]], [10, 11])
    ...     distances, ids = store.search([[1, -1, 1, 1]], 2)
    ...     print(ids, distances)
    [[10 11]] [[0. 1.]]
    """

    most_results = 16_384

    def __init__(
        self,
        n_bits: int,
        uri: str | Path,
        *,
        token: str = "",
        collection: str = "hbmp_codes",
        index: Literal["flat", "ivf", "hnsw"] = "flat",
        columns: Mapping[str, type] | None = None,
        timeout: float = 60.0,
    ):
        super().__init__(n_bits, columns)
        if not 2 <= self.n_bits <= 32_768:
            raise ValueError(f"Milvus stores codes of 2 to 32768 bits, found n_bits={n_bits}.")
        if index not in _INDEXES:
            raise ValueError(f"index must be one of {', '.join(_INDEXES)}, found {index!r}.")
        self.collection = check_name(collection, "collection")
        self.index = index
        self.timeout = timeout
        if index != "flat" and "://" not in str(uri):
            raise ValueError(f"Embedded Milvus has only index='flat'; {index!r} needs the uri of a cluster.")
        self._client = _connect(str(uri), token, timeout)
        try:
            if self._client.has_collection(self.collection, timeout=timeout):
                self._check_fields()
                self._client.load_collection(self.collection, timeout=timeout)
            else:
                self._create()
        except BaseException:
            self.close()
            raise

    def count(self) -> int:
        """Number of codes in the collection.

        Returns
        -------
        int
        """
        self._check_open()
        rows = self._client.query(self.collection, "", output_fields=["count(*)"], timeout=self.timeout)
        return int(rows[0]["count(*)"])

    def drop(self) -> None:
        """Delete the collection, and close the connection."""
        self._check_open()
        self._client.drop_collection(self.collection, timeout=self.timeout)
        self.close()

    def _create(self) -> None:
        from pymilvus import DataType, MilvusException

        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("code", DataType.BINARY_VECTOR, dim=8 * hamming.bytes_for(self.n_bits))
        schema.add_field("signs", DataType.FLOAT16_VECTOR, dim=self.n_bits)
        for column, column_kind in self.columns.items():
            limits = {"max_length": _LONGEST_TEXT} if column_kind is str else {}
            schema.add_field(column, DataType[_TYPES[column_kind]], **limits)
        indexes = self._client.prepare_index_params()
        for field, kind, metric in zip(("code", "signs"), _INDEXES[self.index], ("HAMMING", "IP"), strict=True):
            indexes.add_index(field, index_type=kind, metric_type=metric, params=_BUILD.get(kind, {}))
        try:
            # Strong: a search finds all codes added before it.
            self._client.create_collection(
                self.collection, schema=schema, consistency_level="Strong", timeout=self.timeout
            )
            self._client.create_index(self.collection, indexes, timeout=self.timeout, sync=False)
            self._client.load_collection(self.collection, timeout=self.timeout)
        except MilvusException as error:
            # A collection without its indexes is useless.
            self._client.drop_collection(self.collection, timeout=self.timeout)
            raise ValueError(
                f"Milvus refused to make the collection {self.collection!r} with index={self.index!r}: "
                f"{error.message.strip(' :')}."
            ) from None

    def _check_fields(self) -> None:
        fields = self._client.describe_collection(self.collection, timeout=self.timeout)["fields"]
        found = {field["name"]: f"{field['type'].name}({field['params'].get('dim', '')})" for field in fields}
        padded = 8 * hamming.bytes_for(self.n_bits)
        wanted = {"id": "INT64()", "code": f"BINARY_VECTOR({padded})", "signs": f"FLOAT16_VECTOR({self.n_bits})"}
        wanted |= {name: f"{_TYPES[kind]}()" for name, kind in self.columns.items()}
        if any(found.get(name) != kind for name, kind in wanted.items()):
            raise ValueError(
                f"A store of {self.n_bits} bits needs the fields {_listed(wanted)}; collection {self.collection!r} has "
                f"{_listed(found)}. Open it with its own n_bits, or name another collection."
            )

    def _upsert(
        self, codes: NDArray[np.int8], ids: NDArray[np.int64], values: dict[str, list[Any]], batch_size: int
    ) -> None:
        packed = hamming.pack(codes)
        batch_size = max(1, min(batch_size, _BYTES_AT_ONCE // (8 + packed.shape[1] + 2 * self.n_bits)))
        for start in range(0, len(ids), batch_size):
            rows = [
                {"id": int(ids[i]), "code": packed[i].tobytes(), "signs": codes[i].astype(np.float16)}
                | {name: column[i] for name, column in values.items()}
                for i in range(start, min(start + batch_size, len(ids)))
            ]
            self._client.upsert(self.collection, rows, timeout=self.timeout)

    def _delete(self, ids: NDArray[np.int64]) -> int:
        known = self._fetch(ids)[0].tolist()
        for start in range(0, len(known), self.most_results):
            self._client.delete(self.collection, ids=known[start : start + self.most_results], timeout=self.timeout)
        return len(known)

    def _nearest_by_bits(self, signs: NDArray[np.int8], n: int, where: list[Condition]) -> list[Neighbours]:
        return self._nearest("code", "HAMMING", [row.tobytes() for row in hamming.pack(signs)], n, where)

    def _nearest_by_product(self, vectors: NDArray[np.float16], n: int, where: list[Condition]) -> list[Neighbours]:
        return self._nearest("signs", "IP", list(vectors), n, where)

    def _nearest(self, field: str, metric: str, queries: list[Any], n: int, where: list[Condition]) -> list[Neighbours]:
        hits_of = self._client.search(
            self.collection,
            queries,
            anns_field=field,
            filter=" and ".join(map(_expression, where)),
            limit=n,
            search_params={"metric_type": metric, "params": self._effort(field, n)},
            timeout=self.timeout,
        )
        return [
            Neighbours(np.array([hit["id"] for hit in hits], np.int64), np.array([hit["distance"] for hit in hits]))
            for hits in hits_of
        ]

    def _effort(self, field: str, n: int) -> dict[str, int]:
        kind = _INDEXES[self.index][0 if field == "code" else 1]
        if kind == "HNSW":
            return {"ef": min(max(n, 100), 32_768)}
        return {} if kind in ("FLAT", "BIN_FLAT") else {"nprobe": _NPROBE}

    def _fetch(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        known, codes = [], []
        for start in range(0, len(ids), self.most_results):
            part = ids[start : start + self.most_results].tolist()
            for row in self._client.query(self.collection, ids=part, output_fields=["code"], timeout=self.timeout):
                known.append(row["id"])
                codes.append(row["code"][0])
        packed = np.frombuffer(b"".join(codes), np.uint8).reshape(len(codes), hamming.bytes_for(self.n_bits))
        return np.array(known, np.int64), hamming.unpack(packed, self.n_bits)

    def _disconnect(self) -> None:
        self._client.close()


def _expression(condition: Condition) -> str:
    """The condition in the language of Milvus."""
    operator = {"=": "==", "in": "in"}.get(condition.operator, condition.operator)
    value = list(condition.value) if condition.operator == "in" else condition.value
    return f"{condition.column} {operator} {json.dumps(value, ensure_ascii=False)}"


_REACH = 5.0  # seconds to reach a server; an embedded one starts first and may take longer


def _connect(uri: str, token: str, timeout: float) -> Any:
    try:
        from pymilvus import MilvusClient, MilvusException
    except ImportError:
        raise ImportError("The Milvus store needs pymilvus: pip install 'hbmp[stores]'.") from None
    embedded = "://" not in uri
    if embedded and not uri.endswith(".db"):
        raise ValueError(f"A Milvus uri is http://host:port, or a file name ending in .db, found {uri!r}.")
    if embedded and not Path(uri).absolute().parent.is_dir():
        raise ValueError(f"The folder of {uri!r} does not exist; create it first.")
    try:
        with _version_lookup_for_milvus_lite():
            return MilvusClient(uri, token=token, timeout=timeout if embedded else min(timeout, _REACH))
    except MilvusException as error:
        raise ConnectionError(
            f"No Milvus could be reached at {uri}: {error.message}. Check the uri and that the server runs."
        ) from None


@contextmanager
def _version_lookup_for_milvus_lite() -> Iterator[None]:
    """Stand in for pkg_resources, which Milvus Lite 2.5 imports and setuptools has removed."""
    if "milvus_lite" in sys.modules or "pkg_resources" in sys.modules:
        yield
        return
    stand_in = types.ModuleType("pkg_resources")
    vars(stand_in).update(DistributionNotFound=metadata.PackageNotFoundError, get_distribution=metadata.distribution)
    sys.modules["pkg_resources"] = stand_in
    try:
        yield
    finally:
        del sys.modules["pkg_resources"]


def _listed(fields: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in fields.items()).replace("()", "")
