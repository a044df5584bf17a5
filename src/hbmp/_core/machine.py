"""The machine and the library versions that produced a result."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from functools import cache
from pathlib import Path

from hbmp._core.memory import total_memory

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "faiss-cpu")


@cache
def describe(device: str) -> dict:
    """Processor, cores, memory and, if `device` is a GPU, its name."""
    found = {"cpu": _cpu_model(), "cores": os.cpu_count(), "memory_gb": _memory_gb()}
    if device.startswith("cuda"):
        import torch

        found["gpu"] = torch.cuda.get_device_name(device)
    return found


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that determine the numbers."""
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue  # not installed under that name, for example another build of FAISS
    return found


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory_gb() -> int:
    return round(total_memory() / 2**30)
