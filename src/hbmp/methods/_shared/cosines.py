"""Cross-entropy over the cosines of scores with codes, where the right code should be the nearest."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from hbmp.methods._shared.pairs import inner


def cosine_cross_entropy(
    scores: torch.Tensor, labels: torch.Tensor, codes: torch.Tensor, scale: float, margin: float
) -> torch.Tensor:
    """The loss of each sample, (n,); 0 for a sample without labels.

    scores : (n, b); labels : (n, c) rows of 0/1, with equal targets for all labels of a sample; codes : (c, b)
    scale, margin : factor of the cosines, and what is taken off those with right codes
    """
    cosines = inner(F.normalize(scores.float(), dim=1), F.normalize(codes, dim=1))
    logits = scale * (cosines - margin * labels)
    shares = labels / labels.sum(dim=1, keepdim=True).clamp(min=1)
    return -(shares * F.log_softmax(logits, dim=1)).sum(dim=1)
