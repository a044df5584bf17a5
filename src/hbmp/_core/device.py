"""The border to torch: which device computes, and the one place where arrays cross over and back."""

from __future__ import annotations

import contextlib

import numpy as np


def pick_device(device: str = "auto") -> str:
    """`"auto"` is the GPU where torch sees one, the CPU otherwise; a named device that is missing is refused."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind = str(device).split(":", maxsplit=1)[0]
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda', found {device!r}.")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} was asked for, but torch sees no CUDA device here. Use device='cpu'.")
    return str(device)


def to_torch(array: np.ndarray, device: str):
    """An array as a tensor on `device`; on the CPU it shares the array's memory."""
    import torch

    return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device)


def to_numpy(tensor) -> np.ndarray:
    """A tensor of any device as an array."""
    return tensor.detach().cpu().numpy()


def autocast(device: str, precision: str):
    """A context in which a network computes in "bf16" or "fp16"; with "float32" it changes nothing."""
    import torch

    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    return torch.autocast(str(device).split(":", maxsplit=1)[0], dtype=low, enabled=low is not None)


@contextlib.contextmanager
def threads_for(operations: float):
    """One torch thread while operations are few: waiting for a second one costs more than it brings."""
    import torch

    before = torch.get_num_threads()
    if operations < 5e8:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
