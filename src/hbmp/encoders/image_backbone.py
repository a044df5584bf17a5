"""Images by a pretrained network without its classifier: any backbone of `hbmp.backbones`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hbmp._core import catalog
from hbmp._core.device import pick_device, require_torch, to_numpy, to_torch
from hbmp.encoders._shared.base import Encoder, digest_of


class ImageBackbone(Encoder):
    """Features of a backbone; 1,280 numbers per image with the default one.

    It needs the extra `images`.

    Parameters
    ----------
    backbone : str or Backbone, default="efficientnet_lite0"
        A name from `hbmp.backbones`, or a backbone object.
    batch_size : int, default=64
        Images per pass of the network.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the network runs.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.encoders import ImageBackbone
    >>> pixels = np.zeros((2, 40, 50, 3), np.uint8)
    >>> ImageBackbone("tiny").encode(pixels).shape
    (2, 192)
    """

    takes = "images"
    neutral = ("batch_size", "device")
    smoke = {"backbone": "tiny"}

    def __init__(self, backbone: Any = "efficientnet_lite0", *, batch_size: int = 64, device: str = "auto"):
        self.backbone = backbone
        self.batch_size = batch_size
        self.device = device

    @property
    def short_name(self) -> str:
        """The backbone."""
        return self.backbone if isinstance(self.backbone, str) else repr(self.backbone).removesuffix("()")

    def _vectors(self, images: Any) -> NDArray[np.float32]:
        import torch

        backbone, network, device = self._loaded()
        vectors = np.empty((len(images), network.n_features), np.float32)
        with torch.inference_mode():
            for rows, pixels in images.batches(self.batch_size, size=backbone.size):
                vectors[rows] = to_numpy(network(backbone.normalise(to_torch(pixels, device))).float())
        return vectors

    def _loaded(self) -> Any:
        if not hasattr(self, "_cache"):
            require_torch("ImageBackbone")
            from hbmp._training.loop import seeded

            device = pick_device(self.device)
            backbone = clone(catalog.resolve("backbones", self.backbone))
            with seeded(0, device):  # for backbones that start from random weights
                network = backbone.build().to(device).eval()
            self._cache = backbone, network, device
        return self._cache

    def _digest(self) -> str:
        """Of every weight, by name."""
        tensors = self._loaded()[1].state_dict().items()
        return digest_of(name.encode() + to_numpy(tensor).tobytes() for name, tensor in tensors)
