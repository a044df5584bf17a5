"""VGG-F, the network of the paper and of most deep hashing before 2018, from the file of MatConvNet.

Five convolutions, local response normalisation after the first two, and two wide layers that give 4,096 features. No
code in the file `imagenet-vgg-f.mat` is run.

Reference: Chatfield, Simonyan, Vedaldi & Zisserman, Return of the Devil in the Details, BMVC 2014, Table 1, CNN-F.

    κ, α, β, N   2, 10⁻⁴, ¾, 5   response normalisation: y_c = x_c (κ + α Σ_{c' within N} x_c'²)^−β
    H, W, I, O   filters in the file; (O, I, H, W) in torch
    Ā            mean_image      (3, 224, 224)  the average training image, stored with the weights
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hbmp._core.matlab import read_matlab
from hbmp._core.reading import reading
from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import Layers, he_start

_LAYERS = ("conv1", "conv2", "conv3", "conv4", "conv5", "fc6", "fc7")
_WINDOW, _KAPPA, _ALPHA, _BETA = 5, 2.0, 1e-4, 0.75


class _MeanImage(nn.Module):
    """Subtract the difference of the average image from the mean colour, which `normalise` has subtracted."""

    deviation: torch.Tensor

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("deviation", torch.zeros(3, size, size))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(pixels − mean) − (Ā − mean) = pixels − Ā."""
        return inputs - self.deviation


class VGGF(Backbone):
    """VGG-F: 57 million weights, 4,096 features (after the ReLU of layer 7).

    Parameters
    ----------
    pretrained : bool, str or path, default=True
        Path of MatConvNet's imagenet-vgg-f.mat, or False for random weights.
    dropout : float, default=0.5
        Fraction of values dropped after each wide layer in training.

    Examples
    --------
    >>> from hbmp.backbones import VGGF
    >>> backbone = VGGF(pretrained=False)
    >>> backbone.size, backbone.weights_note
    (224, 'random')
    """

    paper = "Chatfield et al., BMVC 2014"
    size = 224
    mean = (123.68, 116.779, 103.939)
    scale = 1.0

    def __init__(self, *, pretrained: bool | str | Path = True, dropout: float = 0.5):
        self.pretrained = pretrained
        self.dropout = dropout

    def architecture(self) -> nn.Module:
        """Create the layers. Comments give input sides. The wide layers are convolutions in the file: 6×6 and 1×1."""
        layers: dict[str, nn.Module] = {
            "centre": _MeanImage(self.size),
            "conv1": nn.Conv2d(3, 64, 11, stride=4),  # 224
            "relu1": nn.ReLU(inplace=True),
            "norm1": _response_norm(),
            "pool1": nn.MaxPool2d(3, stride=2, ceil_mode=True),  # 54; the file pads by one at bottom and right
            "conv2": nn.Conv2d(64, 256, 5, padding=2),  # 27
            "relu2": nn.ReLU(inplace=True),
            "norm2": _response_norm(),
            "pool2": nn.MaxPool2d(3, stride=2),  # 27
            "conv3": nn.Conv2d(256, 256, 3, padding=1),  # 13
            "relu3": nn.ReLU(inplace=True),
            "conv4": nn.Conv2d(256, 256, 3, padding=1),  # 13
            "relu4": nn.ReLU(inplace=True),
            "conv5": nn.Conv2d(256, 256, 3, padding=1),  # 13
            "relu5": nn.ReLU(inplace=True),
            "pool5": nn.MaxPool2d(3, stride=2),  # 13
            "fc6": nn.Conv2d(256, 4096, 6),  # 6
            "relu6": nn.ReLU(inplace=True),
            "drop6": nn.Dropout(self.dropout),
            "fc7": nn.Conv2d(4096, 4096, 1),  # 1
            "relu7": nn.ReLU(inplace=True),
            "drop7": nn.Dropout(self.dropout),
            "flatten": nn.Flatten(),
        }
        return he_start(Layers(layers, n_features=4096))

    def read_weights(self) -> Mapping[str, torch.Tensor]:
        """Read filters, biases and the average image of the MatConvNet file, without its last layer, fc8."""
        if self.pretrained is True:
            raise ValueError(
                "VGG-F needs MatConvNet's weights as a file: get imagenet-vgg-f.mat from "
                "https://www.vlfeat.org/matconvnet/pretrained and pass pretrained='imagenet-vgg-f.mat', or "
                "pretrained=False."
            )
        tensors = read_matconvnet(self.weights_path())
        tensors["centre.deviation"] = tensors.pop("averageImage") - torch.tensor(self.mean).reshape(3, 1, 1)
        return tensors


def _response_norm() -> nn.LocalResponseNorm:
    """Response normalisation; torch divides α by the width of the window, MatConvNet does not."""
    return nn.LocalResponseNorm(_WINDOW, alpha=_WINDOW * _ALPHA, beta=_BETA, k=_KAPPA)


def read_matconvnet(path: Path) -> dict[str, torch.Tensor]:
    """`conv1.weight` (O, I, H, W), `conv1.bias` (O,), … and `averageImage` (3, H, W) of a MatConvNet model."""
    if not path.is_file():
        raise ValueError(f"There is no file {path} to take VGG-F's weights from.")
    with reading(path, "a MatConvNet model", "get imagenet-vgg-f.mat again"):
        layers, average = _layers_and_average(read_matlab(path, ("net", "layers", "meta", "normalization")))
        tensors = {"averageImage": torch.from_numpy(_as_image(average))}
        for layer in layers:
            if layer["type"] == "conv" and layer["name"] in _LAYERS:
                # Files before 2015 name the two, later ones have a list.
                filters, biases = layer["weights"] if "weights" in layer else (layer["filters"], layer["biases"])
                tensors[f"{layer['name']}.weight"] = torch.from_numpy(_output_first(filters))
                tensors[f"{layer['name']}.bias"] = torch.from_numpy(np.array(biases, dtype=np.float32).reshape(-1))
        norms = [np.asarray(layer["param"], float) for layer in layers if layer["type"] in ("lrn", "normalize")]
    for norm in norms:
        _check_response_norm(norm.reshape(-1), path)
    return tensors


def _layers_and_average(content: dict[str, Any]) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The layers and the average image, from the top level of the file or from its structure `net`."""
    top = content.get("net", content)
    about = top.get("meta", top)
    return top["layers"], np.asarray(about["normalization"]["averageImage"], dtype=np.float32)


def _as_image(average: np.ndarray) -> np.ndarray:
    """The average image (H, W, 3), or a mean colour (3,), as (3, H, W)."""
    image = average if average.ndim == 3 else np.broadcast_to(average.reshape(1, 1, 3), (VGGF.size, VGGF.size, 3))
    return np.array(image.transpose(2, 0, 1), order="C")


def _output_first(filters: Any) -> np.ndarray:
    """(H, W, I, O) to (O, I, H, W). MATLAB drops sides of length one at the end."""
    filters = np.asarray(filters, dtype=np.float32)
    return np.array(filters.reshape(*filters.shape, *[1] * (4 - filters.ndim)).transpose(3, 2, 0, 1), order="C")


def _check_response_norm(found: np.ndarray, path: Path) -> None:
    expected = (_WINDOW, _KAPPA, _ALPHA, _BETA)
    if found.shape != (len(expected),) or not np.allclose(found, expected, rtol=1e-5):
        raise ValueError(
            f"{path} normalises responses with {found.tolist()}, which is not VGG-F. Give imagenet-vgg-f.mat."
        )
