"""The file of an index: written whole or not at all, and checked before any of it is used.

    8 bytes    b"HBMPIDX\\0"
    4 + 4      format number, length of the header; little-endian unsigned
    32 bytes   SHA-256 of the header (since format 2)
    header     JSON: what the index is, and where each array lies ("sections": name, offset, dtype, shape)
    arrays     raw, little-endian, each at a multiple of 64 bytes
    32 bytes   SHA-256 of everything before

A later format gets a new number; readers of the old ones are kept. Arrays have one of a few fixed dtypes and lie within
the file, whatever the header claims. They are read into memory, so a file that is cut or overwritten later cannot harm
a process that has loaded it; mapping the file instead is a choice of the caller.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.files import beside
from hbmp._core.files import naming as named
from hbmp._core.reading import json_object

FORMAT = 2
DTYPES = ("|u1", "<u2", "<i4", "<i8", "<f4", "<f8")  # all that an index file may hold
_MAGIC = b"HBMPIDX\0"
_START = struct.Struct("<8sII")
_ALIGNMENT = 64
_DIGEST_BYTES = 32
_BYTES_AT_ONCE = 1 << 24


class Damaged(Exception):
    """Contents of an index file that cannot be; becomes one sentence with the file's name."""


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write header and arrays beside `path` and rename the file into place."""
    sections, start = _lay_out(header, arrays)
    with replacing(path) as temporary, named(path), open(temporary, "wb") as file:
        digest = hashlib.sha256()
        for piece in _pieces(start, sections, arrays):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())


def read(
    path: str | os.PathLike[str], verify: bool = True, mapped: bool = False
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and read-only arrays of a file of any format up to this one; `verify` compares the checksum of it all."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no index at {path}; {_instead(path)}")
    with open(path, "rb") as file, naming(path):
        size = os.fstat(file.fileno()).st_size
        header, first = _read_header(file, path, size)
        sections = {name: _checked_section(name, section, first, size) for name, section in _sections(header).items()}
        whole = np.memmap(file, np.uint8, mode="r").view(np.ndarray) if mapped else _read_whole(file, size)
        if verify and hashlib.sha256(whole[:-_DIGEST_BYTES].data).digest() != whole[-_DIGEST_BYTES:].tobytes():
            raise ValueError(f"{path} has been altered: its checksum does not match. Save the index again.")
        return header, {name: _array(whole, *section) for name, section in sections.items()}


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn `Damaged` into a sentence for users."""
    try:
        yield
    except Damaged as error:
        raise ValueError(f"{path} is damaged: {error}. Save the index again.") from None


def _instead(path: Path) -> str:
    if (path / "index.hbmp").is_file():
        return "it is a whole database, which `hbmp.Database.load` opens."
    return "`Index.save` writes one."


def _read_header(file: BufferedReader, path: Path, size: int) -> tuple[dict[str, Any], int]:
    """The header, and where the first array can lie."""
    start = file.read(_START.size)
    if len(start) < _START.size or not start.startswith(_MAGIC):
        raise ValueError(f"{path} is not an index saved by hbmp.")
    _, number, length = _START.unpack(start)
    if number not in range(1, FORMAT + 1):
        raise ValueError(f"{path} was saved in format {number}; this version reads up to {FORMAT}. Upgrade hbmp.")
    digest = file.read(_DIGEST_BYTES) if number > 1 else None
    if length > size:
        raise Damaged("its header cannot be read")
    text = file.read(length)
    if digest is not None and hashlib.sha256(text).digest() != digest:
        raise Damaged("the checksum of its header does not match")
    try:
        header = json_object(text)
    except ValueError as error:
        raise Damaged(f"its header cannot be read: {error}") from None
    expected = header.get("file_bytes")
    if not is_whole(expected):
        raise Damaged("its header cannot be read")
    if size != expected:
        raise ValueError(f"{path} should have {expected} bytes, found {size}: it is truncated. Save the index again.")
    return header, file.tell()


