"""AlexNet in torchvision's layout, which most published deep hashing code starts from.

Five convolutions and two wide layers; the second gives the 4,096 features. The weights are torchvision's file, read
without torchvision.

Reference: Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997, the
single-tower network (no response normalisation); first in Krizhevsky, Sutskever & Hinton, NIPS 2012.
"""

from __future__ import annotations

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
    """57 million weights, 4,096 features (after the ReLU of layer 7).

    Parameters
    ----------
    pretrained : the path of torchvision's alexnet-owt-7be5be79.pth (or the same as .safetensors), or False
    dropout : share of values dropped before each wide layer while it is trained
    """

    paper = "Krizhevsky et al., NIPS 2012"
    size = 224
    mean = (0.485 * 255, 0.456 * 255, 0.406 * 255)
    scale = (0.229 * 255, 0.224 * 255, 0.225 * 255)

    def __init__(self, *, pretrained=True, dropout=0.5):
        self.pretrained = pretrained
        self.dropout = dropout

    def architecture(self) -> nn.Module:
        """Input sides in the comments; every convolution and wide layer is followed by ReLU."""
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

    def read_weights(self):
        """Torchvision's state dict; its last layer, the 1,000 classes, stays unused."""
        if self.pretrained is True:
            raise ValueError(
                "AlexNet needs torchvision's weights as a file: get alexnet-owt-7be5be79.pth from "
                "https://download.pytorch.org/models and pass pretrained='alexnet-owt-7be5be79.pth', or "
                "pretrained=False."
            )
        return read_tensors(self.weights_path())

    def name_in_file(self, name: str) -> str:
        """`conv2.bias` is `features.3.bias` there."""
        layer, value = name.split(".")
        return f"{_NAMES[layer]}.{value}"
