"""What compiled loops are made of: the decorators, and operations of one instruction. Importing it takes numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

from hbmp._core.compiled import compiled


def loop(function: Callable[..., Any]) -> Any:
    """A function that Python calls."""
    return compiled(function)


def part(function: Callable[..., Any]) -> Any:
    """Part of the loops that call it: passing arrays on takes longer than bounding a hundred codes."""
    return compiled(function, inlined=True, makes_arrays=False)


def step(function: Callable[..., Any]) -> Any:
    """A function that loops or Python call; it makes no arrays."""
    return compiled(function, makes_arrays=False)


def rough(function: Callable[..., Any]) -> Any:
    """Such a function whose sums may be rounded in any way."""
    return compiled(function, makes_arrays=False, adds_in_order=False)


def _count_ones(_context: Any, _word: Any) -> Any:
    """Population count of a 64-bit word."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _lowest_one(_context: Any, _word: Any) -> Any:
    """Number of the lowest bit that is set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


ones: Any = intrinsic(_count_ones)
lowest: Any = intrinsic(_lowest_one)
