"""A trained network made ready to encode many images: batch normalisation folded into the convolutions before it.

In use a normalisation multiplies and shifts each channel by fixed numbers, which the weights and the bias of the
convolution can do as well. One pass less over every map of features is what makes encoding quicker.

    γ, β       scale and shift that the normalisation learned       (channels,)
    μ, σ²      mean and variance that it keeps                      (channels,)
    W, b       weights and bias of the convolution                  (channels, …), (channels,)
    W', b'     γ W / √(σ² + ε)  and  γ (b − μ) / √(σ² + ε) + β
"""

from __future__ import annotations

import copy
import itertools

import torch
from torch import nn

_LARGE = 24 << 30  # bytes of memory of a device on which large batches fit beside the network's own training


def folded(module: nn.Module) -> nn.Module:
    """A copy of the module, ready for use, whose convolutions do the batch normalisation that follows them."""
    ready = copy.deepcopy(module).eval()
    for part in [*ready.modules()]:
        if not isinstance(part, nn.Sequential):  # elsewhere nothing says that one layer follows the other
            continue
        names = list(part._modules)
        for name, following in itertools.pairwise(names):
            convolution, norm = part._modules[name], part._modules[following]
            if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and norm.running_var is not None:
                _fold(convolution, norm)
                setattr(part, following, nn.Identity())
    return ready


def encoding_batch(device: str) -> int:
    """How many images to encode at a time: more where memory allows, because small batches leave a GPU waiting."""
    if not str(device).startswith("cuda"):
        return 512
    return 1024 if torch.cuda.get_device_properties(device).total_memory >= _LARGE else 256


@torch.no_grad()
def _fold(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    """Give the convolution W' and b'."""
    mean, variance = torch.as_tensor(norm.running_mean), torch.as_tensor(norm.running_var)
    factor = (variance + norm.eps).rsqrt()
    if norm.weight is not None:
        factor = factor * norm.weight
    bias = -mean * factor if convolution.bias is None else (convolution.bias - mean) * factor
    if norm.bias is not None:
        bias = bias + norm.bias
    convolution.weight.mul_(factor.reshape(-1, 1, 1, 1))
    convolution.bias = nn.Parameter(bias)
