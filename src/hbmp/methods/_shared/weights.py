"""Weights of instances: read from the argument of a user, and passed on to a part that can use them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from hbmp._training.losses import weighted
from hbmp.functions import HashFunction


def read_weights(given: Any, n_rows: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(rows that count, or None for all; their weights of mean 1, or None where all are equal)."""
    if given is None:
        return None, None
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight needs one number for each of {n_rows} rows, found shape {weights.shape}.")
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise ValueError("sample_weight must be finite and not negative.")
    if weights.max() == 0:
        raise ValueError("sample_weight is zero for every row: at least two rows need a positive sample weight.")
    rows = np.flatnonzero(weights) if weights.min() == 0 else None
    kept = weights[weights > 0]
    return rows, None if kept.min() == kept.max() else kept / kept.mean()


def weighted_fit(learner: Any, *data: Any, sample_weight: np.ndarray | None, **settings: Any) -> Any:
    """`learner.fit(*data, **settings)`, with weights of the instances if there are any."""
    if sample_weight is None:
        return learner.fit(*data, **settings)
    if not has_fit_parameter(learner, "sample_weight"):
        name = type(learner).__name__
        raise ValueError(f"{name} cannot weight instances: its fit takes no sample_weight. Leave sample_weight out.")
    return learner.fit(*data, sample_weight=sample_weight, **settings)


def fit_codes(function: HashFunction, X: Any, codes: np.ndarray, weights: np.ndarray | None, **settings: Any) -> None:
    """Fit a hash function on target codes; settings: `bit_weights` and `random_state`."""
    if weights is None or not function.by_gradients:
        weighted_fit(function, X, codes, sample_weight=weights, **settings)
        return
    loss = weighted(function.code_loss(settings["bit_weights"]))
    inputs = codes, weights.astype(np.float32)
    function.learn(X, loss, *inputs, n_bits=codes.shape[1], random_state=settings["random_state"])
