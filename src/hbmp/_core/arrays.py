"""Arrays from NumPy files without pickle, with a clear error for a truncated file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hbmp._core.reading import reading


def read_npy(path: Path) -> np.ndarray:
    """A `.npy` file, memory-mapped read-only."""
    with reading(path, "an array"):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Every array of a `.npz` file by name."""
    # NumPy leaves a file that it opened itself open where the content is no archive.
    with reading(path, "arrays"), open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def as_features(values, source) -> np.ndarray:
    """Features as (n, d) float16 or float32; other number types become float32."""
    if values is None:
        raise ValueError(f"{source} holds no array called 'features'.")
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise ValueError(
            f"Features must be an (n, d) array of numbers; {source} holds {values.dtype} of shape {values.shape}."
        )
    return values if values.dtype in (np.float16, np.float32) else np.asarray(values, dtype=np.float32)


def as_names(arrays: dict, source) -> tuple[str, ...]:
    """The names of the labels, from `classes` or `label_names`; none if neither exists."""
    named = arrays.get("classes", arrays.get("label_names", ()))
    if np.ndim(named) != 1:
        raise ValueError(f"The names of labels must be a list; those of {source} have shape {np.shape(named)}.")
    return tuple(str(name) for name in named)


def as_labels(values, source) -> np.ndarray:
    """Labels as (n,) classes, or (n, c) 0/1 as uint8."""
    values = np.asarray(values)
    if values.ndim == 1 and values.dtype.kind in "biufUO":
        return values
    if values.ndim != 2 or values.dtype.kind not in "fiub" or not ((values == 0) | (values == 1)).all():
        raise ValueError(
            f"Labels must be (n,) classes, as numbers or texts, or an (n, labels) matrix of 0 and 1; "
            f"the labels of {source} are {values.dtype} of shape {values.shape}."
        )
    return values.astype(np.uint8)
