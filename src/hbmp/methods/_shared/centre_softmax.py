"""The loss of minimal-distance-separated centres: a softmax over cosines to all centres, positive pairs, quantisation.

u      scores        (n, b)
h_j    centres       (c, b)   ±1
P_ij   chances       (n, c)   softmax over j of √b cos(u_i, h_j)
L_C    mean over samples and centres of −[y_ij log P_ij + (1 − y_ij) log(1 − P_ij)], times c
L_P    mean over pairs of one class of log(1 + exp(½ (1 − cos(u_i, u_k))))
L_Q    mean over samples and bits of (|u| − 1)²
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp.methods._shared.memory import Memory
from hbmp.methods._shared.pairs import inner, mean_over, similar_and_not


def centre_entropy(scores: torch.Tensor, labels: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """L_C of each sample, (n,): cross-entropy of the chances, of every centre as a yes or no."""
    cosines = inner(F.normalize(scores, dim=1), F.normalize(centres, dim=1))
    logits = cosines * centres.shape[1] ** 0.5
    log_yes = F.log_softmax(logits, dim=1)
    log_no = torch.log1p(-log_yes.exp().clamp(max=1 - 1e-6))
    return -(labels * log_yes + (1 - labels) * log_no).sum(dim=1)


def positive_pair_loss(scores: torch.Tensor, others: torch.Tensor, positive: torch.Tensor) -> torch.Tensor:
    """L_P over the pairs that are marked."""
    cosines = inner(F.normalize(scores, dim=1), F.normalize(others, dim=1))
    return mean_over(F.softplus((1 - cosines) / 2), positive)


class CentreSoftmaxLoss(nn.Module):
    """L_C + pair_weight · L_P + quantisation · L_Q; pairs are of the batch and remembered scores."""

    centres: torch.Tensor

    def __init__(self, centres: np.ndarray, labels: np.ndarray, pair_weight: float, quantisation: float, memory: int):
        super().__init__()
        self.pair_weight, self.quantisation = pair_weight, quantisation
        self.register_buffer("centres", torch.from_numpy(centres.astype(np.float32)))
        self.memory = Memory(labels, centres.shape[1], memory)

    def forward(self, scores: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        scores = scores.float()
        value = centre_entropy(scores, labels, self.centres).mean()
        if self.pair_weight:
            self.memory.keep(scores, rows)
            others, other_labels, other_rows = self.memory.draw(rows)
            positive, _ = similar_and_not(labels, rows, other_labels, other_rows)
            value = value + self.pair_weight * positive_pair_loss(scores, others, positive)
        return value + self.quantisation * (scores.abs() - 1).square().mean()
