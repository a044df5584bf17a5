"""Codes and encoders in the forms other systems take.

    form          for                               order of the bits in a byte
    bytes         FAISS, numpy, files, Milvus       little-endian here ("big" by argument)
    hex strings   Elasticsearch `element_type: bit` first bit highest
    int8          Vespa `tensor<int8>`              first bit highest, as its unpack_bits expects
    SQL           PostgreSQL with pgvector          bit(n) text, first bit first
    ONNX          onnxruntime and its like          scores float32, codes int8

Codes are signs (n, n_bits) in {-1, +1} everywhere; widths that are no multiple of 8 are padded with zero bits, and
reading back takes the width.
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
    """Codes (n, n_bits) as bytes (n, ceil(n_bits / 8)); `bit_order="big"` puts the first bit of eight highest."""
    _check_order(bit_order)
    return np.packbits(hamming.check_codes(codes) > 0, axis=1, bitorder=bit_order)


def from_bytes(packed: ArrayLike, n_bits: int, *, bit_order: BitOrder = "little") -> NDArray[np.int8]:
    """Bytes (n, ceil(n_bits / 8)), uint8, back to codes (n, n_bits)."""
    _check_order(bit_order)
    packed = np.asarray(packed)
    if bit_order == "big" and packed.dtype == np.uint8 and packed.ndim == 2:
        packed = np.packbits(np.unpackbits(packed, axis=1), axis=1, bitorder="little")
    return hamming.unpack(packed, n_bits)


def to_hex(codes: ArrayLike) -> list[str]:
    """Codes (n, n_bits) as n strings of two hexadecimal digits a byte, as Elasticsearch's bit vectors are written."""
    return [row.tobytes().hex() for row in to_bytes(codes, bit_order="big")]


def from_hex(texts: Iterable[str], n_bits: int) -> NDArray[np.int8]:
    """Hexadecimal strings back to codes (n, n_bits)."""
    texts, width = list(texts), hamming.bytes_for(n_bits)
    for text in texts:
        if len(text) != 2 * width or not set(text.lower()) <= set("0123456789abcdef"):
            raise ValueError(f"A code of {n_bits} bits is written in {2 * width} hexadecimal digits, found {text!r}.")
    packed = np.frombuffer(bytes.fromhex("".join(texts)), np.uint8).reshape(len(texts), width)
    return from_bytes(packed, n_bits, bit_order="big")


def to_int8(codes: ArrayLike) -> NDArray[np.int8]:
    """Codes (n, n_bits) as signed bytes (n, ceil(n_bits / 8)) for a Vespa field with `distance-metric: hamming`."""
    return to_bytes(codes, bit_order="big").view(np.int8)


def from_int8(packed: ArrayLike, n_bits: int) -> NDArray[np.int8]:
    """Signed bytes (n, ceil(n_bits / 8)), int8, back to codes (n, n_bits)."""
    packed = np.ascontiguousarray(packed)
    if packed.dtype != np.int8:
        raise ValueError(f"Signed bytes must have dtype int8, found {packed.dtype}.")
    return from_bytes(packed.view(np.uint8), n_bits, bit_order="big")


def to_sql(
    codes: ArrayLike, ids: ArrayLike, *, table: str = "hbmp_codes", rows_per_statement: int = 1000
) -> Iterator[str]:
    """SQL statements that make a pgvector table with these codes and its indexes, each ending in a semicolon.

    The table is the one `hbmp.stores.PGVector` opens. Running the statements again changes nothing.
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
            f"INSERT INTO {name} (id, code, signs) VALUES\n{values}\n"
            "ON CONFLICT (id) DO UPDATE SET code = excluded.code, signs = excluded.signs;"
        )
    # Indexes last: built over all rows at once. Their names are the ones PostgreSQL would choose.
    bare = name.rsplit(".", maxsplit=1)[-1].strip('"')
    for column, operators in (("code", "bit_hamming_ops"), ("signs", "halfvec_ip_ops")):
        yield f'CREATE INDEX IF NOT EXISTS "{bare[:52]}_{column}_idx" ON {name} USING hnsw ({column} {operators});'


def _digits(code: list[int]) -> str:
    return "".join("1" if sign > 0 else "0" for sign in code)


def _check_order(bit_order: str) -> None:
    if bit_order not in ("little", "big"):
        raise ValueError(f"bit_order must be 'little' or 'big', found {bit_order!r}.")
