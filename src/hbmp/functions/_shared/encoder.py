"""A trained network prepared for encoding: batch normalisation folded into the convolutions before it.

At inference a normalisation multiplies and shifts each channel by fixed numbers. The weights and bias of the
convolution before it can do the same, which saves a pass over every feature map.

    γ, β       learned scale and shift of the normalisation         (channels,)
    μ, σ²      its running mean and variance                        (channels,)
    W, b       weights and bias of the convolution                  (channels, …), (channels,)
    W', b'     γ W / √(σ² + ε)  and  γ (b − μ) / √(σ² + ε) + β
"""

from __future__ import annotations

import copy
import itertools

import torch
from torch import nn

_LARGE = 24 << 30  # bytes of device memory from which large batches fit beside training


def folded(module: nn.Module) -> nn.Module:
    """A copy of the module in evaluation mode, with each batch normalisation folded into its convolution."""
    ready = copy.deepcopy(module).eval()
    for part in [*ready.modules()]:
        if not isinstance(part, nn.Sequential):  # only here the order of the layers is certain
            continue
        names = list(part._modules)
        for name, following in itertools.pairwise(names):
            convolution, norm = part._modules[name], part._modules[following]
            if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and norm.running_var is not None:
                _fold(convolution, norm)
                setattr(part, following, nn.Identity())
    return ready


def encoding_batch(device: str) -> int:
    """Number of images to encode at a time: more with more memory, because small batches leave a GPU idle."""
    if not str(device).startswith("cuda"):
        return 512
    return 1024 if torch.cuda.get_device_properties(device).total_memory >= _LARGE else 256


@torch.no_grad()
def _fold(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    """Set the weights and bias of the convolution to W' and b'."""
    mean, variance = torch.as_tensor(norm.running_mean), torch.as_tensor(norm.running_var)
    factor = (variance + norm.eps).rsqrt()
    if norm.weight is not None:
        factor = factor * norm.weight
    bias = -mean * factor if convolution.bias is None else (convolution.bias - mean) * factor
    if norm.bias is not None:
        bias = bias + norm.bias
    convolution.weight.mul_(factor.reshape(-1, 1, 1, 1))
    convolution.bias = nn.Parameter(bias)
