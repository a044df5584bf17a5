"""Safe unpacking of archives: only plain files and folders, only below the given folder.

Absolute names, `..`, links, devices and archives larger than announced are refused, and then nothing is left behind: an
archive is unpacked into a folder of its own first and its files are moved into place once all of it has been checked.
Files are written without rights to execute.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO

from hbmp._core.reading import first_line

_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_MOST_MEMBERS = 2_000_000
_BLOCK = 1 << 20
_DAMAGES = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    lzma.LZMAError,
    EOFError,
    zlib.error,
    NotImplementedError,  # a method of compression that Python does not know
    UnicodeError,
    OverflowError,
)
_OF_DAMAGE = (errno.EINVAL, errno.ENAMETOOLONG)  # an offset before the start of the file, a name that cannot be


def is_archive(path) -> bool:
    """Whether a file name has the ending of a supported archive."""
    return str(path).lower().endswith(_ENDINGS)


def unpack(archive: Path, folder: Path, *, bound: int) -> dict[str, int]:
    """Unpack a tar or zip file into a folder; bytes of each file by its name. bound: the most bytes it may hold."""
    members = _zip_members if archive.name.lower().endswith(".zip") else _tar_members
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder) as beside:
        try:
            sizes = _write_all(members(archive), Path(beside), bound, archive)
        except _DAMAGES as error:
            raise ValueError(f"{archive} is not a whole archive ({_reason(error)}); fetch it again.") from error
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise ValueError(f"{archive} holds one name twice ({error}); nothing of it was unpacked.") from error
        except OSError as error:
            if error.errno not in _OF_DAMAGE:
                raise
            raise ValueError(f"{archive} is not a whole archive ({error.strerror}); fetch it again.") from error
        for name in sizes:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(beside, name), folder / name)
    return sizes


def _reason(error: Exception) -> str:
    return first_line(error).removesuffix(":")  # tarfile lists below what each decompressor said


def _write_all(members: Iterator[tuple[str, IO[bytes]]], folder: Path, bound: int, archive: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    left = bound
    for name, source in members:
        target = folder / _safe_name(name, archive)
        target.parent.mkdir(parents=True, exist_ok=True)
        with source, target.open("xb") as file:
            left -= _copy(source, file, left, archive)
        sizes[target.relative_to(folder).as_posix()] = target.stat().st_size
        if len(sizes) > _MOST_MEMBERS:
            raise ValueError(f"{archive} holds more than {_MOST_MEMBERS} files; nothing of it was unpacked.")
    return sizes


def _copy(source: IO[bytes], file: IO[bytes], left: int, archive: Path) -> int:
    copied = 0
    while block := source.read(_BLOCK):
        copied += len(block)
        if copied > left:
            raise ValueError(f"{archive} unpacks to more bytes than its data set has; nothing of it was unpacked.")
        file.write(block)
    return copied


def _safe_name(name: str, archive: Path) -> str:
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or not path.parts
    if outside or "\\" in name or "\0" in name or ":" in path.parts[0]:
        raise ValueError(f"{archive} holds {name!r}, a name outside its own folder; nothing of it was unpacked.")
    return str(path)


def _tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            if member.isdir():
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise ValueError(f"{archive} holds {member.name!r}, a link or device; nothing of it was unpacked.")
            yield member.name, content


def _zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with closing(zipfile.ZipFile(archive)) as zipped:
        for member in zipped.infolist():
            if member.filename and member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG) or member.flag_bits & 0x1:
                raise ValueError(
                    f"{archive} holds {member.filename!r}, a link, a device or encrypted; nothing of it was unpacked."
                )
            yield member.filename, zipped.open(member)
