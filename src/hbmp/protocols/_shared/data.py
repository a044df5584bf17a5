"""What a protocol asks of its data: classes, label sets, centred features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.datasets import Data
from hbmp.protocols._shared.split import Split


def centred_unit(features: NDArray[Any] | None, split: Split) -> NDArray[Any]:
    """Features minus the mean of the training rows, scaled to unit length, float32."""
    rows = np.asarray(features, dtype=np.float32)
    centred: NDArray[Any] = rows - rows[split.train].mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
    return centred


def need_classes(data: Data) -> NDArray[Any]:
    """One class per item, (n,), or an error of one sentence."""
    if data.labels is None or np.ndim(data.labels) != 1:
        found = "no labels" if data.labels is None else f"a label matrix of shape {np.shape(data.labels)}"
        raise ValueError(f"This protocol needs one class per item; {data.name} has {found}. Use another data set.")
    return np.asarray(data.labels)


def need_label_sets(data: Data) -> NDArray[Any]:
    """Rows of 0/1 labels, (n, c), or an error of one sentence."""
    if data.labels is None or np.ndim(data.labels) != 2:
        found = "no labels" if data.labels is None else "one class per item"
        raise ValueError(f"This protocol needs rows of 0/1 labels; {data.name} has {found}. Use another data set.")
    return np.asarray(data.labels)
