"""Codes and encoders in the forms of other systems.

    form          for                               order of the bits in a byte
    bytes         FAISS, numpy, files, Milvus       little-endian here ("big" by argument)
    hex strings   Elasticsearch `element_type: bit` first bit highest
    int8          Vespa `tensor<int8>`              first bit highest, as its unpack_bits expects
    SQL           PostgreSQL with pgvector          bit(n) text, first bit first
    ONNX          onnxruntime and its like          scores float32, codes int8

Codes are signs (n, n_bits) in {-1, +1}. A width that is not a multiple of 8 is padded with zero bits, so the functions
that read codes need the width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import hamming
from hbmp.export.onnx_graph import to_onnx
from hbmp.stores import check_ids, check_name
from hbmp.stores.pgvector import MOST_BITS

__all__ = ["from_bytes", "from_hex", "from_int8", "to_bytes", "to_hex", "to_int8", "to_onnx", "to_sql"]

BitOrder = Literal["little", "big"]


def to_bytes(codes: ArrayLike, *, bit_order: BitOrder = "little") -> NDArray[np.uint8]:
    """Pack codes into bytes.

    Parameters
    ----------
    codes : array-like of shape (n, n_bits)
        Signs, -1 and +1.
    bit_order : {"little", "big"}, default="little"
        "big" stores the first of eight bits in the highest position.

    Returns
    -------
    ndarray of shape (n, ceil(n_bits / 8)), uint8

    Examples
    --------
    >>> from hbmp.export import to_bytes
    >>> to_bytes([[1, -1, 1, -1, -1, -1, -1, -1]])
    array([[5]], dtype=uint8)
    """
    _check_order(bit_order)
    return np.packbits(hamming.check_codes(codes) > 0, axis=1, bitorder=bit_order)


def from_bytes(packed: ArrayLike, n_bits: int, *, bit_order: BitOrder = "little") -> NDArray[np.int8]:
    """Unpack bytes into codes, the inverse of `to_bytes`.

    Parameters
    ----------
    packed : array-like of shape (n, ceil(n_bits / 8)), uint8
        Packed codes.
    n_bits : int
        Code length.
    bit_order : {"little", "big"}, default="little"
        As for `to_bytes`.

    Returns
    -------
    ndarray of shape (n, n_bits), int8
        Signs, -1 and +1.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.export import from_bytes
    >>> from_bytes(np.array([[5]], dtype=np.uint8), 4)
    array([[ 1, -1,  1, -1]], dtype=int8)
    """
    _check_order(bit_order)
    packed = np.asarray(packed)
    if bit_order == "big" and packed.dtype == np.uint8 and packed.ndim == 2:
        packed = np.packbits(np.unpackbits(packed, axis=1), axis=1, bitorder="little")
    return hamming.unpack(packed, n_bits)


def to_hex(codes: ArrayLike) -> list[str]:
    """Write codes as hexadecimal strings, the form of bit vectors in Elasticsearch.

    Parameters
    ----------
    codes : array-like of shape (n, n_bits)
        Signs, -1 and +1.

    Returns
    -------
    list of str
        Two digits per byte, first bit highest.

    Examples
    --------
    >>> from hbmp.export import to_hex
    >>> to_hex([[1, -1, 1, -1, -1, -1, -1, 1]])
    ['a1']
    """
    return [row.tobytes().hex() for row in to_bytes(codes, bit_order="big")]


def from_hex(texts: Iterable[str], n_bits: int) -> NDArray[np.int8]:
    """Read codes from hexadecimal strings, the inverse of `to_hex`.

    Parameters
    ----------
    texts : iterable of str
        Two digits per byte.
    n_bits : int
        Code length.

    Returns
    -------
    ndarray of shape (n, n_bits), int8
        Signs, -1 and +1.

    Examples
    --------
    >>> from hbmp.export import from_hex
    >>> from_hex(["a0"], 4)
    array([[ 1, -1,  1, -1]], dtype=int8)
    """
    texts, width = list(texts), hamming.bytes_for(n_bits)
    for text in texts:
        if len(text) != 2 * width or not set(text.lower()) <= set("0123456789abcdef"):
            raise ValueError(f"A code of {n_bits} bits has {2 * width} hexadecimal digits, found {text!r}.")
    packed = np.frombuffer(bytes.fromhex("".join(texts)), np.uint8).reshape(len(texts), width)
    return from_bytes(packed, n_bits, bit_order="big")


def to_int8(codes: ArrayLike) -> NDArray[np.int8]:
    """Pack codes into signed bytes, for a Vespa field with `distance-metric: hamming`.

    Parameters
    ----------
    codes : array-like of shape (n, n_bits)
        Signs, -1 and +1.

    Returns
    -------
    ndarray of shape (n, ceil(n_bits / 8)), int8
        First bit highest.

    Examples
    --------
    >>> from hbmp.export import to_int8
    >>> to_int8([[1, -1, -1, -1, -1, -1, -1, -1]])
    array([[-128]], dtype=int8)
    """
    return to_bytes(codes, bit_order="big").view(np.int8)


def from_int8(packed: ArrayLike, n_bits: int) -> NDArray[np.int8]:
    """Unpack signed bytes into codes, the inverse of `to_int8`.

    Parameters
    ----------
    packed : array-like of shape (n, ceil(n_bits / 8)), int8
        Packed codes.
    n_bits : int
        Code length.

    Returns
    -------
    ndarray of shape (n, n_bits), int8
        Signs, -1 and +1.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.export import from_int8
    >>> from_int8(np.array([[-128]], dtype=np.int8), 3)
    array([[ 1, -1, -1]], dtype=int8)
    """
    packed = np.ascontiguousarray(packed)
    if packed.dtype != np.int8:
        raise ValueError(f"Signed bytes must have dtype int8, found {packed.dtype}.")
    return from_bytes(packed.view(np.uint8), n_bits, bit_order="big")


def to_sql(
    codes: ArrayLike, ids: ArrayLike, *, table: str = "hbmp_codes", rows_per_statement: int = 1000
) -> Iterator[str]:
    """Generate SQL statements that create a pgvector table with these codes and its indexes.

    `hbmp.stores.PGVector` opens the table. Running the statements again changes nothing.

    Parameters
    ----------
    codes : array-like of shape (n, n_bits)
        Signs, -1 and +1.
    ids : array-like of int of shape (n,)
        Distinct ids.
    table : str, default="hbmp_codes"
        Name of the table, or ``"schema.table"``.
    rows_per_statement : int, default=1000
        Rows per INSERT statement.

    Returns
    -------
    iterator of str
        Statements, each ending in a semicolon.

    Examples
    --------
    >>> from hbmp.export import to_sql
    >>> statements = list(to_sql([[1, -1]], [7]))
    >>> statements[0]
    'CREATE EXTENSION IF NOT EXISTS vector;'
    >>> print(statements[2])
    INSERT INTO "hbmp_codes" (id, code, signs) VALUES
    (7, B'10', '[1, -1]')
    ON CONFLICT (id) DO UPDATE SET code = excluded.code, signs = excluded.signs;
    """
    codes = hamming.check_codes(codes)
    ids = check_ids(ids, len(codes))
    name = ".".join(f'"{check_name(part, "table")}"' for part in table.split(".", 1))
    if codes.shape[1] > MOST_BITS:
        raise ValueError(f"pgvector searches codes of at most {MOST_BITS} bits, found {codes.shape[1]}.")
    if rows_per_statement < 1:
        raise ValueError(f"rows_per_statement must be at least 1, found {rows_per_statement}.")
    return _statements(codes, ids, name, rows_per_statement)


def _statements(codes: NDArray[np.int8], ids: NDArray[np.int64], name: str, step: int) -> Iterator[str]:
    n_bits = codes.shape[1]
    yield "CREATE EXTENSION IF NOT EXISTS vector;"
    yield (
        f"CREATE TABLE IF NOT EXISTS {name} "
        f"(id bigint PRIMARY KEY, code bit({n_bits}) NOT NULL, signs halfvec({n_bits}));"
    )
    for start in range(0, len(ids), step):
        rows = zip(ids[start : start + step].tolist(), codes[start : start + step].tolist(), strict=True)
        values = ",\n".join(f"({number}, B'{_digits(code)}', '{code}')" for number, code in rows)
        yield (
            f"INSERT INTO {name} (id, code, signs) VALUES\n{values}\n"  # nosec B608 - checked names, bound values
            "ON CONFLICT (id) DO UPDATE SET code = excluded.code, signs = excluded.signs;"
        )
    # Indexes last, built over all rows at once, under the names that PostgreSQL would choose.
    bare = name.rsplit(".", maxsplit=1)[-1].strip('"')
    for column, operators in (("code", "bit_hamming_ops"), ("signs", "halfvec_ip_ops")):
        yield f'CREATE INDEX IF NOT EXISTS "{bare[:52]}_{column}_idx" ON {name} USING hnsw ({column} {operators});'


def _digits(code: list[int]) -> str:
    return "".join("1" if sign > 0 else "0" for sign in code)


def _check_order(bit_order: str) -> None:
    if bit_order not in ("little", "big"):
        raise ValueError(f"bit_order must be 'little' or 'big', found {bit_order!r}.")
