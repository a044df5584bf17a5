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


def allowed_cores() -> int:
    """Cores this process may use: by its affinity, the quota of its control group, and OMP_NUM_THREADS."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    limits = [affinity, _quota(), int(wanted) if wanted.isdigit() and int(wanted) else affinity]
    return max(1, min(limits))


def _quota(folder: Path = Path("/sys/fs/cgroup")) -> int:
    """Whole cores of the control group's quota; all of the machine's if there is none."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()[:2]
        else:
            quota = (folder / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu" / "cpu.cfs_period_us").read_text()
        return max(1, int(quota) // int(period)) if quota.isdigit() else os.cpu_count() or 1
    except (OSError, ValueError):
        return os.cpu_count() or 1


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory_gb() -> int:
    return round(total_memory() / 2**30)
