"""The contract of every backbone: how pixels become its input, and the torch module that turns them into features.

A backbone is a description: cheap to create, copy and save. `build` creates the network with its pretrained weights.
`architecture` creates the same network with random weights and reads no file.

    pixels     (n, size, size, 3)  uint8, RGB
    inputs     (n, 3, size, size)  float32, (pixels − mean) / scale
    features   (n, n_features)     output of the module
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from hbmp.backbones._shared.weights import put_tensors

if TYPE_CHECKING:
    import torch


class Backbone(BaseEstimator):
    """Base class of all backbones, and the extension point for new ones.

    A subclass defines `architecture` and, if it has pretrained weights, `read_weights`.

    Attributes
    ----------
    pretrained : bool, str or path
        True for the published weights, the path of a file, or False for random weights.
    paper : str
        Class attribute. The publication.
    size : int
        Side of the input in pixels.
    mean, scale : float or tuple of float
        One number, or one per channel, in pixel values from 0 to 255. The input is (pixels − mean) / scale.
    smoke : dict
        Class attribute. Settings that need no file and no package, for tests.

    Examples
    --------
    A backbone that averages the colours of four quarters of an image:

    >>> from torch import nn
    >>> from hbmp.backbones import Backbone
    >>> class Quarters(Backbone):
    ...     size, mean, scale = 8, 127.5, 127.5
    ...     def __init__(self, *, pretrained=False):
    ...         self.pretrained = pretrained
    ...     def architecture(self):
    ...         module = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten())
    ...         module.n_features = 12
    ...         return module
    >>> import torch
    >>> backbone = Quarters()
    >>> pixels = torch.full((1, 8, 8, 3), 255, dtype=torch.uint8)
    >>> backbone.build()(backbone.normalise(pixels)).shape
    torch.Size([1, 12])
    """

    paper: str = ""
    size: int
    mean: float | tuple[float, ...]
    scale: float | tuple[float, ...]
    smoke: dict[str, Any] = {"pretrained": False}

    pretrained: bool | str | Path

    def architecture(self) -> torch.nn.Module:
        """Create the network with random weights from torch's generator.

        Returns
        -------
        module : torch.nn.Module
            It maps inputs to features and has the attribute `n_features`.
        """
        raise NotImplementedError

    def read_weights(self) -> Mapping[str, torch.Tensor]:
        """Read the pretrained weights that `pretrained` names, by their names in the file."""
        raise NotImplementedError

    def name_in_file(self, name: str) -> str:
        """Name in the file of a weight of the module."""
        return name

    def build(self) -> torch.nn.Module:
        """Create the network with its pretrained weights, or with random ones if `pretrained` is False."""
        if self.pretrained is False:
            return self.architecture()
        tensors = self.read_weights()
        module = self.architecture()
        put_tensors(module, tensors, self.name_in_file, self.weights_note)
        return module

    @property
    def weights_note(self) -> str:
        """Source of the weights, in words."""
        if isinstance(self.pretrained, bool):
            return "published weights" if self.pretrained else "random"
        return f"file {self.weights_path().name}"

    def weights_path(self) -> Path:
        """The file that `pretrained` names."""
        return Path(str(self.pretrained))

    def normalise(self, pixels: torch.Tensor) -> torch.Tensor:
        """Inputs of the module from a uint8 tensor of pixels (n, size, size, 3), on the same device."""
        import torch

        mean, scale = (
            torch.tensor(value, dtype=torch.float32, device=pixels.device).reshape(-1, 1, 1)
            for value in (self.mean, self.scale)
        )
        return (pixels.permute(0, 3, 1, 2).float() - mean) / scale
