"""Memory of the machine, in bytes, on every platform."""

from __future__ import annotations

import psutil


def available_memory() -> int:
    """Bytes that a program can allocate now without swapping."""
    return int(psutil.virtual_memory().available)


def total_memory() -> int:
    """Bytes of main memory that the machine has."""
    return int(psutil.virtual_memory().total)
