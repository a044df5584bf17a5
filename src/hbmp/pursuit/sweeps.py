"""Coordinate sweeps over bits: set one bit after the other to the sign of its margin until no flip betters a code.

The margin of bit k is its score less the pull of the other bits, m_k = s_k - Σ_j G_kj u_j, and the bit becomes its
sign. A flip of bit k moves every other margin by one row of G. Two implementations give the same codes:

- compiled, where numba is installed: one row after the other; a flip costs one row of G. Few bits flip, so all sweeps
  together cost about as much as the matrix product that gives the first margins.
- blocked: a matrix product gives the margins of 32 bits of many rows; the bits within a block follow one by one.

    s      scores     (n, b)
    u      codes      (n, b)   floats in {-1, +1}
    G      overlaps   (b, b)   symmetric, 0 on the diagonal, times the coupling

A radial term (`radial`) adds p_k (r - Σ_j p_j u_j) over the other bits j to the margin of bit k.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hbmp._core.compiled import compiled
from hbmp._core.machine import allowed_cores
from hbmp.pursuit.radial import RadialTerms

_ROWS = 2048  # rows swept at a time: their margins stay in the processor's cache
_BLOCK = 32  # bits whose margins one matrix product gives


def sweep_codes(
    scores: np.ndarray,
    codes: np.ndarray,
    overlaps: np.ndarray,
    sweeps: int,
    radial: tuple[RadialTerms, np.ndarray] | None = None,
) -> None:
    """Sweep over the bits until no code changes, at most `sweeps` times; `codes` change in place.

    radial: the radial term of the atoms and the targets of the rows' own scores; `scores` are then y·c_k
    """
    kernel = compiled_kernel() if radial is None else compiled(sweep_radial_margins)
    parts = [slice(start, start + _ROWS) for start in range(0, len(codes), _ROWS)]

    def sweep(part: slice) -> None:
        more = () if radial is None else _radial(*radial, scores[part], codes[part], part)
        if kernel is None:
            sweep_blocks(scores[part], codes[part], overlaps, sweeps, *more)
        else:
            margins = codes[part] @ overlaps
            np.subtract(scores[part], margins, out=margins)
            kernel(margins, codes[part], overlaps, sweeps, *more)

    n_threads = min(allowed_cores(), len(parts))
    if n_threads < 2:
        for part in parts:
            sweep(part)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(sweep, parts))


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


def sweep_radial_margins(
    margins: np.ndarray,
    codes: np.ndarray,
    overlaps: np.ndarray,
    sweeps: int,
    products: np.ndarray,
    rests: np.ndarray,
) -> None:
    """The same with the radial term; `rests` are what the products with `codes` leave of the aims, and change too."""
    n_rows, n_bits = codes.shape
    for row in range(n_rows):
        margin, code, product, rest = margins[row], codes[row], products[row], rests[row]
        for _ in range(sweeps):
            changed = False
            for bit in range(n_bits):
                if (margin[bit] + product[bit] * (rest + product[bit] * code[bit]) >= 0) != (code[bit] > 0):
                    code[bit] = -code[bit]
                    step = code[bit] + code[bit]
                    rest -= step * product[bit]
                    pull = overlaps[bit]
                    for other in range(n_bits):
                        margin[other] -= step * pull[other]
                    changed = True
            if not changed:
                break


def sweep_blocks(
    scores: np.ndarray,
    codes: np.ndarray,
    overlaps: np.ndarray,
    sweeps: int,
    products: np.ndarray | None = None,
    rests: np.ndarray | None = None,
) -> None:
    """The sweeps block by block of bits, in place; rows that no longer change are left out."""
    rows = np.arange(len(codes))
    scores, live = np.ascontiguousarray(scores.T), np.ascontiguousarray(codes.T)  # (b, n): a bit is one stretch
    products = None if products is None else np.ascontiguousarray(products.T)
    for _ in range(sweeps):
        before = live.copy()
        for start in range(0, len(live), _BLOCK):
            _sweep_block(scores, live, overlaps, slice(start, start + _BLOCK), products, rests)
        changed = (live != before).any(axis=0)
        codes[rows] = live.T
        if not changed.any():
            break
        rows, live, scores = rows[changed], live[:, changed], scores[:, changed]
        if products is not None and rests is not None:
            products, rests = products[:, changed], rests[changed]


def _sweep_block(
    scores: np.ndarray,
    codes: np.ndarray,
    overlaps: np.ndarray,
    block: slice,
    products: np.ndarray | None,
    rests: np.ndarray | None,
) -> None:
    """One sweep over one block of bits; scores, codes and products (b, n)."""
    margins = scores[block] - overlaps[block] @ codes
    within = overlaps[block, block]
    for bit, margin in enumerate(margins):
        code = codes[block][bit]
        if products is not None and rests is not None:
            product = products[block][bit]
            margins[bit] += product * (rests + product * code)  # `margin` is this row of margins
        wanted = np.where(margin >= 0, codes.dtype.type(1), codes.dtype.type(-1))
        steps = wanted - code
        codes[block][bit] = wanted
        margins[bit + 1 :] -= within[bit + 1 :, bit, None] * steps
        if products is not None and rests is not None:
            rests -= product * steps


def _radial(
    terms: RadialTerms, targets: np.ndarray, scores: np.ndarray, codes: np.ndarray, part: slice
) -> tuple[np.ndarray, np.ndarray]:
    """(products (n, b), what the codes leave of the aims (n,)) of one part of the rows."""
    products = terms.products(scores)
    return products, terms.aims(targets[part]) - (products * codes).sum(axis=1)
