"""Relations of pairs of samples from their label rows, for a batch against a batch or against a memory.

Every function takes rows of 0/1 labels, shape (n, c) and (m, c), and gives an (n, m) matrix. Nothing here grows with
the training set: a loss needs one batch at a time.
"""

from __future__ import annotations

from typing import Any

import torch


def full_precision(tensor: torch.Tensor) -> Any:
    """A context in which products stay float32, even if a network runs in half precision."""
    return torch.autocast(device_type=tensor.device.type, enabled=False)


def inner(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Inner products of rows, (n, k) and (m, k) to (n, m), in float32."""
    with full_precision(a):
        return a.float() @ b.float().T


def shared_counts(labels: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Number of labels that two samples share; for classes 1 or 0."""
    return inner(labels, others)


def similar(labels: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Whether two samples share at least one label."""
    return shared_counts(labels, others) > 0


def jaccard(labels: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Shared labels over labels of either sample, in [0, 1]; 0 if neither has any."""
    shared = shared_counts(labels, others)
    either = labels.float().sum(dim=1)[:, None] + others.float().sum(dim=1) - shared
    return shared / either.clamp(min=1)


def distinct(rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Whether two positions in the training set differ: False marks a sample paired with itself."""
    return rows[:, None] != others[None, :]


def similar_and_not(
    labels: torch.Tensor, rows: torch.Tensor, others: torch.Tensor | None = None, other_rows: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """(similar pairs, dissimilar pairs), bool, never a sample with itself; by default of the batch with itself."""
    if others is None or other_rows is None:
        others, other_rows = labels, rows
    share = similar(labels, others)
    return share & distinct(rows, other_rows), ~share & distinct(rows, other_rows)


def mean_over(values: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Mean of the selected values, 0 if none is selected. Other values have no gradient."""
    return torch.where(chosen, values, torch.zeros_like(values)).sum() / chosen.sum().clamp(min=1)


def drawn_partners(allowed: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For each row up to `count` different allowed columns: (columns, whether each is allowed), both (n, count).

    The columns with the largest of random keys, so that every allowed one is equally likely. Drawn from torch's own
    generator, which the training seeds and its checkpoints hold.
    """
    keys = torch.where(allowed, torch.rand(allowed.shape, device=allowed.device), -1.0)
    largest, columns = keys.topk(min(count, allowed.shape[1]), dim=1, sorted=False)
    return columns, largest >= 0


def drawn_triplets(
    agreement: torch.Tensor, alike: torch.Tensor, unlike: torch.Tensor, partners: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Agreements of each query with up to `partners` similar and as many dissimilar samples, drawn.

    agreement, alike, unlike: (n, m). Returns (n, p), (n, r), and (n, p, r), true for the triplets that exist.
    """
    near, is_near = drawn_partners(alike, partners)
    far, is_far = drawn_partners(unlike, partners)
    return agreement.gather(1, near), agreement.gather(1, far), is_near[:, :, None] & is_far[:, None, :]


def at_least(least: int, **counts: Any) -> None:
    """Raise ValueError for a count that is too small."""
    for name, count in counts.items():
        if not count >= least:
            raise ValueError(f"{name} must be at least {least}, found {count!r}.")


def quantisation_error(scores: torch.Tensor) -> torch.Tensor:
    """Mean over samples of ‖u - sgn(u)‖², the signs fixed."""
    signs = torch.where(scores >= 0, 1.0, -1.0)
    return (scores - signs).square().sum(dim=1).mean()
