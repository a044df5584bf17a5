"""A network of 19,000 random weights for 32 px images, for tests and quick experiments.

Three convolutions that halve the image, ReLU after each, and the average over four quarters, so that features depend on
position. There is no batch normalisation, so the output for an image does not depend on its batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import torch
from torch import nn

from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import Layers, he_start

_CHANNELS = (3, 16, 32, 48)


class Tiny(Backbone):
    """Three convolutions with 192 features, without pretrained weights.

    Parameters
    ----------
    pretrained : bool, default=False
        Only False is possible.

    Examples
    --------
    >>> import torch
    >>> from hbmp.backbones import Tiny
    >>> backbone = Tiny()
    >>> pixels = torch.zeros(1, 32, 32, 3, dtype=torch.uint8)
    >>> backbone.build()(backbone.normalise(pixels)).shape
    torch.Size([1, 192])
    """

    size = 32
    mean = 127.5
    scale = 64.0

    def __init__(self, *, pretrained: bool = False):
        self.pretrained = pretrained

    def architecture(self) -> nn.Module:
        """Create the layers; the sides are 32, 16, 8, 4 and 2."""
        layers: dict[str, nn.Module] = {}
        for number, (n_in, n_out) in enumerate(itertools.pairwise(_CHANNELS), start=1):
            layers[f"conv{number}"] = nn.Conv2d(n_in, n_out, 3, stride=2, padding=1)
            layers[f"relu{number}"] = nn.ReLU(inplace=True)
        layers |= {"pool": nn.AdaptiveAvgPool2d(2), "flatten": nn.Flatten()}
        return he_start(Layers(layers, 4 * _CHANNELS[-1]))

    def read_weights(self) -> Mapping[str, torch.Tensor]:
        """Raise ValueError: this network has no pretrained weights."""
        raise ValueError(f"Tiny has no pretrained weights, found pretrained={self.pretrained!r}; use pretrained=False.")
