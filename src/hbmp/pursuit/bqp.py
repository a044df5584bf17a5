"""The Improve step (HBMP Alg. 1, line 5): better sign vectors for max vᵀAv, v in {-1, +1}ⁿ, an NP-hard problem.

Flipping v_i changes vᵀAv by -4 v_i (Av)_i (A has a zero diagonal), so a search needs the field Av, which is updated
as signs flip. First many signs flip at once while that helps. Then single flips are found in blocks: the items that
gain most are searched together through their small submatrix of A, and the field of all items is updated once.

    v      signs    (n,)
    f      field    (n,)     Av
    g      gain     (n,)     -v f, positive where flipping helps
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hbmp._core.compiled import compiled

if TYPE_CHECKING:
    from hbmp.pursuit.fit import Fit

NAMES = ("none", "resample", "one-flip", "tabu")
_MOST_FLIPS = 10  # of each item on average, likewise
_MOST_ROUNDS = 100  # far more than a search needs; in single precision rounding could keep one going


def improve_starts(name: str, fit: Fit, starts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Improve every start: (sign vectors (n, k), their matches vᵀAv (k,))."""
    fields = fit.residual_times(starts.astype(fit.operator.dtype))
    if name in ("one-flip", "tabu"):
        starts, fields = flip_at_once(fit, starts, fields, fit.steps_at_once)
    if name == "one-flip" and fit.has_matrix:
        starts, fields = one_flip_together(fit, starts, fields)
    elif name in ("one-flip", "tabu"):
        search = one_flip if name == "one-flip" else tabu
        searched = [search(fit, starts[:, k], fields[:, k], rng) for k in range(starts.shape[1])]
        starts, fields = (np.stack(part, axis=1) for part in zip(*searched, strict=True))
    return starts * starts[0], _matches(starts, fields)


