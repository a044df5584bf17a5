"""Digests of everything that determines a training run; a checkpoint stores them to recognise its own run.

A digest covers values and settings, not places: arrays and tensors by their bytes, objects by their class and their
attributes, functions by their code and what they enclose. Parameters of a module count by their shape alone, since
training changes them and a checkpoint holds them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes, Path)
_NAMED = (type, types.BuiltinFunctionType, types.ModuleType, np.ufunc)
_BLOCK = 1 << 24  # bytes of an array hashed at a time


def fingerprint(*values: Any) -> str:
    """SHA-256 of the values, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    seen: dict[int, Any] = {}  # keeps the objects alive, so that no other object gets their id
    for value in values:
        _add(digest, value, seen)
    return digest.hexdigest()


def fingerprint_files(paths: Iterable[str | Path]) -> str:
    """SHA-256 of the sizes and the modification times of files, in their order; their content is not read."""
    digest = hashlib.sha256()
    for path in paths:
        found = os.stat(path)
        digest.update(f"{found.st_size} {found.st_mtime_ns};".encode())
    return digest.hexdigest()


def _add(digest: Any, value: Any, seen: dict[int, Any]) -> None:
    torch = sys.modules.get("torch")  # without it there are no tensors
    if isinstance(value, _PLAIN):
        digest.update(f"{type(value).__name__} {value!r};".encode())
    elif isinstance(value, (np.ndarray, np.generic)):
        _add_array(digest, np.asarray(value))
    elif torch is not None and isinstance(value, torch.nn.Parameter):
        digest.update(f"parameter {tuple(value.shape)} {value.dtype};".encode())
    elif torch is not None and isinstance(value, torch.Tensor):
        _add_tensor(digest, value)
    elif isinstance(value, _NAMED):
        digest.update(f"named {getattr(value, '__module__', '')}.{value.__name__};".encode())
    elif id(value) in seen:
        digest.update(b"again;")
    else:
        seen[id(value)] = value
        digest.update(f"{type(value).__module__}.{type(value).__qualname__}(".encode())
        for part in _parts(value):
            _add(digest, part, seen)
        digest.update(b")")


def _parts(value: Any) -> Iterable[Any]:
    """What an object consists of."""
    if isinstance(value, dict):
        return [item for pair in value.items() for item in pair]
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.FunctionType):
        enclosed = [_content(cell) for cell in value.__closure__ or ()]
        return [value.__code__, value.__defaults__, value.__kwdefaults__, enclosed]
    if isinstance(value, types.CodeType):
        return [value.co_qualname, value.co_code, value.co_names, value.co_consts]
    return _attributes(value)


def _attributes(value: Any) -> Iterable[Any]:
    named = dict(vars(value)) if hasattr(value, "__dict__") else {}
    for cls in type(value).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                named[name] = getattr(value, name)
    if hasattr(value, "get_state"):  # a random generator of torch
        named["state"] = value.get_state()
    if isinstance(value, np.random.Generator):
        named["state"] = value.bit_generator.state
    return [item for name in sorted(named) for item in (name, named[name])]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _add_array(digest: Any, array: np.ndarray) -> None:
    digest.update(f"array {array.shape} {array.dtype.str};".encode())
    if array.dtype == object:
        digest.update(repr(array.tolist()).encode())
        return
    rows = max(1, _BLOCK // max(1, array.nbytes // max(1, len(array)))) if array.ndim else 1
    for start in range(0, len(array), rows) if array.ndim else (0,):
        digest.update(np.ascontiguousarray(array[start : start + rows] if array.ndim else array).tobytes())


def _add_tensor(digest: Any, tensor: Any) -> None:
    import torch

    digest.update(f"tensor {tuple(tensor.shape)} {tensor.dtype};".encode())
    flat = tensor.detach().reshape(-1)
    step = _BLOCK // max(1, flat.element_size())
    for start in range(0, flat.numel(), step):
        digest.update(flat[start : start + step].cpu().contiguous().view(torch.uint8).numpy().tobytes())
