"""The pursuit without labels in stages: all bits at once, nested stages, or layers of at most one bit per axis.

Reverse water-filling gives an axis of variance λ above the water level θ about ½ log2(λ/θ) bits. So where variances
fall steeply, few axes get several bits each. `ALIKE` makes layers follow this: a layer takes the axes of about equal
variance of what the layers before leave, and a bit per axis lowers these below the next. Where axes are all alike, one
layer takes all bits.

Y      points     (n, m)
C      atoms      (b, m)   what each bit stands for
E      rest       (n, m)   what the stages so far leave
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.progress import parts
from hbmp._training.resuming import kept
from hbmp.methods._shared.rotation import as_signs, learn_rotation
from hbmp.pursuit.features import choose_codes, overlaps_of, refine
from hbmp.pursuit.radial import Radial

_ROTATIONS = 50  # iterations of the start
_ROTATED, _FEWEST_ROTATED = 20, 5000  # rows per bit that the start's rotation is learned from, and the fewest
_SETTLED = 1e-3  # of what is unexplained: an iteration that gains less is the last
ALIKE = 0.1  # least variance of an axis over the largest in its layer; chosen on training rows
_STEEP, _SPARE = 8, 3  # bits per such axis from which on there are layers, and up to which one of them is the last
_SMALLEST = 16  # a layer takes at least this part of the bits left
SWEEPS = 8  # of an encoding; nearly all bits are settled after three


def stage_sizes(n_bits: int, nested: bool) -> list[int]:
    """Bits per stage of the pursuit: all at once, or so that an eighth, a quarter and half of the bits are codes."""
    if not nested:
        return [n_bits]
    ends = [n_bits // 8, n_bits // 4, n_bits // 2, n_bits]
    return [int(size) for size in np.diff([0, *ends]) if size]


def staged_atoms(
    points: np.ndarray,
    sizes: Any,
    coupling: float,
    n_iter: int,
    rng: np.random.Generator,
    radial: Radial | None = None,
) -> tuple[np.ndarray, list[float]]:
    """(atoms of one stage after another, share of the points' squared length left after each iteration)."""
    rest, atoms, unexplained = points, [], []
    for size in parts(sizes):
        share = squares(rest) / squares(points)
        found, left = refine(
            rest, _start(rest, principal(rest)[1], size, rng), coupling, n_iter, tol=_SETTLED, radial=radial
        )
        atoms.append(found)
        unexplained += [share * each for each in left]
        if len(sizes) > 1:
            rest = rest - choose_codes(rest @ found.T, overlaps_of(found), coupling) @ found
    return np.concatenate(atoms), unexplained


def layered_atoms(
    points: np.ndarray, n_bits: int, n_iter: int, radial: Radial | None, rng: np.random.Generator, alike: float = 0.0
) -> tuple[np.ndarray, list[int], np.ndarray, list[float]]:
    """(atoms of the layers, their sizes, atoms of all bits together, unexplained).

    Layers of at most one bit per axis, each learned on what those before leave; then all atoms are refined together,
    with codes that start from the layers.
    """
    sizes: list[int] = []
    rest, atoms = points, []
    while (left := n_bits - sum(sizes)) > 0:
        variances, components = principal(rest)
        sizes.append(layer_size(variances, left, alike, _SPARE if sizes else _STEEP))
        found, _ = refine(rest, _start(rest, components, sizes[-1], rng), 1.0, n_iter, tol=_SETTLED)
        atoms.append(found)
        if left > sizes[-1]:
            rest = rest - choose_codes(rest @ found.T, overlaps_of(found), 1.0) @ found
    layers = np.concatenate(atoms)
    codes = staged_codes(points @ layers.T, overlaps_of(layers), 1.0, sizes)
    together, unexplained = refine(points, codes, 1.0, n_iter, tol=_SETTLED, radial=radial)
    return layers, sizes, together, unexplained


def layer_size(variances: np.ndarray, n_bits: int, alike: float, spare: float) -> int:
    """Bits of the next layer, of n_bits that are left: one per axis, and all where these are few for the alike axes."""
    n_alike = int((variances >= alike * variances[0]).sum())
    steep = alike > 0 and min(n_bits, len(variances)) > spare * n_alike
    return min(n_bits, max(n_alike, n_bits // _SMALLEST) if steep else n_bits, len(variances))


def staged_codes(agreement: np.ndarray, overlaps: np.ndarray, coupling: float, sizes: Any) -> np.ndarray:
    """Codes stage by stage: the bits of earlier stages are fixed, and later ones explain what they leave."""
    if len(sizes) == 1:
        return choose_codes(agreement, overlaps, coupling, sweeps=SWEEPS)
    codes, start = np.empty_like(agreement), 0
    for size in sizes:
        stage = slice(start, start + size)
        rest = agreement[:, stage] - codes[:, :start] @ overlaps[:start, stage]
        codes[:, stage] = choose_codes(rest, overlaps[stage, stage], coupling, sweeps=SWEEPS)
        start += size
    return codes


def squares(rows: np.ndarray) -> float:
    """Sum of squares."""
    return float(np.square(rows).sum(dtype=np.float64))


def principal(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sums of squares along the principal axes, the axes as columns), the largest first."""
    squares, components = np.linalg.eigh((points.T @ points).astype(np.float64))
    return np.maximum(squares[::-1], 0), components[:, ::-1]


def _start(points: np.ndarray, components: np.ndarray, size: Any, rng: np.random.Generator) -> np.ndarray:
    """Codes to start from: signs of the leading axes of these points under ITQ's rotation."""
    leading = points @ np.ascontiguousarray(components[:, :size], dtype=points.dtype)

    def rotate() -> dict[str, Any]:
        n_rows = max(_ROTATED * size, _FEWEST_ROTATED)
        few = leading if len(leading) <= n_rows else leading[rng.choice(len(leading), n_rows, replace=False)]
        rotation, _ = learn_rotation(few, size, _ROTATIONS, rng)
        return {"rotation": rotation, "random": rng.bit_generator.state}

    found = kept(rotate, leading, rng.bit_generator.state)
    rng.bit_generator.state = found["random"]
    return as_signs(leading @ found["rotation"].astype(points.dtype))
