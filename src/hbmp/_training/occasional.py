"""A layer of two parts of scores, of which the second is computed in every few training steps only.

Hundreds of label scores beside 32 bits would take most of a training, and they need fewer steps than bits. A loss
requests this through an attribute `occasional`; in the other steps it is called with the first scores alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Occasional:
    """Scores from `first` on are computed in every `period`-th training step, and learn `rate` times as fast."""

    first: int
    period: int
    rate: float = 1.0

    @property
    def rates(self) -> tuple[tuple[str, float], ...]:
        """Rates of a `Recipe` for a network whose only layer is an `OccasionalLinear`."""
        return (("0.at_times", self.rate),) if self.rate != 1 else ()


class OccasionalLinear(nn.Module):
    """A linear layer to `n_scores` scores; parameters of skipped scores have no gradient and do not change."""

    def __init__(self, n_inputs: int, n_scores: int, occasional: Occasional):
        super().__init__()
        self.always = nn.Linear(n_inputs, occasional.first)
        self.at_times = nn.Linear(n_inputs, n_scores - occasional.first)
        self.period, self.step = occasional.period, 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        first = self.always(inputs)
        skipped = self.training and self.step % self.period != 0
        self.step += self.training
        return first if skipped else torch.cat([first, self.at_times(inputs)], dim=1)

    def get_extra_state(self) -> torch.Tensor:
        """The number of steps, which a checkpoint must hold."""
        return torch.tensor(self.step)

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Continue after that many steps."""
        self.step = int(state)

    @property
    def joined(self) -> tuple[Any, Any]:
        """Weights and bias of all scores, as of one layer."""
        parts = (self.always, self.at_times)
        return torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])
