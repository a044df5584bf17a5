"""Any image network of timm, with its published weights and preprocessing.

timm (https://github.com/huggingface/pytorch-image-models) is not a requirement of this package; its wheels need the
torchvision that fits the installed torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import width_of
from hbmp.backbones._shared.weights import read_tensors


class TimmModel(Backbone):
    """Network of timm without its classifier.

    Parameters
    ----------
    name : str, default="resnet50"
        Name in timm, for example "resnet50" or "vit_base_patch14_dinov2.lvd142m".
    pretrained : bool, str or path, default=True
        True to let timm download the weights, the path of a file with its state dict, or False for random weights.

    Examples
    --------
    >>> from hbmp.backbones import TimmModel
    >>> TimmModel("resnet18").weights_note  # build() needs timm
    'timm resnet18'
    """

    smoke = {"name": "resnet18", "pretrained": False}

    def __init__(self, name: str = "resnet50", *, pretrained: bool | str | Path = True):
        self.name = name
        self.pretrained = pretrained

    @property
    def size(self) -> int:  # type: ignore[override]
        """Side of the input, from the data config of timm."""
        return int(self._data_config()["input_size"][-1])

    @property
    def mean(self) -> tuple[float, ...]:  # type: ignore[override]
        """Mean of the pixels. In timm their range is 0 to 1."""
        return tuple(255 * float(value) for value in self._data_config()["mean"])

    @property
    def scale(self) -> tuple[float, ...]:  # type: ignore[override]
        """Standard deviation of the pixels."""
        return tuple(255 * float(value) for value in self._data_config()["std"])

    def architecture(self) -> nn.Module:
        """Create the network without its classifier, with random weights."""
        return self._create(pretrained=False)

    def build(self) -> nn.Module:
        """Create the network with the weights of timm, of a file, or random ones."""
        return self._create(pretrained=True) if self.pretrained is True else super().build()

    def read_weights(self) -> Mapping[str, torch.Tensor]:
        """Read the state dict of the network. Weights of a classifier are not used."""
        return read_tensors(self.weights_path())

    @property
    def weights_note(self) -> str:
        """Name in timm, or name of the file."""
        return f"timm {self.name}" if self.pretrained is True else super().weights_note

    def _create(self, *, pretrained: bool) -> nn.Module:
        timm = self._timm()
        module = timm.create_model(self.name, pretrained=pretrained, num_classes=0)
        # Measured, because some networks have a layer after the pooling and attribute names for the width vary in timm.
        module.n_features = width_of(module, self.size)
        created: nn.Module = module
        return created

    def _data_config(self) -> dict[str, Any]:
        timm = self._timm()
        from timm.data import resolve_data_config

        config = timm.get_pretrained_cfg(self.name)
        found: dict[str, Any] = resolve_data_config(pretrained_cfg=config.to_dict())
        return found

    def _timm(self) -> Any:
        try:
            import timm
        except (ImportError, RuntimeError) as error:  # RuntimeError: a torchvision made for another torch
            raise ValueError(
                f"TimmModel({self.name!r}) needs timm, which cannot be imported here ({error}): pip install timm with "
                "the torchvision that fits your torch, or use hbmp.backbones.EfficientNetLite0()."
            ) from error
        if not timm.is_model(self.name):
            raise LookupError(f"timm has no model called {self.name!r}; timm.list_models() shows all.")
        return timm
