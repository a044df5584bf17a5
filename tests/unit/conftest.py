"""Instances that several files of tests fit small models on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs


@pytest.fixture(scope="session")
def blobs():
    X, y = make_blobs(90, n_features=6, centers=4, random_state=1)
    return X.astype(np.float32), y


@pytest.fixture(scope="session")
def label_rows(blobs):
    """Label sets over six labels: one of the class and some at random, but never label 5 with label 0."""
    rows = (np.random.default_rng(0).random((90, 6)) < 0.2).astype(np.uint8)
    rows[np.arange(90), blobs[1]] = 1
    rows[rows[:, 0] == 1, 5] = 0
    return rows
