"""Any torch network of your own, with the preprocessing it was trained with."""

from __future__ import annotations

import copy

import torch
from torch import nn

from hbmp._core.storage import LeftOut
from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import width_of


class _Features(nn.Module):
    """The user's network, with the number of features it gives; maps of features are flattened."""

    n_features: int

    def __init__(self, network: nn.Module, n_features: int):
        super().__init__()
        self.network = network
        self.n_features = n_features

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.network(inputs).flatten(1)


class Module(Backbone):
    """A `torch.nn.Module` that maps a batch (n, 3, size, size) to features; it is copied, never changed.

    Parameters
    ----------
    module : the network; what it gives beyond (n, n_features) is flattened
    size : side of its input in pixels
    mean, scale : one number or one a channel: its input is (pixels − mean) / scale with pixels from 0 to 255
    n_features : how many features it gives, or None to find out

    A saved model holds arrays and settings, not code: its trained weights are saved, the network itself is given again,
    `hbmp.load(path, module=network)`; any network of the same layers will do, whatever its weights.
    """

    not_saved = ("module",)
    smoke = {"module": nn.AdaptiveAvgPool2d(4), "size": 16}

    def __init__(self, module, *, size=224, mean=127.5, scale=127.5, n_features=None):
        self.module = module
        self.size = size
        self.mean = mean
        self.scale = scale
        self.n_features = n_features

    def architecture(self) -> nn.Module:
        """A copy of the network as it is, checked on two blank images."""
        if isinstance(self.module, LeftOut):
            raise ValueError(
                f"This model was fitted with a network of yours, {self.module.name}, whose code is not saved: give it "
                "again, hbmp.load(path, module=network)."
            )
        if not isinstance(self.module, nn.Module):
            raise ValueError(f"module must be a torch.nn.Module, found {type(self.module).__name__}.")
        try:
            width = width_of(copy.deepcopy(self.module), self.size)
        except Exception as error:
            raise ValueError(
                f"module cannot take a batch (2, 3, {self.size}, {self.size}): {error}. Give the size it was made for."
            ) from error
        if self.n_features not in (None, width):
            raise ValueError(
                f"n_features={self.n_features} was asked for, but module gives {width}; pass that or None."
            )
        return _Features(copy.deepcopy(self.module), width)

    def build(self) -> nn.Module:
        """The same: the network comes with its weights."""
        return self.architecture()

    @property
    def weights_note(self) -> str:
        """The class of the network, which is all that is known of it."""
        return f"your own {self.module.name if isinstance(self.module, LeftOut) else type(self.module).__name__}"
