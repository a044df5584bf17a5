"""The latest scores of every training sample, so that a batch is compared to more than itself.

u_j     scores    (n, b)   what the function last gave for sample j, fixed while the batch is stepped
y_j     labels    (n, c)   0/1

A step compares the batch with `size` rows drawn from the samples seen so far, which keeps its cost the same however
many samples there are, and with all of them where there are no more than that. With a size of 0 it is compared with
itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from hbmp.methods._shared.pairs import at_least


def memory_size(given: int | str, function: Any) -> int:
    """Rows to compare a batch with. "auto" is 1,000, and 0 for a network, which outruns scores of an earlier epoch."""
    if isinstance(given, str) and given == "auto":
        return 0 if function is not None and function.takes_images else 1000
    at_least(0, memory=int(given))
    return int(given)


class Memory(nn.Module):
    """Scores and labels of the training samples; `size` of the rows seen so far are drawn at a time."""

    labels: torch.Tensor
    scores: torch.Tensor
    seen: torch.Tensor

    def __init__(self, labels: np.ndarray, n_bits: int, size: int):
        super().__init__()
        self.size = size
        self.register_buffer("labels", torch.from_numpy(np.asarray(labels, dtype=np.uint8)), persistent=False)
        self.register_buffer("scores", torch.zeros(len(labels), n_bits))
        self.register_buffer("seen", torch.zeros(len(labels), dtype=torch.bool))

    def keep(self, scores: torch.Tensor, rows: torch.Tensor) -> None:
        """Store the scores of a batch."""
        self.scores[rows] = scores.detach().float()
        self.seen[rows] = True

    def draw(self, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(scores, labels, positions) of stored rows, or of the batch itself."""
        rows = batch if self.size == 0 else self.seen.nonzero()[:, 0]
        if len(rows) > self.size > 0:
            rows = rows[torch.randint(len(rows), (self.size,), device=rows.device)]
        return self.scores[rows], self.labels[rows].float(), rows
