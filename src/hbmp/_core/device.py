"""The border to torch: which device computes, and the one place where arrays are sent to it and back.

Torch is optional. Without it `send` returns the NumPy array itself, so code written with operators that both libraries
share (`@`, `**`, slicing, `clip`) runs on the CPU in NumPy. Training needs torch: `require_torch` reports what to
install.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from hbmp._core.machine import allowed_cores

MANY_OPERATIONS = 5e9  # per step, from which on a second thread is worth its waiting


@functools.cache
def has_torch() -> bool:
    """Whether torch is installed. Torch is looked up, not imported."""
    if "torch" in sys.modules:
        return sys.modules["torch"] is not None
    try:
        return importlib.util.find_spec("torch") is not None
    except ImportError:
        return False


def require_torch(user: str) -> None:
    """Raise ImportError with the command that installs torch; `user` names the class or feature that trains by it."""
    if not has_torch():
        raise ImportError(f"{user} trains by torch: pip install 'hbmp[learn]'")


def pick_device(device: str = "auto") -> str:
    """Resolve `"auto"` to the GPU if torch finds one, else the CPU. Raise ValueError for a named device not present."""
    kind = str(device).split(":", maxsplit=1)[0]
    if device != "auto" and kind not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda', found {device!r}.")
    cuda = kind != "cpu" and _has_cuda()
    if device == "auto":
        return "cuda" if cuda else "cpu"
    if kind == "cuda" and not cuda:
        raise ValueError(f"device={device!r} is not available: torch finds no CUDA device. Use device='cpu'.")
    return str(device)


def to_torch(array: np.ndarray, device: str) -> Any:
    """Return an array as a tensor on `device`. On the CPU the tensor shares the memory of the array."""
    import torch

    return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device)


def send(array: np.ndarray, device: str) -> Any:
    """Return `array` as a tensor on `device`, or unchanged where torch is not installed."""
    return to_torch(array, device) if has_torch() else array


def to_numpy(tensor: Any) -> np.ndarray:
    """Return a tensor of any device as an array. An array is returned unchanged."""
    return tensor if isinstance(tensor, np.ndarray) else tensor.detach().cpu().numpy()


def as_float32(values: Any) -> Any:
    """Convert a tensor or an array to single precision."""
    return values.astype(np.float32) if isinstance(values, np.ndarray) else values.float()


def as_int64(values: Any) -> Any:
    """Convert a tensor or an array to 64-bit integers."""
    return values.astype(np.int64) if isinstance(values, np.ndarray) else values.long()


def level_of(values: Any, thresholds: Any) -> Any:
    """Count the increasing thresholds below each value: 0 up to the first threshold, then 1, and so on."""
    if isinstance(values, np.ndarray):
        return np.searchsorted(thresholds, values)
    import torch

    return torch.bucketize(values, thresholds)


def autocast(device: str, precision: str) -> Any:
    """Return a context in which networks compute in "bf16" or "fp16". It changes nothing for "float32"."""
    import torch

    low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    return torch.autocast(str(device).split(":", maxsplit=1)[0], dtype=low, enabled=low is not None)


@contextlib.contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """One torch thread while operations per step are few, otherwise as many as this process may use.

    Threads wait for each other by spinning, which costs the most where other processes take their cores.
    """
    if not has_torch():
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1 if operations < MANY_OPERATIONS else min(before, allowed_cores()))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _has_cuda() -> bool:
    if not has_torch():
        return False
    import torch

    return torch.cuda.is_available()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra and torch on one thread, for work made of many small steps."""
    from threadpoolctl import threadpool_limits

    with threads_for(0), threadpool_limits(1):
        yield
