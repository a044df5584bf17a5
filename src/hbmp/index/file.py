"""The file of an index, format 1: readable by memory map, written whole or not at all.

    8 bytes    b"HBMPIDX\\0"
    4 + 4      format number, length of the header; little-endian unsigned
    header     JSON: what the index is, and where each array lies ("sections": name, offset, dtype, shape)
    arrays     raw, little-endian, each at a multiple of 64 bytes
    32 bytes   SHA-256 of everything before

A later format gets a new number and a new reader; the readers of the old ones stay.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
_MAGIC = b"HBMPIDX\0"
_START = struct.Struct("<8sII")
_ALIGNMENT = 64
_DIGEST_BYTES = 32
_BYTES_AT_ONCE = 1 << 24


def write(path: str | os.PathLike, header: dict, arrays: dict[str, NDArray]) -> None:
    """Write header and arrays beside `path` and rename the file into place."""
    sections, start = _lay_out(header, arrays)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        digest = hashlib.sha256()
        for piece in _pieces(start, sections, arrays):
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())


def read(path: str | os.PathLike, verify: bool = True) -> tuple[dict, dict[str, NDArray]]:
    """Header and read-only memory-mapped arrays of a file of any format up to this one; `verify` reads it all once."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no index at {path}; {_instead(path)}")
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(_START.size)
        if len(start) < _START.size or not start.startswith(_MAGIC):
            raise ValueError(f"{path} is not an index saved by hbmp.")
        _, number, header_length = _START.unpack(start)
        if number not in _READERS:
            raise ValueError(f"{path} was saved in format {number}; this version reads up to {FORMAT}. Upgrade hbmp.")
        header_bytes = file.read(header_length)
    try:
        header = json.loads(header_bytes)
        expected = header["file_bytes"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged: its header cannot be read. Save the index again.") from None
    if size != expected:
        raise ValueError(f"{path} should have {expected} bytes, found {size}: it is truncated. Save the index again.")
    if verify and not _digest_matches(path, size):
        raise ValueError(f"{path} has been altered: its checksum does not match. Save the index again.")
    return _READERS[number](path, header)


def _instead(path: Path) -> str:
    if (path / "index.hbmp").is_file():
        return "it is a whole database, which `hbmp.Database.load` opens."
    return "`Index.save` writes one."


def _read_format_1(path: Path, header: dict) -> tuple[dict, dict[str, NDArray]]:
    arrays = {}
    for name, section in header["sections"].items():
        dtype, shape = np.dtype(section["dtype"]), tuple(section["shape"])
        if 0 in shape:  # an empty range cannot be mapped
            arrays[name] = np.empty(shape, dtype)
        else:
            mapped = np.memmap(path, dtype, mode="r", offset=section["offset"], shape=shape)
            arrays[name] = mapped.view(np.ndarray)
    return header, arrays


_READERS: dict[int, Callable[[Path, dict], tuple[dict, dict[str, NDArray]]]] = {1: _read_format_1}


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[str]:
    """A temporary name in the same folder that becomes `path` if the block ends well, and vanishes if not."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp gives a private file; a saved index is an ordinary one
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _lay_out(header: dict, arrays: dict[str, NDArray]) -> tuple[dict[str, dict], bytes]:
    """Where each array goes, and the bytes before the first. The header holds offsets, which depend on its length."""
    room = _round_up(_START.size + len(json.dumps(header)) + 160 * (len(arrays) + 1))
    sections, offset = {}, room
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<").str
        sections[name] = {"offset": offset, "dtype": dtype, "shape": list(array.shape)}
        offset = _round_up(offset + array.nbytes)
    whole = {**header, "sections": sections, "file_bytes": offset + _DIGEST_BYTES}
    text = json.dumps(whole).encode().ljust(room - _START.size)
    return sections, _START.pack(_MAGIC, FORMAT, len(text)) + text


def _pieces(start: bytes, sections: dict[str, dict], arrays: dict[str, NDArray]) -> Iterator[bytes | memoryview]:
    yield start
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array, sections[name]["dtype"]).reshape(-1).view(np.uint8)
        for first in range(0, len(raw), _BYTES_AT_ONCE):
            yield raw[first : first + _BYTES_AT_ONCE].data
        yield bytes(_round_up(len(raw)) - len(raw))


def _digest_matches(path: Path, size: int) -> bool:
    digest, left = hashlib.sha256(), size - _DIGEST_BYTES
    with open(path, "rb") as file:
        while left:
            piece = file.read(min(left, _BYTES_AT_ONCE))
            if not piece:
                return False
            digest.update(piece)
            left -= len(piece)
        return file.read() == digest.digest()


def _round_up(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT
