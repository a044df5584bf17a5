"""What a loss draws for itself: positions and partners at random, from a seed of its own on any device."""

from __future__ import annotations

import torch


class Draws:
    """A seeded stream of draws; the generator is made on the device that first asks."""

    def __init__(self, seed: int):
        self.seed, self.generator = seed, None

    def integers(self, below: int, count: int, device):
        """Whole numbers in [0, below), with replacement. Shape (count,)."""
        return torch.randint(below, (count,), generator=self._on(device), device=device)

    def partners(self, allowed, count: int):
        """For each row up to `count` different columns of those allowed: (columns, whether each is one), (n, count).

        The columns with the largest of random keys: every allowed column is equally likely.
        """
        keys = torch.rand(allowed.shape, generator=self._on(allowed.device), device=allowed.device)
        keys = torch.where(allowed, keys, torch.full_like(keys, -1))
        largest, columns = keys.topk(min(count, allowed.shape[1]), dim=1, sorted=False)
        return columns, largest >= 0

    def _on(self, device):
        if self.generator is None or self.generator.device != torch.device(device):
            self.generator = torch.Generator(device=device).manual_seed(self.seed)
        return self.generator
