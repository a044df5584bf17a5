"""Weights inside installed packages: a package is located, not imported, and its data files are read."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.reading import reading


def package_folder(package: str, user: str, remedy: str) -> Path:
    """The folder of an installed package. ImportError names the remedy if there is none."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        raise ImportError(f"{user} needs the weights in the package {package!r}: {remedy}")
    return Path(places[0])


def only_file(folder: Path, pattern: str, user: str) -> Path:
    """The one file of a folder that fits a pattern."""
    found = sorted(folder.glob(pattern)) if folder.is_dir() else []
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise ValueError(f"{user} reads one file {pattern} in {folder}, found {names}.")
    return found[0]


def read_tokenizer(path: Path, user: str) -> Any:
    """A tokenizer from its JSON file."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ImportError(f"{user} needs tokenizers: pip install 'hbmp[text]'.") from None
    with reading(path, "a tokenizer", "get the file again"):
        return Tokenizer.from_file(str(path))


def read_table(path: Path, user: str) -> NDArray[np.float32]:
    """The only matrix of a safetensors file, (n_tokens, n_features)."""
    from safetensors.numpy import load_file

    with reading(path, "safetensors", "get the file again"):
        tensors = load_file(path)
    matrices = [tensor for tensor in tensors.values() if tensor.ndim == 2]
    if len(tensors) != 1 or not matrices:
        shapes = ", ".join(f"{name} {tensor.shape}" for name, tensor in tensors.items()) or "nothing"
        raise ValueError(f"{user} reads one table of token vectors; {path} holds {shapes}.")
    table = matrices[0].astype(np.float32)
    if not np.isfinite(table).all():
        raise ValueError(f"{path} holds infinite or missing numbers; get the file again.")
    return table


def file_bytes(path: Path) -> bytes:
    """The digest of a file, as part of another. Spaces and line ends of JSON do not count."""
    if path.suffix == ".json":
        with reading(path, "JSON", "get the file again"):
            return json.dumps(json.loads(path.read_bytes()), sort_keys=True, separators=(",", ":")).encode()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
