"""Checks of settings and features that several methods share."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def need_counts(**settings: Any) -> None:
    """Raise ValueError unless every setting is a positive whole number."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
            raise ValueError(f"{name} must be a positive whole number, found {value!r}.")


def need_positive(**settings: Any) -> None:
    """Raise ValueError unless every setting is a number above 0."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not float(value) > 0:
            raise ValueError(f"{name} must be a number above 0, found {value!r}.")


def need_spread(centred: np.ndarray) -> None:
    """Raise ValueError if all centred features are 0."""
    if not centred.any():
        raise ValueError("X is the same in every row; codes need samples that differ.")
