"""New .npy files that are mapped into memory, with their whole size reserved on the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_BLOCK = bytes(1 << 20)
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def new_npy(path: str | Path, dtype: DTypeLike, shape: tuple[int, ...], name: str | Path) -> NDArray[Any]:
    """Create a .npy file of zeros and map it; its whole size is reserved on the disk, so that no write can fail later.

    `name` is the path in an error message.
    """
    with open(path, "wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        try:
            _reserve(file, size)
        except OSError as error:
            raise OSError(f"{name} needs {size:,} bytes, which could not be reserved: {error.strerror}.") from error
    return np.lib.format.open_memmap(path, mode="r+")


def _reserve(file: Any, n_bytes: int) -> None:
    """Allocate bytes after the current position; by zeros where the system has no call for it."""
    if not n_bytes:
        return
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), file.tell(), n_bytes)
            return
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    for start in range(0, n_bytes, len(_BLOCK)):
        file.write(_BLOCK[: n_bytes - start])
    file.flush()
    os.fsync(file.fileno())
