"""Loops as machine code, where numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def compiled(
    loop: Callable, inlined: bool = False, makes_arrays: bool = True, adds_in_order: bool = True
) -> Callable | None:
    """The function as machine code that releases the interpreter's lock, or None where numba is not installed.

    An `inlined` function becomes part of the compiled functions that call it. One that makes no arrays need not count
    references to those that it is given, which can take longer than what it does with them.
    Sums that need not be added in order are added eight at a time.
    """
    try:
        import numba
    except ImportError:
        return None
    fastmath = set() if adds_in_order else {"reassoc"}
    settings: dict[str, Any] = {"nogil": True, "forceinline": inlined, "_nrt": makes_arrays, "fastmath": fastmath}
    try:
        return numba.njit(cache=True, **settings)(loop)
    except RuntimeError:  # no folder to keep the machine code in
        return numba.njit(**settings)(loop)
