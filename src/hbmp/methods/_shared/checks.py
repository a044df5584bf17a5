"""Settings and features that several methods take, refused in one sentence where they make no sense."""

from __future__ import annotations

import numbers

import numpy as np


def need_counts(**settings) -> None:
    """Every setting must be a positive whole number."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
            raise ValueError(f"{name} must be a positive whole number, found {value!r}.")


def need_positive(**settings) -> None:
    """Every setting must be a number above 0."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not float(value) > 0:
            raise ValueError(f"{name} must be a number above 0, found {value!r}.")


def need_spread(centred: np.ndarray) -> None:
    """Features less their mean must not all be 0."""
    if not centred.any():
        raise ValueError("X is the same in every row; codes need samples that differ.")
