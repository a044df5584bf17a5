"""Codes of features or images, one block of rows at a time."""

from __future__ import annotations

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
    from tqdm import tqdm

    images = is_images(X)
    X = as_images(X) if images else X
    if not images and np.ndim(X) != 2:
        raise ValueError(f"Features must have shape (n, d), found {np.shape(X)}.")
    rows = _IMAGES if images else _ROWS
    codes = np.empty((len(X), model.n_bits), dtype=np.int8) if out is None else out
    unit = "image" if images else "row"
    with tqdm(total=len(X), desc="encoding", unit=unit, disable=None if progress else True) as bar:
        for start in range(0, len(X), rows):
            part = X[start : start + rows]
            block = model.transform(part if isinstance(part, Images) else np.asarray(part))
            codes[start : start + rows] = hamming.pack(block) if codes.dtype == np.uint8 else block
            bar.update(len(block))
    return codes
