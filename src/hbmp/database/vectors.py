"""Original vectors as bytes, one row per item: float32, float16, or int8 with a scale for each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = ("float32", "float16", "int8")


def check_kind(kind: str) -> str:
    """The kind of vectors to keep."""
    if kind not in KINDS:
        raise ValueError(f"vectors must be one of {', '.join(KINDS)}, found {kind!r}.")
    return kind


def to_bytes(rows: NDArray[Any], kind: str) -> Iterator[bytes]:
    """Each row as bytes; an int8 row begins with its scale as float32."""
    rows = np.asarray(rows, dtype=np.float32)
    if not np.isfinite(rows).all():
        raise ValueError("The vectors hold NaN or infinity; only finite numbers can be kept.")
    if kind == "int8":
        scales = (np.abs(rows).max(axis=1, initial=0) / 127).astype("<f4")
        whole = np.rint(rows / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
        return (scale.tobytes() + row.tobytes() for scale, row in zip(scales, whole, strict=True))
    if kind == "float16" and np.abs(rows).max(initial=0) > np.finfo(np.float16).max:
        raise ValueError("The vectors hold numbers above 65504, which float16 cannot; use vectors='float32'.")
    return (row.tobytes() for row in rows.astype("<f2" if kind == "float16" else "<f4"))


def from_bytes(rows: Sequence[bytes], kind: str, dimension: int) -> NDArray[np.float32]:
    """The inverse of `to_bytes`, (n, dimension)."""
    joined = b"".join(rows)
    if kind != "int8":
        return np.frombuffer(joined, "<f2" if kind == "float16" else "<f4").reshape(-1, dimension).astype(np.float32)
    table = np.frombuffer(joined, np.int8).reshape(-1, dimension + 4)
    scales = np.ascontiguousarray(table[:, :4]).view("<f4")
    found: NDArray[np.float32] = np.multiply(table[:, 4:], scales, dtype=np.float32)
    return found