def is_whole(number: object, most: int = 2**63 - 1) -> bool:
    """Whether a value from JSON is an integer from 0 to `most`."""
    return type(number) is int and 0 <= number <= most


def _sections(header: dict[str, Any]) -> dict[str, Any]:
    sections = header.get("sections")
    if not isinstance(sections, dict):
        raise Damaged("its header lists no arrays")
    return sections


def _checked_section(name: str, section: object, first: int, size: int) -> tuple[int, np.dtype, tuple[int, ...]]:
    """Offset, dtype and shape of an array that lies between the header and the closing checksum."""
    found: dict[str, Any] = section if isinstance(section, dict) else {}
    offset: Any
    offset, kind, shape = found.get("offset"), found.get("dtype"), found.get("shape")
    if not isinstance(kind, str) or kind not in DTYPES:
        raise Damaged(f"the array {name!r} has dtype {kind!r}, and an index holds only {', '.join(DTYPES)}")
    if not isinstance(shape, list) or len(shape) not in (1, 2) or not all(is_whole(length, size) for length in shape):
        raise Damaged(f"the array {name!r} has shape {shape!r}")
    dtype = np.dtype(kind)
    n_bytes = dtype.itemsize * int(np.prod([int(length) for length in shape], dtype=object))
    if not is_whole(offset, size) or offset % _ALIGNMENT:
        raise Damaged(f"the array {name!r} lies at {offset!r}")
    if n_bytes and not first <= offset <= size - _DIGEST_BYTES - n_bytes:
        raise Damaged(f"the array {name!r} lies outside the file")
    return offset, dtype, tuple(shape)


def _read_whole(file: BufferedReader, size: int) -> NDArray[np.uint8]:
    """The bytes of a file, in memory that starts at a multiple of the alignment."""
    room = np.empty(size + _ALIGNMENT, np.uint8)
    shift = -room.ctypes.data % _ALIGNMENT
    whole = room[shift : shift + size]
    file.seek(0)
    if file.readinto(whole.data) != size:
        raise Damaged("it was cut while it was read")
    whole.flags.writeable = False
    return whole


def _array(whole: NDArray[np.uint8], offset: int, dtype: np.dtype, shape: tuple[int, ...]) -> NDArray[Any]:
    n_bytes = dtype.itemsize * int(np.prod(shape))
    if n_bytes == 0:
        return np.empty(shape, dtype)
    return whole[offset : offset + n_bytes].view(dtype).reshape(shape)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """A temporary name in the same folder that becomes `path` if the block ends well, and vanishes if not."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with beside(target) as temporary:
        yield os.fspath(temporary)


def _lay_out(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> tuple[dict[str, dict[str, Any]], bytes]:
    """Where each array goes, and the bytes before the first. The header holds offsets, which depend on its length."""
    before = _START.size + _DIGEST_BYTES
    room = _round_up(before + len(json.dumps(header)) + 160 * (len(arrays) + 1))
    sections, offset = {}, room
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<").str
        sections[name] = {"offset": offset, "dtype": dtype, "shape": list(array.shape)}
        offset = _round_up(offset + array.nbytes)
    whole = {**header, "sections": sections, "file_bytes": offset + _DIGEST_BYTES}
    text = json.dumps(whole).encode().ljust(room - before)
    return sections, _START.pack(_MAGIC, FORMAT, len(text)) + hashlib.sha256(text).digest() + text


def _pieces(
    start: bytes, sections: dict[str, dict[str, Any]], arrays: dict[str, NDArray[Any]]
) -> Iterator[bytes | memoryview]:
    yield start
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array, sections[name]["dtype"]).reshape(-1).view(np.uint8)
        for first in range(0, len(raw), _BYTES_AT_ONCE):
            yield raw[first : first + _BYTES_AT_ONCE].data
        yield bytes(_round_up(len(raw)) - len(raw))


def _round_up(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT
