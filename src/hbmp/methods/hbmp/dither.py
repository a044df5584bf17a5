"""Thresholds that differ from bit to bit, so that redundant bits express how certain a class is.

With many more bits than classes need, groups of bits carry the same decision. Cut at one threshold they all flip
together and a class has one code. Cut at different thresholds they flip one by one, and items of a class are
ranked by how certain the class is. The first bits, which tell the classes apart, keep threshold 0: with them shorter
codes lose nothing.

    ψ      log-odds of bits    (n, bits)
    c      plain bits                       the first ones, whose θ is 0
    s      share                            of a bit's mean size
    v_t    spread evenly over (-1, 1)       van der Corput's order in base 2 from bit c on, so that prefixes are spread
    p      power               max(1, s / 0.3): the wider the spread, the denser the thresholds about 0
    θ_t    thresholds          (bits,)      s sign(v_t) |v_t|^p mean |ψ_t|  from bit c on

The code is sign(ψ - θ). A real-valued query keeps ψ where it has that sign.

Past the paper (docs/beyond-the-paper.md).
"""

from __future__ import annotations

import numpy as np

EVEN = 0.3  # share up to which thresholds are spread evenly
LEAST = 1e-3  # of its size, that a score keeps where its sign is not the code's


def thresholds(odds: np.ndarray, share: float, n_plain: int = 0) -> np.ndarray:
    """θ of each bit from the log-odds of training rows, (bits,) float32; 0 for the first `n_plain`."""
    spread = np.zeros(odds.shape[1])
    spread[n_plain:] = 2 * van_der_corput(len(spread[n_plain:])) - 1
    spread = np.sign(spread) * np.abs(spread) ** max(1, share / EVEN)
    return (share * spread * np.abs(odds).mean(axis=0)).astype(np.float32)


def van_der_corput(n: int) -> np.ndarray:
    """The first `n` numbers between 0 and 1 of the sequence 1/2, 1/4, 3/4, 1/8, 5/8, … that mirrors binary digits."""
    numbers, found, unit = np.arange(1, n + 1), np.zeros(n), 0.5
    while numbers.any():
        found += unit * (numbers % 2)
        numbers, unit = numbers // 2, unit / 2
    return found


def with_signs_of(scores: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Scores that keep their size where they have the sign of `held`, and a trace of that sign elsewhere."""
    signs = np.sign(held)
    return signs * np.maximum(signs * scores, LEAST * np.abs(held))
