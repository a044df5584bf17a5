"""The leading principal components, from which several methods start.

X      features     (n, d)
W      components   (d, b)   leading eigenvectors of the covariance, orthonormal columns
"""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from hbmp._core.seeds import draw_seed
from hbmp.methods._shared.checks import need_spread


def principal_components(X: np.ndarray, n_components: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(mean (d,), W (d, n_components)), float32. The generator seeds the randomised solver for many features."""
    mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = X - mean  # first of all: large means cost digits
    need_spread(centred)
    solver = PCA(n_components, random_state=draw_seed(rng)).fit(centred)
    return mean, np.ascontiguousarray(solver.components_.T, dtype=np.float32)


def need_components(method: str, X: np.ndarray, n_bits: int) -> None:
    """Raise ValueError for more bits than principal components."""
    for found, what in ((X.shape[1], "features"), (X.shape[0], "samples")):
        if n_bits > found:
            raise ValueError(
                f"{method} takes its bits from principal components: n_bits={n_bits} needs {n_bits} {what}, found "
                f"{found}. Ask for fewer bits, or use 'lsh'."
            )
