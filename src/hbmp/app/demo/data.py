"""Data of the demo: the digits of scikit-learn, and CIFAR-10 if its features or images are found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hbmp import datasets
from hbmp.datasets.cifar10 import CLASSES as CIFAR_NAMES
from hbmp.evaluation.trial import draw_evenly
from hbmp.experiments.recipes.fig3 import FEATURES

_ROWS_WITH_FEATURES = 4_000  # of the 60,000, so that the demo takes minutes
_ROWS_TO_EMBED = 1_500  # images that a network embeds first
_SIDE = 96  # pixels of the network's input; its own 224 would take five times as long


@dataclass(frozen=True)
class Example:
    """One data set of the demo.

    `features` (n, d), `labels` (n,) from 0, `names` of the classes, `images` uint8 (n, h, w, 3) or None; `queries` and
    `train` are the numbers of query rows and of training rows (None: all others).
    """

    name: str
    title: str
    about: str
    features: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    images: np.ndarray | None
    queries: int
    train: int | None = None

    def looks(self):
        """The picture of each row: its pixels, or the name of its class."""
        return self.images if self.images is not None else [self.names[label] for label in self.labels]

    def cut(self, count: int | None, seed: int) -> Example:
        """The same with at most `count` rows, drawn evenly over classes; queries and training rows in proportion."""
        if count is None or count >= len(self.labels):
            return self
        rows, fraction = _some(self.labels, count, seed), count / len(self.labels)
        return replace(
            self,
            about=f"{self.about} {count:,} of these rows are used.",
            features=self.features[rows],
            labels=self.labels[rows],
            images=None if self.images is None else self.images[rows],
            queries=round(fraction * self.queries),
            train=None if self.train is None else round(fraction * self.train),
        )


def at_hand(
    data_dir=None, *, rows: int | None = None, device: str = "auto", seed: int = 0
) -> tuple[list[Example], str]:
    """The data sets that can run here, cut to `rows` rows, and a sentence if CIFAR-10 is missing."""
    examples, note = [_digits()], ""
    try:
        examples.append(_cifar10(data_dir, device, seed))
    except (datasets.MissingData, ImportError) as error:
        note = _why_left_out(error, data_dir)
    return [example.cut(rows, seed) for example in examples], note


def _why_left_out(error, data_dir) -> str:
    if isinstance(error, ImportError):
        return f"CIFAR-10 is left out: {error}"
    place = datasets.data_dir(data_dir)
    return f"CIFAR-10 is left out: neither its features nor its images are in {place}. Run `hbmp fetch cifar10`."


def _digits() -> Example:
    digits = datasets.load("digits")
    return Example(
        name="digits",
        title="Handwritten digits",
        about="1,797 scans of 8 × 8 pixels in ten classes, from scikit-learn. The features are the pixels.",
        features=np.asarray(digits.features),
        labels=np.asarray(digits.labels),
        names=digits.label_names,
        images=np.asarray(digits.images),
        queries=400,
    )


def _cifar10(data_dir, device: str, seed: int) -> Example:
    """Rows drawn evenly over classes: saved features, or embeddings of the images."""
    images = _images(data_dir)
    try:
        features = datasets.load(FEATURES, data_dir)
    except datasets.MissingData:
        if images is None:
            raise
        return _embedded(images, device, seed)
    values, labels = np.asanyarray(features.features), np.asarray(features.labels)
    rows = _some(labels, _ROWS_WITH_FEATURES, seed)
    return Example(
        name="cifar10",
        title="CIFAR-10",
        about=f"{_drawn(rows, features)} The features are the {values.shape[1]} of {FEATURES}, from a "
        "network trained on ImageNet.",
        features=np.asarray(values[rows], dtype=np.float32),
        labels=labels[rows],
        names=CIFAR_NAMES,
        images=None if images is None else images.images[rows],
        queries=len(rows) // 20,
        train=3 * len(rows) // 10,
    )


def _images(data_dir):
    try:
        return datasets.load("cifar10", data_dir)
    except datasets.MissingData:
        return None


def _embedded(data, device: str, seed: int) -> Example:
    from hbmp.backbones.efficientnet_lite0 import EfficientNetLite0
    from hbmp.functions.network import Network

    rows = _some(data.labels, _ROWS_TO_EMBED, seed)
    network = Network(backbone=EfficientNetLite0(size=_SIDE), device=device)
    features = network.pretrained_features(data.images[rows])
    return Example(
        name="cifar10",
        title="CIFAR-10",
        about=f"{_drawn(rows, data)} The features are the {features.shape[1]:,} of EfficientNet-Lite0, trained on "
        f"ImageNet, at {_SIDE} pixels.",
        features=features,
        labels=np.asarray(data.labels)[rows],
        names=data.label_names,
        images=data.images[rows],
        queries=len(rows) // 5,
        train=len(rows) // 2,
    )


def _drawn(rows, data) -> str:
    return f"{len(rows):,} of {len(data):,} photographs of 32 × 32 pixels in ten classes, drawn evenly over classes."


def _some(labels, count: int, seed: int) -> np.ndarray:
    labels = np.asarray(labels)
    return draw_evenly(min(count, len(labels)), np.arange(len(labels)), labels, np.random.default_rng(seed))
