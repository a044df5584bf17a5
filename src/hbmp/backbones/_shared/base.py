"""The contract of every backbone: how pixels become its input, and the torch module that turns them into features.

A backbone is a description: cheap to make, to copy and to save. `build` makes the network with the weights it was
pretrained with, `architecture` the same network without reading any file, for weights that are kept elsewhere.

    pixels     (n, size, size, 3)  uint8, RGB
    inputs     (n, 3, size, size)  float32, (pixels − mean) / scale
    features   (n, n_features)     what the module gives for the inputs
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator

from hbmp.backbones._shared.weights import put_tensors

if TYPE_CHECKING:
    import torch


class Backbone(BaseEstimator):
    """Base of all backbones.

    Each carries its facts: `paper`, the publication; `size`, the side of its input in pixels; `mean` and `scale`, one
    number or one a channel, in pixel values from 0 to 255; `smoke`, the setting that needs no file and no package.
    `pretrained` is True (the published weights, where they can be found), the path of a file, or False (random).
    """

    paper = ""
    size: int
    mean: float | tuple[float, ...]
    scale: float | tuple[float, ...]
    smoke: dict = {"pretrained": False}

    pretrained: bool | str | Path

    def architecture(self) -> torch.nn.Module:
        """The network with random weights, which torch's generator gives (`training.seeded` sets and restores it).

        The module maps inputs to features and has the attribute `n_features`.
        """
        raise NotImplementedError

    def read_weights(self) -> Mapping[str, torch.Tensor]:
        """The pretrained weights that `pretrained` asks for, by the names they have where they are kept."""
        raise NotImplementedError

    def name_in_file(self, name: str) -> str:
        """What one of the module's weights is called where `read_weights` finds it."""
        return name

    def build(self) -> torch.nn.Module:
        """The network ready for use: with its pretrained weights, or random ones where `pretrained` is False."""
        if self.pretrained is False:
            return self.architecture()
        tensors = self.read_weights()
        module = self.architecture()
        put_tensors(module, tensors, self.name_in_file, self.weights_note)
        return module

    @property
    def weights_note(self) -> str:
        """Where the weights come from, in words."""
        if isinstance(self.pretrained, bool):
            return "published weights" if self.pretrained else "random"
        return f"file {self.weights_path().name}"

    def weights_path(self) -> Path:
        """The file that `pretrained` names."""
        return Path(str(self.pretrained))

    def normalise(self, pixels: torch.Tensor) -> torch.Tensor:
        """The module's inputs from a uint8 tensor of pixels (n, size, size, 3), on the device the pixels are on."""
        import torch

        mean, scale = (
            torch.tensor(value, dtype=torch.float32, device=pixels.device).reshape(-1, 1, 1)
            for value in (self.mean, self.scale)
        )
        return (pixels.permute(0, 3, 1, 2).float() - mean) / scale
