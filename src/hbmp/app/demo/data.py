"""Texts of the demo: docstrings of functions and classes in the installed scientific Python packages.

Every installation has them, they are real, and a reader of the report can judge a search by its items. The label of a
text is the part of its package, such as `scipy.signal`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hbmp.datasets.documentation import describe
from hbmp.evaluation.trial import draw_evenly

PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib")
FEWEST = 20  # texts that a part of a package must have


@dataclass(frozen=True)
class Texts:
    """Names such as "scipy.signal.medfilt", their descriptions, and the subpackage of each; all (n,)."""

    names: np.ndarray
    texts: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def drawn(self, count: int | None, seed: int) -> Texts:
        """At most so many of them, drawn evenly over the labels."""
        if count is None or count >= len(self):
            return self
        kinds = np.unique(self.labels, return_inverse=True)[1]
        rows = draw_evenly(count, np.arange(len(self)), kinds, np.random.default_rng(seed))
        return Texts(self.names[rows], self.texts[rows], self.labels[rows])

    @property
    def about(self) -> str:
        """The data in words."""
        kinds = len(np.unique(self.labels))
        packages = sorted({label.split(".")[0] for label in self.labels})
        return (
            f"{len(self):,} descriptions of functions and classes in {', '.join(packages)}, as installed here. The "
            f"label of a description is the part of the package it comes from, one of {kinds}. Nothing is downloaded."
        )


def documentation(packages: Sequence[str] = PACKAGES, fewest: int = FEWEST) -> Texts:
    """The descriptions of all public functions and classes, in parts of packages that have at least `fewest`."""
    columns = zip(*describe(packages, fewest), strict=True)
    return Texts(*(np.array(column, dtype=object) for column in columns))
