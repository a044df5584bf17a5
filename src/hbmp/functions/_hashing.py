"""The module that `network` trains: a backbone and one linear score a bit."""

from __future__ import annotations

from torch import nn


class Hashing(nn.Module):
    """Features of the backbone through a linear head, (n, bits), raw scores."""

    def __init__(self, backbone: nn.Module, n_bits: int):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(int(backbone.n_features), n_bits)  # type: ignore[arg-type]

    def forward(self, inputs):
        """Scores of a batch of inputs."""
        return self.head(self.backbone(inputs))
