"""Codes of features, images or texts, one block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hbmp import hamming
from hbmp._core.progress import counted
from hbmp._core.texts import as_texts, is_texts
from hbmp.hasher import Hasher
from hbmp.images import Images, as_images, is_images

_ROWS, _ITEMS = 16_384, 1_024  # per block: rows of features, images or texts


def encode(model: Hasher, X: Any, *, progress: bool = False, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Encode features, images or texts, one block of rows at a time.

    Parameters
    ----------
    model : Hasher
        A fitted model.
    X : array-like of shape (n, n_features), Images, path or list of str
        Features, images, or texts for a model that has an encoder.
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
    items = items_of(model, X)
    codes = np.empty((len(items), model.n_bits), dtype=np.int8) if out is None else out
    for rows, _, block in blocks_of(model, items, progress=progress):
        codes[rows] = hamming.pack(block) if codes.dtype == np.uint8 else block
    return codes


def items_of(model: Hasher, X: Any) -> Any:
    """Rows that can be cut into blocks: texts, images, or features of shape (n, d)."""
    encoder = getattr(model, "input_encoder_", None)
    if is_texts(X) and (getattr(encoder, "takes", None) == "texts" or not is_images(X)):
        return as_texts(X)
    if is_images(X):
        return as_images(X)
    if sparse.issparse(X):
        return X.toarray()
    if np.ndim(X) != 2:
        raise ValueError(f"Features must have shape (n, d), found {np.shape(X)}.")
    return X


def vectors_of(model: Hasher, X: Any) -> Any:
    """The vectors of texts or images by the encoder of a model; anything else as it is."""
    encoder = getattr(model, "input_encoder_", None)
    return encoder.encode(X) if encoder is not None and encoder.accepts(X) else X


def blocks_of(model: Hasher, items: Any, *, progress: bool = False) -> Iterator[tuple[slice, Any, NDArray[np.int8]]]:
    """Blocks of `items_of`: their place, their vectors or images, and their codes."""
    unit = "image" if isinstance(items, Images) else "row" if np.ndim(items) == 2 else "text"
    size = _ROWS if unit == "row" else _ITEMS
    with counted("encoding", len(items), unit, show=progress) as done:
        for start in range(0, len(items), size):
            rows = slice(start, min(start + size, len(items)))
            part = items[rows]
            block = np.asarray(part) if unit == "row" else vectors_of(model, part)
            yield rows, block, model.transform(block)
            done(rows.stop - rows.start)
