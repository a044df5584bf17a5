"""Values that no version of hbmp writes, put into trees of JSON and into arrays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

_NASTY: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    -(2**70),
    10**400,
    1.5,
    -1e308,
    1e-310,
    float("nan"),
    float("inf"),
    "",
    "../../x",
    "/etc/passwd",
    "\ud800",
    "x" * 5000,
    "|O",
    "object",
    "os:system",
    "float64",
    [],
    {},
    [[]],
    [None],
    [1, "a"],
    {"a": 1},
    {"array": "model.codebook_.codes"},
    {"tuple": [1]},
    {"left_out": "os:system"},
    {"class": "os/system"},
    {"class": "methods/itq", "params": {}, "state": {}},
    {"class": "encoders/custom", "params": {"function": "os:system"}, "state": {}},
    {"class": "encoders/wordllama", "params": {"path": "/etc"}, "state": {"digest_": ""}},
]


def changed(tree: Any, rng: np.random.Generator) -> Any:
    """The tree with one to three of its nodes replaced, removed, renamed or swapped."""
    whole = [json.loads(json.dumps(tree))]
    for _ in range(rng.integers(1, 4)):
        place = whole
        key: Any = 0
        while isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.85:
            place = place[key]
            key = list(place)[rng.integers(len(place))] if isinstance(place, dict) else int(rng.integers(len(place)))
        kind = rng.integers(6)
        if kind == 0 and place is not whole:
            del place[key]
        elif kind == 1 and isinstance(place, dict):
            place[str(_NASTY[rng.integers(len(_NASTY))])[:50]] = place.pop(key)
        elif kind == 2 and isinstance(place[key], (int, float)) and np.isfinite(float(place[key])):
            place[key] = [-place[key], place[key] + 1, place[key] * 1000, place[key] / 2][rng.integers(4)]
        elif kind == 3 and isinstance(place[key], list):
            place[key] *= int(rng.integers(2, 4))
        else:
            place[key] = _NASTY[rng.integers(len(_NASTY))]
    return whole[0]


def odd_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The array with another type, shape or content."""
    kinds: list[Callable[[], np.ndarray]] = [
        lambda: array[: len(array) // 2] if array.ndim else array,
        lambda: array.reshape(-1),
        lambda: array.T,
        lambda: array[None],
        lambda: array[:0] if array.ndim else array,
        lambda: np.array(5),
        lambda: np.full(array.shape, np.nan, np.float32),
        lambda: np.full(array.shape, np.inf),
        lambda: np.full(array.shape, -1, np.int64),
        lambda: np.full(array.shape, 2**62, np.int64),
        lambda: array.astype(np.float16),
        lambda: array.astype(bool),
        lambda: np.zeros((3, *array.shape), np.uint8),
    ]
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(kinds[rng.integers(len(kinds))]())
