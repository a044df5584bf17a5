"""Exact distances to packed codes, and the sort keys that order results by (distance, position).

A few candidates of each query are unpacked and multiplied; all rows go through tables of v·u for every value of every
byte, one look-up a byte. All sums lie on the exact grid of `hamming.query_terms`: they equal `hamming.distances` bit
for bit, whatever the order of addition.

A result is one 64-bit integer: the float32 distance with its bits made ascending, then the position. Sorting integers
is fast, and the order is total: equal distances come in the order of positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.index.query import QueryBatch

ROWS_AT_ONCE = 1 << 16
_TABLES_AT_ONCE = 256  # queries whose byte tables are held at a time
_CACHED_VALUES = 1 << 17  # doubles, a megabyte: unpacked candidates that stay in the cache
_POSITION_BITS = np.uint64(0xFFFFFFFF)
_MISSING = np.iinfo(np.uint64).max  # the key of a result that does not exist: it sorts last


def nearest_of_all(rows: NDArray[np.uint8], batch: QueryBatch, k: int) -> NDArray[np.uint64]:
    """Keys (n, min(k, n_rows)) of the nearest rows by measuring every row."""
    at_once = max(1, min(_TABLES_AT_ONCE, (1 << 20) // max(1, len(rows))))
    blocks = [batch.select(slice(start, start + at_once)) for start in range(0, len(batch), at_once)]
    return np.concatenate([_nearest_of_all_block(rows, block, k) for block in blocks])


def _nearest_of_all_block(rows: NDArray[np.uint8], batch: QueryBatch, k: int) -> NDArray[np.uint64]:
    tables = byte_tables(batch.vectors)
    best = np.empty((len(batch), 0), np.uint64)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        block = rows[start : start + ROWS_AT_ONCE]
        keys = make_keys(_distances_to_all(tables, batch.offsets, block), np.arange(start, start + len(block)))
        best = smallest(np.concatenate([best, keys], axis=1), k)
    return best


def all_within(rows: NDArray[np.uint8], query: QueryBatch, radius: float) -> NDArray[np.uint64]:
    """Sorted keys of every row at distance ≤ radius of one query."""
    tables = byte_tables(query.vectors)
    near = [np.empty(0, np.uint64)]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        found = _distances_to_all(tables, query.offsets, rows[start : start + ROWS_AT_ONCE])[0]
        positions = np.flatnonzero(found <= radius)
        near.append(make_keys(found[positions], positions + start))
    return np.sort(np.concatenate(near))


def byte_tables(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """v·u of every value of every byte: (n_queries, n_bytes, 256). Sums stay on the exact grid of `hamming`."""
    patterns = 2.0 * (np.arange(16)[:, None] >> np.arange(4) & 1) - 1
    nibbles = vectors.reshape(len(vectors), -1, 4) @ patterns.T  # (n, 2 * n_bytes, 16)
    low, high = nibbles[:, 0::2], nibbles[:, 1::2]
    return (high[:, :, :, None] + low[:, :, None, :]).reshape(len(vectors), -1, 256)


def _distances_to_all(tables: NDArray[Any], offsets: NDArray[Any], rows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Exact distances (n_queries, n_rows) to the same rows for every query."""
    products = np.take(tables[:, 0], rows[:, 0], axis=1)
    for byte in range(1, rows.shape[1]):
        products += np.take(tables[:, byte], rows[:, byte], axis=1)
    return _to_distances(products, offsets)


def exact_keys(rows: NDArray[np.uint8], batch: QueryBatch, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Sort keys (n, K) of each query's own candidates; position -1 gives the key that sorts last."""
    keys = np.empty(positions.shape, np.uint64)
    at_once = max(1, _CACHED_VALUES // max(1, positions.shape[1] * 8 * rows.shape[1]))
    for start in range(0, len(batch), at_once):
        some = slice(start, start + at_once)
        candidates = np.take(rows, positions[some], axis=0)  # (m, K, n_bytes)
        bits = np.unpackbits(candidates, axis=2, bitorder="little").astype(np.float64)
        vectors = batch.vectors[some]
        products = 2 * (bits @ vectors[:, :, None])[:, :, 0] - vectors.sum(axis=1)[:, None]  # bits 0/1 to signs
        keys[some] = make_keys(_to_distances(products, batch.offsets[some]), positions[some])
    keys[positions < 0] = _MISSING
    return keys


def _to_distances(products: NDArray[np.float64], offsets: NDArray[np.float64]) -> NDArray[np.float32]:
    np.subtract(offsets[:, None], products, out=products)
    products *= 0.5
    return products.astype(np.float32)


def make_keys(found: NDArray[np.float32], positions: NDArray[Any]) -> NDArray[np.uint64]:
    """One integer a result, which sorts by distance, then by position."""
    bits = (found + np.float32(0)).view(np.uint32)  # + 0 turns -0 into 0
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return ascending.astype(np.uint64) << np.uint64(32) | positions.astype(np.uint64) & _POSITION_BITS


def key_distances(keys: NDArray[np.uint64]) -> NDArray[np.float32]:
    """The distances in sort keys; inf for a missing result."""
    ascending = (keys >> np.uint64(32)).astype(np.uint32)
    bits = np.where(ascending >> 31, ascending & np.uint32(0x7FFFFFFF), ~ascending)
    return np.where(keys == _MISSING, np.float32(np.inf), bits.view(np.float32))


def split_keys(keys: NDArray[np.uint64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Distances and positions of sort keys; inf and -1 for a missing result."""
    positions = np.where(keys == _MISSING, np.int64(-1), (keys & _POSITION_BITS).astype(np.int64))
    return key_distances(keys), positions


def smallest(keys: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
    """The k smallest of every row, sorted."""
    if k < keys.shape[1]:
        keys = np.partition(keys, k - 1, axis=1)[:, :k]
    return np.sort(keys, axis=1)


def merge_results(
    parts: list[tuple[NDArray[Any], NDArray[Any]]], n_queries: int, k: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The k best by (distance, id) of several lists of distances and ids, padded with inf and -1 to (n_queries, k)."""
    if len(parts) == 1 and parts[0][0].shape[1] == k:
        return parts[0]
    found = np.concatenate([np.full((n_queries, k), np.inf, np.float32), *(part[0] for part in parts)], axis=1)
    ids = np.concatenate([np.full((n_queries, k), -1, np.int64), *(part[1] for part in parts)], axis=1)
    # A missing result has id -1 and must come after a real one at the same distance, infinity.
    order = np.lexsort((ids, ids < 0, found), axis=1)[:, :k]
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(ids, order, axis=1)
