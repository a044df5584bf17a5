"""Codes of features or images, one block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.hasher import Hasher
from hbmp.images import Images, as_images, is_images

_ROWS, _IMAGES = 16_384, 1_024  # per block


def encode(model: Hasher, X: Any, *, progress: bool = False, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Encode features or images, one block of rows at a time.

    Parameters
    ----------
    model : Hasher
        A fitted model.
    X : array-like of shape (n, n_features), Images or path
        Features, or images.
    progress : bool, default=False
        Show a progress bar on a terminal.
    out : ndarray of shape (n, n_bits) int8, or (n, ceil(n_bits / 8)) uint8, default=None
        Array to write to. Codes are packed where it is uint8.

    Returns
    -------
    ndarray
        `out`, or signs (n, n_bits) int8.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp import get_method
    >>> from hbmp.database import encode
    >>> X = np.random.default_rng(0).standard_normal((50, 8))
    >>> encode(get_method("lsh")(16, random_state=0).fit(X), X).shape
    (50, 16)
    """
    X = rows_of(X)
    codes = np.empty((len(X), model.n_bits), dtype=np.int8) if out is None else out
    for rows, _, block in blocks_of(model, X, progress=progress):
        codes[rows] = hamming.pack(block) if codes.dtype == np.uint8 else block
    return codes


def rows_of(X: Any) -> Any:
    """Images, or features of shape (n, d)."""
    if is_images(X):
        return as_images(X)
    if np.ndim(X) != 2:
        raise ValueError(f"Features must have shape (n, d), found {np.shape(X)}.")
    return X


def blocks_of(model: Hasher, X: Any, *, progress: bool = False) -> Iterator[tuple[slice, Any, NDArray[np.int8]]]:
    """Blocks of `rows_of`, each with its place and its codes."""
    from tqdm import tqdm

    images = isinstance(X, Images)
    rows, unit = (_IMAGES, "image") if images else (_ROWS, "row")
    with tqdm(total=len(X), desc="encoding", unit=unit, disable=None if progress else True) as bar:
        for start in range(0, len(X), rows):
            part = slice(start, min(start + rows, len(X)))
            block = X[part] if images else np.asarray(X[part])
            yield part, block, model.transform(block)
            bar.update(part.stop - part.start)
