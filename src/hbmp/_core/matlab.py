"""MATLAB files of version 5 to 7, read without the C code of other libraries, which damaged files can crash.

    128 bytes    text, version, byte order ("IM" or "MI")
    elements     type (4), size (4), data, padded to 8 bytes; or type (2), size (2) and at most 4 bytes of data
    miCOMPRESSED an element in zlib's format      miMATRIX   flags, shape, name, then what its class needs

Numbers, texts, cells and structures are read; everything else becomes None. Each size is checked against what is left
of the file before it is used.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _CHAR = 1, 2, 4
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_COMPLEX = 0x0800
_DEEPEST = 50  # structures inside structures
_MOST_BYTES = 1 << 33  # of one element after decompression


class NotMatlab(ValueError):
    """Bytes that are no MATLAB file of these versions."""


def read_matlab(path: Path, names: Collection[str]) -> dict[str, Any]:
    """The variables of these names: arrays, texts, lists for cells, and dicts (or lists of dicts) for structures."""
    content = memoryview(path.read_bytes())
    orders = {b"IM": "<", b"MI": ">"}
    order = orders.get(bytes(content[126:128]))
    if order is None:
        raise NotMatlab("its header has no byte order, as files of version 5 to 7 have")
    found: dict[str, Any] = {}
    rest = content[128:]
    while len(rest) >= 8:
        kind, data, rest = _element(rest, order, padded=False)
        if kind == _COMPRESSED:
            kind, data, _ = _element(_decompressed(data), order)
        if kind == _MATRIX:
            name, value = _matrix(data, order, names, 0)
            if name in names:
                found[name] = value
    return found


def _decompressed(data: memoryview) -> memoryview:
    unpacker = zlib.decompressobj()
    whole = unpacker.decompress(data, _MOST_BYTES)
    if not unpacker.eof:
        raise NotMatlab("a compressed element is cut short or too large")
    return memoryview(whole)


def _element(data: memoryview, order: str, *, padded: bool = True) -> tuple[int, memoryview, memoryview]:
    """Type and data of the first element, and what comes after it. Elements of the file itself are not padded."""
    if len(data) < 8:
        raise NotMatlab("an element is cut short")
    kind, size = (int(number) for number in np.frombuffer(data[:8], f"{order}u4"))
    if kind >> 16:  # a small element
        kind, size, start = kind & 0xFFFF, kind >> 16, 4
        end = 8
        if size > 4:
            raise NotMatlab("a small element is too large")
    else:
        start = 8
        end = 8 + (-(-size // 8) * 8 if padded else size)
    if start + size > len(data):
        raise NotMatlab("an element is cut short")
    return kind, data[start : start + size], data[end:]


def _matrix(data: memoryview, order: str, names: Collection[str] | None, depth: int) -> tuple[str, Any]:
    """Name and value of a matrix; only requested values are read. names: None for all."""
    if depth > _DEEPEST:
        raise NotMatlab("its structures are nested too deeply")
    if not len(data):
        return "", np.empty((0, 0))
    _, flags, data = _element(data, order)
    flag = int(np.frombuffer(flags[:4], f"{order}u4")[0])
    _, lengths, data = _element(data, order)
    shape = tuple(int(length) for length in np.frombuffer(lengths, f"{order}i4"))
    _, name, data = _element(data, order)
    text = bytes(name).decode("ascii")
    if names is not None and text not in names:
        return text, None
    if not 2 <= len(shape) <= 32 or min(shape) < 0:
        raise NotMatlab(f"a matrix has shape {shape}")
    return text, _value(flag, shape, data, order, depth)


def _value(flag: int, shape: tuple[int, ...], data: memoryview, order: str, depth: int) -> Any:
    kind = flag & 0xFF
    if kind in _CLASSES:
        if flag & _COMPLEX:
            raise NotMatlab("a matrix has complex numbers")
        return _numbers(shape, data, order, _CLASSES[kind])
    if kind == _CHAR:
        return _text(data, order)
    if kind == _CELL:
        return _values(_count(shape, data), data, order, depth)[0]
    return _structures(shape, data, order, depth) if kind == _STRUCT else None


def _count(shape: tuple[int, ...], data: memoryview) -> int:
    """The number of elements, each of which takes at least 8 bytes."""
    n = 1
    for length in shape:
        n *= length
    if 8 * n > len(data):
        raise NotMatlab(f"a matrix of shape {shape} is cut short")
    return n


def _numbers(shape: tuple[int, ...], data: memoryview, order: str, dtype: str) -> NDArray[Any]:
    stored, raw, _ = _element(data, order)
    if stored not in _NUMBERS:
        raise NotMatlab(f"numbers have type {stored}")
    values = np.frombuffer(raw, f"{order}{_NUMBERS[stored]}")
    n = 1
    for length in shape:
        n *= length
    if len(values) != n:
        raise NotMatlab(f"a matrix of shape {shape} holds {len(values)} numbers")
    return values.astype(dtype, copy=False).reshape(shape, order="F")


def _text(data: memoryview, order: str) -> str:
    stored, raw, _ = _element(data, order)
    if stored in _TEXTS:
        ending = "" if stored == 16 else "-le" if order == "<" else "-be"
        return bytes(raw).decode(_TEXTS[stored] + ending)
    if stored not in _NUMBERS or stored in (7, 9):
        raise NotMatlab(f"a text has type {stored}")
    return "".join(map(chr, np.frombuffer(raw, f"{order}{_NUMBERS[stored]}").tolist()))


def _values(n: int, data: memoryview, order: str, depth: int) -> tuple[list[Any], memoryview]:
    """The next n matrices, and what comes after them."""
    found = []
    for _ in range(n):
        kind, inner, data = _element(data, order)
        if kind != _MATRIX:
            raise NotMatlab(f"a matrix has type {kind}")
        found.append(_matrix(inner, order, None, depth + 1)[1])
    return found, data


def _structures(shape: tuple[int, ...], data: memoryview, order: str, depth: int) -> Any:
    """One structure as a dict, several as a list, in MATLAB's order."""
    _, width, data = _element(data, order)
    longest = int(np.frombuffer(width[:4], f"{order}i4")[0])
    _, raw, data = _element(data, order)
    if longest < 1 or len(raw) % longest:
        raise NotMatlab("the names of a structure are cut short")
    names = [bytes(raw[at : at + longest]).split(b"\0")[0].decode() for at in range(0, len(raw), longest)]
    n = _count(shape, data) if names else 0
    found = []
    for _ in range(n):
        values, data = _values(len(names), data, order, depth)
        found.append(dict(zip(names, values, strict=True)))
    return found[0] if len(found) == 1 else found
