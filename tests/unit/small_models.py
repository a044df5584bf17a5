"""HBMP made small and quick, and what its tests ask of it."""

from __future__ import annotations

import hbmp
from hbmp.functions import Linear

FAST = Linear(epochs=3)


def small(n_bits=8, **settings):
    return hbmp.HBMP(n_bits, **{"function": FAST, "random_state": 0, **settings})


def affinity_behind(model):
    return model.codebook_.affinity
