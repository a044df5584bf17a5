"""Any torch network, with the preprocessing it was trained with."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from hbmp._core.storage import LeftOut
from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import width_of


class _Features(nn.Module):
    """The given network with its number of features. Feature maps are flattened."""

    n_features: int

    def __init__(self, network: nn.Module, n_features: int):
        super().__init__()
        self.network = network
        self.n_features = n_features

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.network(inputs).flatten(1)
        return features


class Module(Backbone):
    """Backbone from a given `torch.nn.Module`.

    Parameters
    ----------
    module : torch.nn.Module
        Network that maps a batch (n, 3, size, size) to features, which are flattened to (n, n_features). It is copied,
        never changed.
    size : int, default=224
        Side of the input in pixels.
    mean, scale : float or tuple of float, default=127.5
        One number, or one per channel. The input is (pixels − mean) / scale, with pixels from 0 to 255.
    n_features : int or None, default=None
        Number of features. None determines it from two blank images.

    Notes
    -----
    A saved model holds arrays and settings, not code. Its trained weights are saved; the network is passed again when
    it is loaded, `hbmp.load(path, module=network)`. Any network with the same layers works, whatever its weights.

    Examples
    --------
    >>> from torch import nn
    >>> from hbmp.backbones import Module
    >>> backbone = Module(nn.Conv2d(3, 2, kernel_size=4, stride=4), size=8)
    >>> backbone.build().n_features
    8
    """

    not_saved = ("module",)
    smoke = {"module": nn.AdaptiveAvgPool2d(4), "size": 16}

    def __init__(
        self,
        module: Any,
        *,
        size: int = 224,
        mean: float | tuple[float, ...] = 127.5,
        scale: float | tuple[float, ...] = 127.5,
        n_features: int | None = None,
    ):
        self.module = module
        self.size = size
        self.mean = mean
        self.scale = scale
        self.n_features = n_features

    def architecture(self) -> nn.Module:
        """Copy the network and check the copy on two blank images."""
        if isinstance(self.module, LeftOut):
            raise ValueError(
                f"This model was fitted with a custom network, {self.module.name}, whose code is not saved: pass it "
                "again, hbmp.load(path, module=network)."
            )
        if not isinstance(self.module, nn.Module):
            raise ValueError(f"module must be a torch.nn.Module, found {type(self.module).__name__}.")
        try:
            width = width_of(copy.deepcopy(self.module), self.size)
        except Exception as error:
            raise ValueError(
                f"module cannot take a batch (2, 3, {self.size}, {self.size}): {error}. Pass the size it was made for."
            ) from error
        if self.n_features not in (None, width):
            raise ValueError(f"n_features is {self.n_features}, but module gives {width}; pass that or None.")
        return _Features(copy.deepcopy(self.module), width)

    def build(self) -> nn.Module:
        """Copy the network, which has its weights already."""
        return self.architecture()

    @property
    def weights_note(self) -> str:
        """The class of the network."""
        return f"your own {self.module.name if isinstance(self.module, LeftOut) else type(self.module).__name__}"
