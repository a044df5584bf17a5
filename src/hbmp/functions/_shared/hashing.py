"""The module that `network` trains: a backbone and one linear score a bit."""

from __future__ import annotations

from torch import nn


class Hashing(nn.Module):
    """Features of the backbone through a linear head, (n, bits), raw scores.

    mirror: once trained, the mean of the scores of an image and of its mirror image
    """

    def __init__(self, backbone: nn.Module, n_bits: int, *, mirror: bool = False):
        super().__init__()
        self.mirror = mirror
        self.backbone = backbone
        self.head = nn.Linear(int(backbone.n_features), n_bits)  # type: ignore[arg-type]

    def forward(self, inputs):
        """Scores of a batch of inputs, (n, channels, height, width)."""
        features = self.backbone(inputs)
        if self.mirror and not self.training:
            features = (features + self.backbone(inputs.flip(-1))) / 2  # the head is linear
        return self.head(features)
