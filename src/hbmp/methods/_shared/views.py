"""Two versions of each input that mean the same: features with some numbers left out, or images moved and mirrored.

Publications that align views augment images before a network. Stored features have no images behind them, so that
leaving numbers out takes the place of augmentation.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F


def two_views(inputs: torch.Tensor, dropped: float) -> torch.Tensor:
    """(2, n, …) from features (n, d), or from images (n, 3, h, w) that the training has augmented once."""
    one_view = moved if inputs.ndim == 4 else lambda rows: F.dropout(rows, dropped)
    return torch.stack([one_view(inputs), one_view(inputs)])


def moved(images: torch.Tensor) -> torch.Tensor:
    """Images mirrored at random, scaled, turned and shifted, with another brightness."""
    n, device = len(images), images.device

    def uniform(most: float) -> torch.Tensor:
        return most * (2 * torch.rand(n, device=device) - 1)

    angle, size = uniform(math.radians(10)), 1 + uniform(0.2)
    mirror = torch.where(torch.rand(n, device=device) < 0.5, -1.0, 1.0)
    cosine, sine = size * angle.cos(), size * angle.sin()
    rows = torch.stack([cosine * mirror, -sine, uniform(0.2), sine * mirror, cosine, uniform(0.2)], dim=1)
    grid = F.affine_grid(rows.reshape(n, 2, 3), list(images.shape), align_corners=False)
    out = F.grid_sample(images, grid.to(images.dtype), padding_mode="reflection", align_corners=False)
    return out * (1 + uniform(0.2)).to(images.dtype)[:, None, None, None]
