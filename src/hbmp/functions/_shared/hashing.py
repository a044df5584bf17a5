"""The module that `network` trains: a backbone and one linear score per bit."""

from __future__ import annotations

import torch
from torch import nn


class Hashing(nn.Module):
    """Features of the backbone through a linear head: raw scores (n, bits).

    With `mirror`, a trained module returns the mean score of an image and its mirror image.
    """

    def __init__(self, backbone: nn.Module, n_bits: int, *, mirror: bool = False):
        super().__init__()
        self.mirror = mirror
        self.backbone = backbone
        self.head = nn.Linear(int(backbone.n_features), n_bits)  # type: ignore[arg-type]

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Scores of a batch of inputs, (n, channels, height, width)."""
        return self.head(self.features(inputs))

    def features(self, inputs: torch.Tensor) -> torch.Tensor:
        """Inputs of the head, (n, n_features)."""
        features: torch.Tensor = self.backbone(inputs)
        if self.mirror and not self.training:
            features = (features + self.backbone(inputs.flip(-1))) / 2  # the head is linear
        return features


class WithFeatures(nn.Module):
    """Scores, followed by the inputs of the head, (n, bits + n_features)."""

    def __init__(self, hashing: Hashing):
        super().__init__()
        self.hashing = hashing

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Both for a batch of inputs, from one pass through the backbone."""
        features = self.hashing.features(inputs)
        return torch.cat([self.hashing.head(features), features], dim=1)
