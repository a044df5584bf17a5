"""Learned codes in any number, for `benchmarks/search_learned.py`: made from features of 60,000 images.

The features are CIFAR-10's (`cifar10-efficientnet-lite0/features.npy` and `labels.npy`), less their mean, of unit
length. The last 1,024 rows of a random order are the queries ("unseen") and are left out of everything else; other
queries are rows of the database's own images with noise of their own ("copies"). A database item is a
row drawn from the others plus Gaussian noise, whose length is a share (`jitter`) of the median distance from an image
to its nearest neighbour among the others. The models are trained on 2,000 rows without noise.

    labels      64 bits by HBMP on the classes
    detail      48 bits by HBMP on the classes, then 16 by HBMP without labels on features less the mean of their class
    unlabelled  64, 128 or 256 bits by HBMP without labels
    random      64 fair bits
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hbmp
from hbmp import hamming

N_QUERIES, N_TRAINING, _ROWS_AT_ONCE = 1024, 2000, 20_000
SETS = ("labels", "detail", "unlabelled-64", "unlabelled-128", "unlabelled-256", "random")


class Features:
    """Rows to draw items from, rows to query with, and classes."""

    def __init__(self, folder: Path):
        rows = np.load(folder / "features.npy").astype(np.float32)
        classes = np.load(folder / "labels.npy")
        order = np.random.default_rng(0).permutation(len(rows))
        rows = rows - rows[order[:-N_QUERIES]].mean(axis=0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.queries, self.rows = rows[order[-N_QUERIES:]], rows[order[:-N_QUERIES]]
        self.classes = classes[order[:-N_QUERIES]]
        products = np.sort(self.rows[:1000] @ self.rows.T, axis=1)
        self.nearest = float(np.median(np.sqrt(2 - 2 * products[:, -2])))  # the last is the row itself

    def items(self, n_items: int, jitter: float):
        """Blocks of items."""
        rng = np.random.default_rng(1)
        length = jitter * self.nearest / np.sqrt(self.rows.shape[1])
        for start in range(0, n_items, _ROWS_AT_ONCE):
            rows = self.rows[rng.integers(0, len(self.rows), min(_ROWS_AT_ONCE, n_items - start))]
            yield rows + np.float32(length) * rng.standard_normal(rows.shape, dtype=np.float32)

    def copies(self, jitter: float):
        """Queries that are near-duplicates of items."""
        rng = np.random.default_rng(3)
        rows = self.rows[rng.integers(0, len(self.rows), N_QUERIES)]
        noise = rng.standard_normal(rows.shape, dtype=np.float32)
        return rows + np.float32(jitter * self.nearest / np.sqrt(rows.shape[1])) * noise


class LabelsAndDetail:
    """Bits of the class, then bits of what tells items of a class apart."""

    def __init__(self, rows, classes):
        self.labels = hbmp.HBMP(48, function="linear", random_state=0).fit(rows, classes)
        self.means = np.stack([rows[classes == each].mean(axis=0) for each in np.unique(classes)])
        self.detail = hbmp.HBMP(16, random_state=0).fit(self._rest(rows))
        # All detail bits together weigh less than the lightest label bit.
        lightest = np.abs(self.labels.bit_weights_).min() / 2
        detail = self.detail.bit_weights_ * lightest / self.detail.bit_weights_.sum()
        self.bit_weights_ = np.concatenate([self.labels.bit_weights_, detail])

    def _rest(self, rows):
        distances = np.square(self.means).sum(axis=1) - 2 * rows @ self.means.T
        return rows - self.means[distances.argmin(axis=1)]

    def transform(self, rows):
        """Signs of both kinds of bits."""
        return np.hstack([self.labels.transform(rows), self.detail.transform(self._rest(rows))])


def fit(name: str, features: Features):
    """The model of one set of codes."""
    rows, classes = features.rows[:N_TRAINING], features.classes[:N_TRAINING]
    if name == "labels":
        return hbmp.HBMP(64, function="linear", random_state=0).fit(rows, classes)
    if name == "detail":
        return LabelsAndDetail(rows, classes)
    return hbmp.HBMP(int(name.split("-")[1]), random_state=0).fit(rows)


def make(name: str, n_items: int, jitter: float, folder: Path, cache: Path | None = None) -> dict[str, np.ndarray]:
    """Packed codes of items and queries, and bit weights; kept in `cache` where one is given."""
    if name == "random":
        rng = np.random.default_rng(2)
        rows = rng.integers(0, 256, (n_items + N_QUERIES, 8), dtype=np.uint8)
        return {"items": rows[:n_items], "unseen": rows[n_items:], "weights": rng.uniform(0.5, 1.5, 64)}
    file = None if cache is None else cache / f"{name}-{n_items}-{jitter:g}.npz"
    if file is None or not file.is_file():
        features = Features(folder)
        model = fit(name, features)
        made = {
            "items": np.concatenate([hamming.pack(model.transform(rows)) for rows in features.items(n_items, jitter)]),
            "unseen": hamming.pack(model.transform(features.queries)),
            "copies": hamming.pack(model.transform(features.copies(jitter))),
            "weights": np.asarray(model.bit_weights_),
        }
        if file is None:
            return made
        cache.mkdir(parents=True, exist_ok=True)
        np.savez(file, **made)
    with np.load(file) as saved:
        return dict(saved)