def _matches(signs: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """vᵀAv of every column, in double precision."""
    return np.einsum("nk,nk->k", signs, fields, dtype=np.float64)


def flip_at_once(fit: Fit, starts: np.ndarray, fields: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Flip many signs per step, the ones that gain most on their own, while that raises vᵀAv. All (n, k).

    Flips can cancel each other. A step that does not help is undone, and the next one flips half as many signs. One
    product with A then does the work of hundreds of single flips.
    """
    signs = starts.astype(fields.dtype)
    noise, fraction = _noise(fit, fields), np.ones(signs.shape[1])
    values = _matches(signs, fields)
    for _ in range(steps):
        gains = -signs * fields
        trial = np.where(gains > _thresholds(gains, fraction, noise), -signs, signs)
        trial_fields = fit.residual_times(trial)
        trial_values = _matches(trial, trial_fields)
        better = trial_values > values + noise
        signs, fields = np.where(better, trial, signs), np.where(better, trial_fields, fields)
        values, fraction = np.where(better, trial_values, values), np.where(better, fraction, fraction / 2)
        if (fraction * len(signs) < 1).all():
            break
    return signs.astype(np.int8), fields


def _thresholds(gains: np.ndarray, fraction: np.ndarray, noise: float) -> np.ndarray:
    """For each column the gain above which the given fraction of its gaining signs lies."""
    found = np.empty(gains.shape[1])
    for k, column in enumerate(gains.T):
        gaining = column[column > noise]
        count = int(len(gaining) * (1 - fraction[k]))
        found[k] = np.partition(gaining, count)[count] * (1 - 1e-6) if 0 < count < len(gaining) else noise
    return found


def one_flip_together(fit: Fit, starts: np.ndarray, fields: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`one_flip` for many starts where A is a matrix: the best flip of each start per round. All (n, k)."""
    matrix, noise = fit.matrix(), _noise(fit, fields)
    assert matrix is not None
    flip = compiled(flip_best) if fit.is_held else None
    if flip is not None:
        signs = np.ascontiguousarray(starts.T, dtype=np.float64)
        gains = -signs * fields.T
        for k in range(len(signs)):
            flip(matrix, signs[k], gains[k], noise, _MOST_FLIPS * len(matrix))
        return signs.T.astype(np.int8), -(signs * gains).T.astype(fields.dtype)
    signs = np.ascontiguousarray(starts.T, dtype=fields.dtype)
    gains = -signs * fields.T
    rows, change = np.arange(len(signs)), np.empty_like(gains)
    for _ in range(_MOST_FLIPS * len(matrix)):
        highest = gains.max(axis=1)
        going = highest > noise
        if not going.any():
            break
        best = (gains >= (highest - noise)[:, None]).argmax(axis=1)
        turn = np.where(going, -1.0, 1.0)
        signs[rows, best] *= turn
        gains[rows, best] *= turn
        np.multiply(signs, matrix[best], out=change)
        change *= (signs[rows, best] * (1 - turn))[:, None]  # 2 v_i where item i was flipped, else 0
        gains -= change
    return signs.T.astype(np.int8), -(signs * gains).T


def flip_best(matrix: np.ndarray, signs: np.ndarray, gains: np.ndarray, noise: float, most: int) -> None:
    """The best flips of one start, in place. Python that numba compiles; gains in double precision do not drift."""
    n_items = len(signs)
    for _ in range(most):
        highest = gains.max()
        if highest <= noise:
            break
        best = 0
        while gains[best] < highest - noise:  # the first of equal gains
            best += 1
        signs[best] = -signs[best]
        gains[best] = -gains[best]
        row, step = matrix[best], signs[best] + signs[best]
        for other in range(n_items):
            gains[other] -= step * signs[other] * row[other]


def one_flip(fit: Fit, signs: np.ndarray, field: np.ndarray, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Flip single signs while any flip raises vᵀAv. The result (signs, field) is one-flip optimal and never worse."""
    if fit.matrix() is not None:
        signs, field = one_flip_together(fit, signs[:, None], field[:, None])
        return signs[:, 0], field[:, 0]
    signs, field = signs.astype(field.dtype), field.copy()
    block_size = int(np.clip(len(signs) // 4, 256, fit.operator.most_in_block))
    noise = _noise(fit, field)
    for _ in range(_MOST_ROUNDS):
        gain = -signs * field
        if gain.max() <= noise:
            break
        # Items close to a gain are in the block too, because the flips of others often give them one.
        block = np.sort(np.argpartition(gain, -block_size)[-block_size:])
        flipped = _flip_within(fit.residual_block(block), signs[block], gain[block], noise)
        items = block[flipped]
        field += fit.residual_times_columns(items, -2 * signs[items])
        signs[items] *= -1
    return signs.astype(np.int8), field


def _flip_within(block: np.ndarray, signs: np.ndarray, gain: np.ndarray, noise: float) -> np.ndarray:
    """Best single flips inside one block, one by one, until none helps. Returns the flipped positions."""
    signs, start = signs.copy(), signs
    for _ in range(10 * len(signs)):
        best = _first_best(gain, noise)
        if gain[best] <= noise:
            break
        signs[best] *= -1
        gain[best] *= -1
        gain -= (2 * signs[best]) * signs * block[best]
    return np.flatnonzero(signs != start)


def _first_best(gain: np.ndarray, noise: float) -> int:
    """The first item of largest gain. Rounding must not decide between equal gains."""
    return int(np.argmax(gain >= gain.max() - noise))


def _noise(fit: Fit, field: np.ndarray) -> float:
    """Gains below this are rounding errors of the field or of the affinity."""
    level = 1e-5 if field.dtype == np.float32 else 1e-10
    row_norm = np.sqrt(fit.squared_norm / len(field))
    return level * max(float(np.abs(field).max(initial=0)), float(row_norm))


def tabu(fit: Fit, signs: np.ndarray, field: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One-flip search that continues past local optima: each step takes the best flip that is not tabu, even a loss.

    A flipped item stays tabu for about n/10 + 5 steps, unless flipping it back gives a new best. The best vector is
    improved by `one_flip` and returned with its field.
    """
    n_items = len(signs)
    signs, field = one_flip(fit, signs, field)
    signs = signs.astype(field.dtype)
    best_signs, value, best_value = signs.copy(), 0.0, 0.0
    noise, free_again = _noise(fit, field), np.zeros(n_items, dtype=np.int64)
    step, last_success, patience = 0, 0, _patience(n_items)
    while step - last_success < patience:
        step += 1
        gain = -signs * field
        allowed = (free_again <= step) | (value + 4 * gain > best_value + noise)
        if not allowed.any():
            continue
        item = _first_best(np.where(allowed, gain, -np.inf), noise)
        value += 4 * float(gain[item])
        field += fit.residual_times_columns(np.array([item]), -2 * signs[[item]])
        signs[item] *= -1
        free_again[item] = step + n_items // 10 + int(rng.integers(1, 11))
        if value > best_value + noise:
            best_signs, best_value, last_success = signs.copy(), value, step
    return one_flip(fit, best_signs, fit.residual_times(best_signs[:, None])[:, 0])


def _patience(n_items: int) -> int:
    """Steps without a new best after which tabu search stops."""
    return min(10 * n_items, 1000 + n_items // 10)
