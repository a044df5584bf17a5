"""Pixels to network inputs on the device: resized for inference, or randomly augmented for training.

One resampling does flip, shift, scale, rotation and the resize to the network's size. Brightness, contrast, saturation
and a cut-out square follow. All draws come from torch's generator of the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional as F


@dataclass(frozen=True)
class Augmentation:
    """Largest random changes of a training image. 0 turns a part off.

    Parameters
    ----------
    flip : float, default=0.5
        Probability of mirroring.
    shift, scale : float, default=0.0
        As fractions of the side.
    rotate : float, default=0.0
        In degrees.
    brightness, contrast, saturation : float, default=0.0
        As fractions of the range.
    cutout : float, default=0.0
        Side of a blanked square, as a fraction of the image side.
    """

    flip: float = 0.5
    shift: float = 0.0
    scale: float = 0.0
    rotate: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    cutout: float = 0.0


AUGMENTATIONS = {
    "none": Augmentation(flip=0.0),
    "light": Augmentation(shift=0.125),
    "strong": Augmentation(shift=0.15, scale=0.2, rotate=15.0, brightness=0.2, contrast=0.2, cutout=0.3),
}


def resized(pixels: torch.Tensor, size: int) -> torch.Tensor:
    """Pixels (n, h, w, 3) uint8 as floats (n, 3, size, size), bicubic, in 0 … 255."""
    images = pixels.permute(0, 3, 1, 2).float()
    if images.shape[-2:] == (size, size):
        return images
    shrinks = min(images.shape[-2:]) > size
    return F.interpolate(images, (size, size), mode="bicubic", align_corners=False, antialias=shrinks).clamp_(0, 255)


def augmented(pixels: torch.Tensor, size: int, augmentation: Augmentation) -> torch.Tensor:
    """Randomly augmented pixels (n, h, w, 3) uint8 as floats (n, 3, size, size) in 0 … 255."""
    images = pixels.permute(0, 3, 1, 2).float()
    grid = F.affine_grid(_affine(augmentation, len(images), images.device), [len(images), 3, size, size], False)
    images = F.grid_sample(images, grid, mode="bicubic", padding_mode="reflection", align_corners=False).clamp_(0, 255)
    if augmentation.brightness:
        images = images + 255 * augmentation.brightness * _uniform(len(images), images.device)[:, None, None, None]
    if augmentation.contrast:
        factor = 1 + augmentation.contrast * _uniform(len(images), images.device)[:, None, None, None]
        mean = images.mean(dim=(1, 2, 3), keepdim=True)
        images = (images - mean) * factor + mean
    if augmentation.saturation:
        factor = 1 + augmentation.saturation * _uniform(len(images), images.device)[:, None, None, None]
        grey = images.mean(dim=1, keepdim=True)
        images = torch.lerp(grey, images, factor)
    if augmentation.cutout:
        images = images.masked_fill(_square(len(images), size, augmentation.cutout, images.device), 127.0)
    return images.clamp_(0, 255)


def _affine(augmentation: Augmentation, n: int, device: torch.device) -> torch.Tensor:
    """(n, 2, 3) matrices that map output positions to input positions, both in -1 … 1."""
    angle = math.radians(augmentation.rotate) * _uniform(n, device)
    size = 1 + augmentation.scale * _uniform(n, device)
    mirror = 1 - 2 * (torch.rand(n, device=device) < augmentation.flip).float()
    shift = 2 * augmentation.shift * torch.stack([_uniform(n, device), _uniform(n, device)], dim=1)
    cosine, sine = size * angle.cos(), size * angle.sin()
    rows = torch.stack([cosine * mirror, -sine, shift[:, 0], sine * mirror, cosine, shift[:, 1]], dim=1)
    return rows.reshape(n, 2, 3)


def _square(n: int, size: int, side: float, device: torch.device) -> torch.Tensor:
    """(n, 1, size, size), true inside one square per image, centred at random."""
    half = side * size / 2
    places = torch.arange(size, device=device) + 0.5
    centres = size * torch.rand(n, 2, device=device)
    near = (places - centres[:, :, None]).abs() < half  # (n, 2, size)
    return near[:, 0, :, None].logical_and(near[:, 1, None, :])[:, None]


def _uniform(n: int, device: torch.device) -> torch.Tensor:
    return 2 * torch.rand(n, device=device) - 1
