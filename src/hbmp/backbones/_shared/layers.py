"""Parts of several networks: named layers, random initial weights, and the padding of TensorFlow."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional


class Layers(nn.Sequential):
    """Named layers in order. `n_features` is the width of the output."""

    n_features: int

    def __init__(self, layers: dict[str, nn.Module], n_features: int):
        super().__init__(OrderedDict(layers))
        self.n_features = n_features

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Apply the layers in order. Defined here because torch does not compile code of its own package."""
        for layer in self:
            input = layer(input)
        return input


def he_start(module: nn.Module) -> nn.Module:
    """Random weights that keep the size of the signal through ReLU layers (He et al., ICCV 2015)."""
    for part in module.modules():
        if isinstance(part, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return module


def width_of(module: nn.Module, size: int) -> int:
    """Number of outputs of a module for an image of this size, measured on two blank images."""
    weights = next(module.parameters(), torch.zeros(0))
    blank = torch.zeros(2, 3, size, size, device=weights.device, dtype=weights.dtype)
    before = module.training
    module.eval()
    with torch.no_grad():
        width = module(blank).flatten(1).shape[1]
    module.train(before)
    return width


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow's "SAME": output side = ⌈side / stride⌉, the odd pixel at bottom and right."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Pad for the size of this input, then convolve. Even padding copies nothing."""
        down, across = (
            max((-(-side // stride) - 1) * stride + kernel - side, 0)
            for side, stride, kernel in zip(input.shape[-2:], self.stride, self.kernel_size, strict=True)
        )
        if down % 2 or across % 2:
            padding = [across // 2, across - across // 2, down // 2, down - down // 2]
            input, down, across = functional.pad(input, padding), 0, 0
        half = (down // 2, across // 2)
        return functional.conv2d(input, self.weight, self.bias, self.stride, half, self.dilation, self.groups)
