"""A network of 19,000 random weights for 32 px images: for tests and quick trials.

Three convolutions that halve the image, ReLU after each, and the average over four quarters, so that features keep
where things are. There is no batch normalisation: a batch of one gives what a batch of many gives.
"""

from __future__ import annotations

import itertools

from torch import nn

from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import Layers, he_start

_CHANNELS = (3, 16, 32, 48)


class Tiny(Backbone):
    """Three convolutions, 192 features; nothing pretrained exists for it.

    Parameters
    ----------
    pretrained : False, the only setting
    """

    size = 32
    mean = 127.5
    scale = 64.0

    def __init__(self, *, pretrained=False):
        self.pretrained = pretrained

    def architecture(self) -> nn.Module:
        """Sides 32, 16, 8 and 4, then 2."""
        layers: dict[str, nn.Module] = {}
        for number, (n_in, n_out) in enumerate(itertools.pairwise(_CHANNELS), start=1):
            layers[f"conv{number}"] = nn.Conv2d(n_in, n_out, 3, stride=2, padding=1)
            layers[f"relu{number}"] = nn.ReLU(inplace=True)
        layers |= {"pool": nn.AdaptiveAvgPool2d(2), "flatten": nn.Flatten()}
        return he_start(Layers(layers, 4 * _CHANNELS[-1]))

    def read_weights(self):
        """Refused: this network was never trained."""
        raise ValueError(f"Tiny has no pretrained weights, found pretrained={self.pretrained!r}; use pretrained=False.")
