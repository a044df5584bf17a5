"""Samples whose features follow from their labels, for tests that train on some and search with the rest."""

import numpy as np


def labelled_samples(kind):
    """300 samples of four classes, or of label sets over four labels: X (300, 10), y."""
    rng = np.random.default_rng(0)
    labels = np.eye(4, dtype=int)[np.arange(300) % 4]
    if kind == "label sets":
        labels[::3, 0] = 1
    X = (labels @ rng.standard_normal((4, 10)) * 3 + rng.standard_normal((300, 10))).astype(np.float32)
    return X, labels if kind == "label sets" else labels.argmax(axis=1)
