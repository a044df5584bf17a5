"""AlexNet in the layout of torchvision, the starting point of most published deep hashing code.

Five convolutions and two wide layers, of which the second gives the 4,096 features. The weights are read from the file
of torchvision, without torchvision.

Reference: Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997, the
single-tower network (no response normalisation); first in Krizhevsky, Sutskever & Hinton, NIPS 2012.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import Layers, he_start
from hbmp.backbones._shared.weights import read_tensors

_NAMES = {  # torchvision counts its layers, activations and pools included
    "conv1": "features.0",
    "conv2": "features.3",
    "conv3": "features.6",
    "conv4": "features.8",
    "conv5": "features.10",
    "full6": "classifier.1",
    "full7": "classifier.4",
}


class AlexNet(Backbone):
    """AlexNet: 57 million weights, 4,096 features (after the ReLU of layer 7).

    Parameters
    ----------
    pretrained : bool, str or path, default=True
        Path of torchvision's alexnet-owt-7be5be79.pth (or the same as .safetensors), or False for random weights.
    dropout : float, default=0.5
        Fraction of values dropped before each wide layer in training.

    Examples
    --------
    >>> from hbmp.backbones import AlexNet
    >>> backbone = AlexNet(pretrained=False)
    >>> backbone.size, backbone.weights_note
    (224, 'random')
    """

    paper = "Krizhevsky et al., NIPS 2012"
    size = 224
    mean = (0.485 * 255, 0.456 * 255, 0.406 * 255)
    scale = (0.229 * 255, 0.224 * 255, 0.225 * 255)

    def __init__(self, *, pretrained: bool | str | Path = True, dropout: float = 0.5):
        self.pretrained = pretrained
        self.dropout = dropout

    def architecture(self) -> nn.Module:
        """Create the layers. Comments give input sides; ReLU follows every convolution and wide layer."""
        layers: dict[str, nn.Module] = {
            "conv1": nn.Conv2d(3, 64, 11, stride=4, padding=2),  # 224
            "relu1": nn.ReLU(inplace=True),
            "pool1": nn.MaxPool2d(3, stride=2),  # 55
            "conv2": nn.Conv2d(64, 192, 5, padding=2),  # 27
            "relu2": nn.ReLU(inplace=True),
            "pool2": nn.MaxPool2d(3, stride=2),  # 27
            "conv3": nn.Conv2d(192, 384, 3, padding=1),  # 13
            "relu3": nn.ReLU(inplace=True),
            "conv4": nn.Conv2d(384, 256, 3, padding=1),  # 13
            "relu4": nn.ReLU(inplace=True),
            "conv5": nn.Conv2d(256, 256, 3, padding=1),  # 13
            "relu5": nn.ReLU(inplace=True),
            "pool5": nn.MaxPool2d(3, stride=2),  # 13
            "flatten": nn.Flatten(),  # 6
            "drop6": nn.Dropout(self.dropout),
            "full6": nn.Linear(256 * 6 * 6, 4096),
            "relu6": nn.ReLU(inplace=True),
            "drop7": nn.Dropout(self.dropout),
            "full7": nn.Linear(4096, 4096),
            "relu7": nn.ReLU(inplace=True),
        }
        return he_start(Layers(layers, n_features=4096))

    def read_weights(self) -> Mapping[str, torch.Tensor]:
        """Read the state dict of torchvision. Its last layer, the 1,000 classes, is not used."""
        if self.pretrained is True:
            raise ValueError(
                "AlexNet needs torchvision's weights as a file: get alexnet-owt-7be5be79.pth from "
                "https://download.pytorch.org/models and pass pretrained='alexnet-owt-7be5be79.pth', or "
                "pretrained=False."
            )
        return read_tensors(self.weights_path())

    def name_in_file(self, name: str) -> str:
        """Name in the file: `conv2.bias` is `features.3.bias`."""
        layer, value = name.split(".")
        return f"{_NAMES[layer]}.{value}"
