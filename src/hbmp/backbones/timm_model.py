"""Any of timm's thousand image networks, with its published weights and its own preprocessing.

timm (https://github.com/huggingface/pytorch-image-models) is not a requirement of this package; its wheels want the
torchvision that fits the installed torch.
"""

from __future__ import annotations

from torch import nn

from hbmp.backbones._shared.base import Backbone
from hbmp.backbones._shared.layers import width_of
from hbmp.backbones._shared.weights import read_tensors


class TimmModel(Backbone):
    """A network of timm's, cut before its classifier.

    Parameters
    ----------
    name : what timm calls it, for example "resnet50" or "vit_base_patch14_dinov2.lvd142m"
    pretrained : True (timm downloads the weights), the path of a file with its state dict, or False
    """

    smoke = {"name": "resnet18", "pretrained": False}

    def __init__(self, name="resnet50", *, pretrained=True):
        self.name = name
        self.pretrained = pretrained

    @property
    def size(self) -> int:  # type: ignore[override]
        """Side of the input, from timm's data config."""
        return int(self._data_config()["input_size"][-1])

    @property
    def mean(self) -> tuple[float, ...]:  # type: ignore[override]
        """Mean of the pixels; timm counts them from 0 to 1."""
        return tuple(255 * float(value) for value in self._data_config()["mean"])

    @property
    def scale(self) -> tuple[float, ...]:  # type: ignore[override]
        """Deviation of the pixels."""
        return tuple(255 * float(value) for value in self._data_config()["std"])

    def architecture(self) -> nn.Module:
        """The network without its classifier."""
        return self._create(pretrained=False)

    def build(self) -> nn.Module:
        """The network with timm's weights, those of a file, or random ones."""
        return self._create(pretrained=True) if self.pretrained is True else super().build()

    def read_weights(self):
        """The network's state dict; weights of a classifier in it stay unused."""
        return read_tensors(self.weights_path())

    @property
    def weights_note(self) -> str:
        """Which of timm's weights, or which file."""
        return f"timm {self.name}" if self.pretrained is True else super().weights_note

    def _create(self, *, pretrained: bool) -> nn.Module:
        timm = self._timm()
        module = timm.create_model(self.name, pretrained=pretrained, num_classes=0)
        # Tried rather than asked: some networks keep a layer after the pooling, and what timm calls their width varies.
        module.n_features = width_of(module, self.size)
        return module

    def _data_config(self) -> dict:
        timm = self._timm()
        from timm.data import resolve_data_config

        config = timm.get_pretrained_cfg(self.name)
        return resolve_data_config(pretrained_cfg=config.to_dict())

    def _timm(self):
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
