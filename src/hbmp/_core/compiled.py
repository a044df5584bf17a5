"""Loops as machine code, where numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache


@cache
def compiled(loop: Callable, inlined: bool = False) -> Callable | None:
    """The function as machine code that releases the interpreter's lock, or None where numba is not installed.

    An `inlined` function becomes part of the compiled functions that call it.
    """
    try:
        import numba
    except ImportError:
        return None
    try:
        return numba.njit(nogil=True, forceinline=inlined, cache=True)(loop)
    except RuntimeError:  # no folder to keep the machine code in
        return numba.njit(nogil=True, forceinline=inlined)(loop)
