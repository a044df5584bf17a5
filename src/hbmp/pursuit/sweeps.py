"""Coordinate sweeps over bits: set one bit after the other to the sign of its margin until no flip betters a code.

The margin of bit k is its score less the pull of the other bits, m_k = s_k - Σ_j G_kj u_j, and the bit becomes its
sign. A flip of bit k moves every other margin by one row of G. Two implementations give the same codes:

- compiled, where numba is installed: one row after the other; a flip costs one row of G. Few bits flip, so all sweeps
  together cost about as much as the matrix product that gives the first margins.
- blocked: a matrix product gives the margins of 32 bits of many rows; the bits within a block follow one by one.

    s      scores     (n, b)
    u      codes      (n, b)   floats in {-1, +1}
    G      overlaps   (b, b)   symmetric, 0 on the diagonal, times the coupling
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hbmp._core.compiled import compiled
from hbmp._core.machine import allowed_cores

_ROWS = 2048  # rows swept at a time: their margins stay in the processor's cache
_BLOCK = 32  # bits whose margins one matrix product gives


def sweep_codes(scores: np.ndarray, codes: np.ndarray, overlaps: np.ndarray, sweeps: int) -> None:
    """Sweep over the bits until no code changes, at most `sweeps` times; `codes` change in place."""
    kernel = compiled_kernel()
    parts = [slice(start, start + _ROWS) for start in range(0, len(codes), _ROWS)]

    def sweep(part: slice) -> None:
        if kernel is None:
            sweep_blocks(scores[part], codes[part], overlaps, sweeps)
        else:
            margins = codes[part] @ overlaps
            np.subtract(scores[part], margins, out=margins)
            kernel(margins, codes[part], overlaps, sweeps)

    n_threads = min(allowed_cores(), len(parts))
    if n_threads < 2:
        for part in parts:
            sweep(part)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(sweep, parts))


def successive_codes(scores: np.ndarray, overlaps: np.ndarray) -> np.ndarray:
    """Codes set bit after bit, each to the sign of what the bits before it leave; bits with long atoms come first."""
    codes = np.zeros_like(scores)
    for start in range(0, len(codes), _ROWS):
        part = slice(start, start + _ROWS)
        sweep_blocks(scores[part], codes[part], overlaps, 1)
    return codes


def compiled_kernel() -> Callable[..., Any] | None:
    """`sweep_margins` as machine code, or None where numba is not installed."""
    return compiled(sweep_margins)


def sweep_margins(margins: np.ndarray, codes: np.ndarray, overlaps: np.ndarray, sweeps: int) -> None:
    """The sweeps row by row, in place; `margins` are those of `codes`. Python that numba compiles."""
    n_rows, n_bits = codes.shape
    for row in range(n_rows):
        margin, code = margins[row], codes[row]
        for _ in range(sweeps):
            changed = False
            for bit in range(n_bits):
                if (margin[bit] >= 0) != (code[bit] > 0):
                    code[bit] = -code[bit]
                    step = code[bit] + code[bit]
                    pull = overlaps[bit]
                    for other in range(n_bits):
                        margin[other] -= step * pull[other]
                    changed = True
            if not changed:
                break


def sweep_blocks(scores: np.ndarray, codes: np.ndarray, overlaps: np.ndarray, sweeps: int) -> None:
    """The sweeps block by block of bits, in place; rows that no longer change are left out."""
    rows = np.arange(len(codes))
    scores, live = np.ascontiguousarray(scores.T), np.ascontiguousarray(codes.T)  # (b, n): a bit is one stretch
    for _ in range(sweeps):
        before = live.copy()
        for start in range(0, len(live), _BLOCK):
            _sweep_block(scores, live, overlaps, slice(start, start + _BLOCK))
        changed = (live != before).any(axis=0)
        codes[rows] = live.T
        if not changed.any():
            break
        rows, live, scores = rows[changed], live[:, changed], scores[:, changed]


def _sweep_block(scores: np.ndarray, codes: np.ndarray, overlaps: np.ndarray, block: slice) -> None:
    """One sweep over one block of bits; scores and codes (b, n)."""
    margins = scores[block] - overlaps[block] @ codes
    within = overlaps[block, block]
    for bit, margin in enumerate(margins):
        wanted = np.where(margin >= 0, codes.dtype.type(1), codes.dtype.type(-1))
        steps = wanted - codes[block][bit]
        codes[block][bit] = wanted
        margins[bit + 1 :] -= within[bit + 1 :, bit, None] * steps
