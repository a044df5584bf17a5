"""What two rows of labels say of a pair of samples, for a batch against a batch or against a memory.

Every function takes rows of 0/1 labels, shape (n, c) and (m, c), and gives an (n, m) matrix. Nothing here grows with
the training set: a loss asks for a batch at a time.
"""

from __future__ import annotations

import torch


def inner(a, b):
    """Inner products of rows, (n, k) and (m, k) to (n, m), in float32 also where a network runs in half precision."""
    with torch.autocast(device_type=a.device.type, enabled=False):
        return a.float() @ b.float().T


def shared_counts(labels, others):
    """How many labels two samples share; for classes 1 or 0."""
    return inner(labels, others)


def similar(labels, others):
    """Whether two samples share at least one label."""
    return shared_counts(labels, others) > 0


def jaccard(labels, others):
    """Labels shared over labels that either has, in [0, 1]; 0 where neither has any."""
    shared = shared_counts(labels, others)
    either = labels.float().sum(dim=1)[:, None] + others.float().sum(dim=1) - shared
    return shared / either.clamp(min=1)


def distinct(rows, others):
    """Whether two positions in the training set differ: False marks a sample paired with itself."""
    return rows[:, None] != others[None, :]


def similar_and_not(labels, rows, others=None, other_rows=None):
    """(similar pairs, dissimilar pairs), bool; a sample with itself is in neither. Against the batch unless given."""
    others, other_rows = (labels, rows) if others is None else (others, other_rows)
    share = similar(labels, others)
    return share & distinct(rows, other_rows), ~share & distinct(rows, other_rows)


def mean_over(values, chosen):
    """Mean of the values at the chosen places, 0 where none is chosen; not chosen values take no part in gradients."""
    return torch.where(chosen, values, torch.zeros_like(values)).sum() / chosen.sum().clamp(min=1)


def quantisation_error(scores):
    """Mean over samples of ‖u - sgn(u)‖², the signs fixed."""
    signs = torch.where(scores >= 0, 1.0, -1.0)
    return (scores - signs).square().sum(dim=1).mean()
