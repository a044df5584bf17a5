"""Batch normalisation of scores in training; afterwards a factor and a shift of each score."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.device import to_numpy


class ScoreNorm(nn.Module):
    """Scores with mean 0 and spread 1 over a batch, then a learned factor and shift."""

    def __init__(self, n_bits: int):
        super().__init__()
        self.norm = nn.BatchNorm1d(n_bits)

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        """Normalised scores, (n, n_bits) float32."""
        scores, norm = scores.float(), self.norm
        if len(scores) > 1:
            return norm(scores)
        # one sample has no spread: use the running statistics
        return F.batch_norm(scores, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)

    def affine(self) -> tuple[np.ndarray, np.ndarray]:
        """(factor, shift) of each bit, (n_bits,) each."""
        norm = self.norm
        mean, variance = torch.as_tensor(norm.running_mean), torch.as_tensor(norm.running_var)
        factor = norm.weight / torch.sqrt(variance + norm.eps)
        return to_numpy(factor), to_numpy(norm.bias - factor * mean)
