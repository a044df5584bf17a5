"""Decode one image to a square of RGB pixels.

The centre square is scaled by bicubic interpolation, which is the short side scaled and the centre cropped in one step.
EXIF rotations are undone, transparent pixels are put on white, and 16 bits become 8.
"""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

# A file: its path or its bytes. Pixels: (h, w), (h, w, 1) or (h, w, 3) uint8.
Picture = str | bytes | np.ndarray


class UnreadableImage(ValueError):
    """An image that cannot be decoded.

    Examples
    --------
    >>> from hbmp.images import UnreadableImage
    >>> issubclass(UnreadableImage, ValueError)
    True
    """


def require_pillow() -> None:
    """Raise ImportError with the command that installs Pillow, if it is missing."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise ImportError("Reading images needs Pillow: pip install 'hbmp[images]'.") from None


def decode_square(picture: Picture, size: int) -> np.ndarray:
    """Pixels (size, size, 3) uint8. Raises `UnreadableImage` with the reason for a broken or oversized file."""
    if isinstance(picture, np.ndarray):
        if picture.shape[:2] == (size, size):
            return np.broadcast_to(picture.reshape(size, size, -1), (size, size, 3))
        return _square(_from_pixels(picture), size)
    try:
        return _decode(picture, size)
    except MemoryError:
        raise
    except Exception as error:  # a decoder may raise any exception on invalid bytes
        raise UnreadableImage(str(error).replace("\n", " ").rstrip(".") or type(error).__name__) from error


def _decode(picture: str | bytes, size: int) -> np.ndarray:
    from PIL import Image, ImageOps

    with Image.open(io.BytesIO(picture) if isinstance(picture, bytes) else picture) as image:
        limit = Image.MAX_IMAGE_PIXELS
        if limit is not None and image.width * image.height > limit:
            raise ValueError(f"{image.width} × {image.height} pixels are above Pillow's limit of {limit:,}")
        image.draft(None, (2 * size, 2 * size))  # decodes JPEG at ½, ¼ or ⅛ if that leaves at least twice the size
        image.load()
        with contextlib.suppress(Exception):  # a broken EXIF rotation does not make the image unreadable
            ImageOps.exif_transpose(image, in_place=True)
        return _square(_as_rgb(image), size)


def _as_rgb(image: Image.Image) -> Image.Image:
    """Palettes, grey, CMYK, 16 bits and transparency as RGB."""
    from PIL import Image

    if image.mode == "RGB":
        return image
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers without a known range; save it with 8 bits")
    if image.mode.startswith("I"):  # 16 bits, also where Pillow keeps them in 32
        return _from_pixels((np.clip(np.asarray(image), 0, 65535) / 257 + 0.5).astype(np.uint8))
    if image.has_transparency_data:
        picture = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    return image.convert("RGB")


def _from_pixels(pixels: np.ndarray) -> Image.Image:
    from PIL import Image

    grey = pixels.ndim == 2 or pixels.shape[2] == 1
    return Image.fromarray(pixels.reshape(pixels.shape[:2]) if grey else pixels).convert("RGB")


def _square(image: Image.Image, size: int) -> np.ndarray:
    """The centre square at the given size. A narrow image is never scaled as a whole."""
    from PIL import Image

    side = min(image.size)
    left, top = (image.width - side) / 2, (image.height - side) / 2
    box = (left, top, left + side, top + side)
    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC, box=box))
