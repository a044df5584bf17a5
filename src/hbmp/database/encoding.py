"""Codes of features, images or texts, one block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.texts import as_texts, is_texts
from hbmp.hasher import Hasher
from hbmp.images import as_images, is_images

_ROWS, _ITEMS = 16_384, 1_024  # per block: rows of features, images or texts


def encode(model: Hasher, X: Any, *, progress: bool = False, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Encode features, images or texts, one block of rows at a time.

    Parameters
    ----------
    model : Hasher
        A fitted model.
    X : array-like of shape (n, n_features), Images, path or list of str
        Features, images, or texts for a model that remembers its encoder.
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
    from tqdm import tqdm

    items, unit = _items(model, X)
    rows = _ROWS if unit == "row" else _ITEMS
    codes = np.empty((len(items), model.n_bits), dtype=np.int8) if out is None else out
    with tqdm(total=len(items), desc="encoding", unit=unit, disable=None if progress else True) as bar:
        for start in range(0, len(items), rows):
            part = items[start : start + rows]
            block = model.transform(np.asarray(part) if unit == "row" else part)
            codes[start : start + rows] = hamming.pack(block) if codes.dtype == np.uint8 else block
            bar.update(len(block))
    return codes


def _items(model: Hasher, X: Any) -> tuple[Any, str]:
    """Rows that can be cut into blocks, and what one is called."""
    encoder = getattr(model, "input_encoder_", None)
    if is_texts(X) and (getattr(encoder, "takes", None) == "texts" or not is_images(X)):
        return as_texts(X), "text"
    if is_images(X):
        return as_images(X), "image"
    if np.ndim(X) != 2:
        raise ValueError(f"Features must have shape (n, d), found {np.shape(X)}.")
    return X, "row"
