"""Images by GIST: how much of each orientation, at each scale, lies in each cell of a 4 × 4 grid. No network, no torch.

The picture is first whitened (its contrast is equalised locally), then passed through filters that cover the plane of
frequencies with rings and wedges. The mean magnitude of each response over each cell is one number.

    I        picture          (side, side)   grey, 0 to 255
    s        low-pass         (side, side)   Gaussian, ½ at 4 cycles per picture
    P        whitened         (side, side)   h / (0.2 + √(s * h²)), where h = log(1 + I) − s * log(1 + I)
    G        transfer         (32, side, side)   exp(−3.5 (f / f₀ − 1)² − 2π (θ − θ₀)²), on one half plane
    f₀, θ₀   centre           0.3 / 1.85ˢ cycles per pixel, s = 0 … 3, and π o / 8, o = 0 … 7
    x        descriptor       (512,)   scale, orientation, row, column; the last changes fastest

Reference: Oliva & Torralba, Modeling the Shape of the Scene: A Holistic Representation of the Spatial Envelope, IJCV
2001, with the constants of its public description: 4 scales of 8 orientations and 4 × 4 cells.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from hbmp.encoders._shared.base import Encoder

SCALES, ORIENTATIONS, CELLS = 4, 8, 4
_HIGHEST, _RATIO, _SHARPNESS = 0.3, 1.85, 3.5
_CYCLES, _FLOOR = 4, 0.2
_MARGIN = 24  # pixels of mirror image on each side: no edge between the left and the right border
_BATCH = 16


class GIST(Encoder):
    """GIST descriptor of the grey picture: 4 scales, 8 orientations, 4 × 4 cells; 512 numbers per picture.

    The centre square of a picture is used, and its colours are averaged. Constant pictures give zeros. A turn by 90°
    moves cells and orientations and changes no number.

    Parameters
    ----------
    size : int, default=128
        Side to which pictures are scaled, a multiple of four, at least 16. The finest filters then respond to details
        of three pixels. 256 is usual for photographs of that size, and takes four times as long.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.encoders import GIST
    >>> stripes = np.zeros((1, 64, 64, 3), np.uint8)
    >>> stripes[:, :, ::2] = 255
    >>> X = GIST(size=64).encode(stripes)
    >>> X.shape
    (1, 512)
    >>> of_orientations = X.reshape(4, 8, 16)[0].sum(axis=1)
    >>> int(of_orientations.argmax())  # frequencies along the rows of pixels
    0
    """

    takes = "images"
    rows = 256
    smoke = {"size": 32}

    def __init__(self, *, size: int = 128):
        self.size = size

    def _vectors(self, images: Any) -> NDArray[np.float32]:
        if not isinstance(self.size, (int, np.integer)) or self.size < 16 or self.size % CELLS:
            raise ValueError(f"size must be a multiple of {CELLS}, at least 16; found {self.size!r}.")
        vectors = np.empty((len(images), SCALES * ORIENTATIONS * CELLS**2), np.float32)
        for rows, pixels in images.batches(_BATCH, size=self.size):
            grey = pixels.mean(axis=3, dtype=np.float32)
            vectors[rows] = [descriptor(picture) for picture in grey]
        return vectors


def descriptor(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute GIST of one picture.

    Parameters
    ----------
    grey : ndarray of shape (side, side), float32
        Grey values from 0 to 255.

    Returns
    -------
    ndarray of shape (512,), float32
        Mean magnitudes by scale, orientation, row and column.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.encoders.gist import descriptor
    >>> float(np.abs(descriptor(np.full((32, 32), 7, np.float32))).max())
    0.0
    """
    side = len(grey)
    margin = min(_MARGIN, side)
    padded = np.pad(np.log1p(grey), margin, mode="symmetric")
    spectrum = fft.fft2(whitened(padded, side))
    inner = slice(margin, margin + side)
    responses = fft.ifft2(spectrum * transfer_functions(len(padded)), overwrite_x=True)[:, inner, inner]
    cells = np.abs(responses).reshape(-1, CELLS, side // CELLS, CELLS, side // CELLS)
    found: NDArray[np.float32] = cells.mean(axis=(2, 4), dtype=np.float32).reshape(-1)
    return found


def whitened(logarithm: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """Remove slow changes of brightness, and divide by the local deviation.

    Parameters
    ----------
    logarithm : ndarray of shape (n, n), float32
        log(1 + grey), with its margin.
    side : int
        Side of the picture without its margin.

    Returns
    -------
    ndarray of shape (n, n), float32
        Local contrast; its deviation is at most about 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.encoders.gist import whitened
    >>> rng = np.random.default_rng(0)
    >>> round(float(whitened(rng.random((64, 64)).astype(np.float32), 64).std()), 1)
    0.6
    """
    if np.ptp(logarithm) == 0:
        return np.zeros_like(logarithm)
    high = logarithm - _smoothed(logarithm, side)
    deviation = np.sqrt(np.abs(_smoothed(high * high, side)))
    contrast: NDArray[Any] = high / (np.float32(_FLOOR) + deviation)
    return contrast


def _smoothed(values: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    smooth: NDArray[Any] = fft.irfft2(fft.rfft2(values) * _low_pass(len(values), side), s=values.shape)
    return smooth


@functools.lru_cache(maxsize=4)
def _low_pass(n: int, side: int) -> NDArray[np.float32]:
    """Gaussian with value ½ at four cycles per picture, (n, n // 2 + 1)."""
    f = np.hypot(fft.fftfreq(n)[:, None], fft.rfftfreq(n))
    return np.exp2(-((f * side / _CYCLES) ** 2)).astype(np.float32)


@functools.lru_cache(maxsize=4)
def transfer_functions(n: int) -> NDArray[np.float32]:
    """Return the filters as functions of frequency.

    Parameters
    ----------
    n : int
        Side of the padded picture.

    Returns
    -------
    ndarray of shape (32, n, n), float32
        Values from 0 to 1, by scale, then by orientation, in the order of `scipy.fft.fftfreq`.

    Examples
    --------
    >>> from hbmp.encoders.gist import transfer_functions
    >>> filters = transfer_functions(80)
    >>> filters.shape
    (32, 80, 80)
    >>> float(filters[0, 0, 24].round(3))  # 24 / 80 = 0.3 cycles per pixel along a row
    1.0
    """
    axis = fft.fftfreq(n)
    f, angle = np.hypot(axis[:, None], axis), np.arctan2(axis[:, None], axis)
    filters = []
    for scale in range(SCALES):
        ring = np.exp(-_SHARPNESS * (f * _RATIO**scale / _HIGHEST - 1) ** 2)
        for orientation in range(ORIENTATIONS):
            turn = np.angle(np.exp(1j * (angle - np.pi * orientation / ORIENTATIONS)))
            filters.append(ring * np.exp(-2 * np.pi * turn**2))
    bank = np.array(filters, dtype=np.float32)
    bank[:, 0, 0] = 0
    if n % 2 == 0:  # the highest frequency has no sign, so it would break the symmetry of the two half planes
        bank[:, n // 2, :] = bank[:, :, n // 2] = 0
    return bank
