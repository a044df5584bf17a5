"""Levels: where there are more bits than features, several bits share a principal axis.

m signs with weights s/2 (2^(m-1), …, 2, 1) sum to 2^m levels at equal distances s: a scalar quantiser that any
weighted inner product reads. Each next bit goes to the axis whose error it lowers most, which spends more bits on axes
with more variance (reverse water-filling).

    λ      variances  (m,)     of the axes
    D_k    error      of the best quantiser with k bits of a normal variable of variance 1
    s_k    step       of that quantiser

Reference: Max, Quantizing for minimum distortion, 1960: the steps and errors.
"""

from __future__ import annotations

import numpy as np

_ERRORS = np.array([1, 0.3634, 0.1188, 0.03744, 0.01154, 0.003495, 0.001041, 0.0003035, 0.0000869])  # D_k
_STEPS = np.array([0, 1.596, 0.9957, 0.5860, 0.3352, 0.1881, 0.1041, 0.0569, 0.0308])  # s_k
MOST_BITS = len(_STEPS) - 1  # per axis


def bits_per_axis(variances: np.ndarray, n_bits: int) -> np.ndarray:
    """How many bits each axis gets, (m,); at most `MOST_BITS` each."""
    given = np.zeros(len(variances), dtype=np.int64)
    gains = variances * (_ERRORS[0] - _ERRORS[1])
    for _ in range(min(n_bits, MOST_BITS * len(variances))):
        axis = int(np.argmax(gains))
        given[axis] += 1
        k = given[axis]
        gains[axis] = variances[axis] * (_ERRORS[k] - _ERRORS[k + 1]) if k < MOST_BITS else -1
    return given


def level_atoms(variances: np.ndarray, n_bits: int) -> np.ndarray:
    """Atoms (n_bits, m) of the levels on each axis, longest first."""
    atoms = []
    for axis, k in enumerate(bits_per_axis(variances, n_bits)):
        for place in range(k):
            atom = np.zeros(len(variances), dtype=np.float32)
            atom[axis] = np.sqrt(variances[axis]) * _STEPS[k] * 2.0 ** (k - 2 - place)
            atoms.append(atom)
    return longest_first(np.array(atoms, dtype=np.float32))


def longest_first(atoms: np.ndarray) -> np.ndarray:
    """The same atoms in the order of their lengths."""
    return atoms[np.argsort(-np.linalg.norm(atoms, axis=1), kind="stable")]
