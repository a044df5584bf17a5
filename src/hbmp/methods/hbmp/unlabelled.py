"""Codes without labels: features on principal axes, scaled a little towards equal, rebuilt from bits (HBMP, y=None).

Squared error over all pairs rewards the coarse structure of the data, and near pairs are what a search is asked for.
Y = X on its leading principal axes weighs all axes by their variance λ; scaling axis j by (λ_j/λ_1)^(-s/2) moves weight
to the fine structure. s follows from one number, the gain of the b-th axis over the first: (λ_b/λ_1)^(-s/2) = gain.

Relation to ITQ: with a gain of 1, b axes, no coupling and orthogonal atoms this *is* iterative quantisation, whose
rotation is the start here. What the pursuit adds is that atoms are refitted freely and bits look at one another.

    X      features   (n, d)
    Y      points     (n, m)   m = 4 b at most
    λ      variances  (m,)     of the axes before scaling

References: Cakir, He & Sclaroff, ECCV 2018 (the pursuit); Gong & Lazebnik, CVPR 2011 (the rotation).
"""

from __future__ import annotations

import numpy as np

from hbmp import hamming
from hbmp._core.seeds import as_generator
from hbmp.functions._shared.base import HashFunction
from hbmp.methods._shared.checks import need_counts, need_positive
from hbmp.methods._shared.principal import principal_components
from hbmp.methods._shared.rotation import as_signs, learn_rotation
from hbmp.pursuit.features import choose_codes, code_book, overlaps_of, refine

_LARGEST_POWER = 0.5  # of λ: beyond half-whitening noise is what grows
_ROWS = 8192  # rows whose codes are chosen at a time


def scaled_axes(X: np.ndarray, n_bits: int, gain: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(mean (d,), axes (d, m)): principal axes that vary, scaled so that the n_bits-th gains on the first."""
    mean, components = principal_components(X, min(4 * n_bits, *X.shape), rng)
    variances = np.var((X - mean) @ components, axis=0, dtype=np.float64)
    kept = variances > 1e-5 * variances.max()
    variances, components = variances[kept] / variances.max(), components[:, kept]
    last = variances[min(n_bits, len(variances)) - 1]
    power = min(2 * np.log(gain) / -np.log(last), _LARGEST_POWER) if last < 1 else 0.0
    return mean, (components * variances ** (-power / 2)).astype(np.float32)


class Rebuilding(HashFunction):
    """Bits that rebuild the features, found by a pursuit on them; the function and its codes come together.

    Parameters
    ----------
    coupling : how much a bit looks at the others: 0 not at all (a linear function), 1 as the rebuilding asks for
    gain : of the n_bits-th principal axis over the first; 1 leaves the features as they are
    n_iter : rounds of choosing codes and refitting atoms
    max_rows : more samples than this are drawn down to it for training

    Defaults are one compromise for all code lengths, chosen on splits of GIST, CIFAR-10 and COCO features. A coupling
    of 0.4 to 0.6 and a gain of 1.1 to 1.3 do about as well; more gain favours the nearest over the order of far ones.
    """

    smoke = {"n_iter": 2}

    def __init__(self, *, coupling=0.5, gain=1.2, n_iter=20, max_rows=100_000):
        self.coupling = coupling
        self.gain = gain
        self.n_iter = n_iter
        self.max_rows = max_rows

    def pursue(self, X, n_bits: int, *, weighting="ridge", ridge=0.1, random_state=None):
        """Learn codes of n_bits from features alone; the code book of the rows learned from, with its weights."""
        self._check()
        rng = as_generator(random_state)
        if len(X) > self.max_rows:
            X = X[np.sort(rng.choice(len(X), self.max_rows, replace=False))]
        self.mean_, axes = scaled_axes(X, n_bits, self.gain, rng)
        points = (X - self.mean_) @ axes
        leading = points[:, :n_bits]
        rotation, _ = learn_rotation(leading, n_bits, 50, rng)
        start = as_signs(leading @ rotation.astype(points.dtype))
        atoms, self.unexplained_ = refine(points, start, self.coupling, self.n_iter)
        self.directions_ = np.ascontiguousarray(axes @ atoms.T)  # (d, b): scores straight from features
        self.overlaps_ = overlaps_of(atoms)
        self.scale_ = np.ones(n_bits, dtype=np.float32)
        codes = hamming.signs(self.project(X))
        book = code_book(codes, points, weighting=weighting, ridge=ridge)
        # A real-valued query is weighted by the bits' weights too; the scores are right as they are, so take them out.
        mean_weight = max(float(np.abs(book.weights).mean()), 1e-12)
        self.rescale(1 / np.maximum(book.weights / mean_weight, 0.1), np.zeros(n_bits))
        return book

    def project(self, X):
        """Scores whose signs are the codes.

        The best score of a real-valued query is C y, its agreement with each atom, and what decided its bit is that
        less the pull of the other bits. Half the pull is taken off: none of it was best on GIST descriptors, all of it
        for the nearest ten on CIFAR-10 and COCO features.
        """
        X = np.asarray(X, dtype=np.float32)
        parts = [self._scores(X[start : start + _ROWS]) for start in range(0, len(X), _ROWS)]
        return np.concatenate(parts) if parts else np.empty((0, len(self.scale_)), dtype=np.float32)

    def rescale(self, factor, shift):
        """Multiply every score by a positive factor; the bits depend on one another, so a shift makes no sense."""
        if np.any(np.asarray(shift) != 0) or np.any(np.asarray(factor) <= 0):
            raise ValueError("Scores that rebuild features can be scaled by positive factors alone, not shifted.")
        self.scale_ = (self.scale_ * factor).astype(np.float32)

    def fit(self, X, targets, *, bit_weights=None, random_state=None):
        """Not a function of given codes."""
        raise ValueError("Rebuilding finds its own codes: call `pursue(X, n_bits)`, or choose a function that learns.")

    def _scores(self, X):
        agreement = (X - self.mean_) @ self.directions_
        codes = choose_codes(agreement, self.overlaps_, self.coupling)
        margins = codes * (agreement - np.float32(self.coupling / 2) * (codes @ self.overlaps_))
        smallest = np.float32(1e-6) * max(float(np.abs(self.directions_).max()), 1e-30)
        return codes * np.maximum(margins, smallest) * self.scale_

    def _check(self):
        need_counts(n_iter=self.n_iter, max_rows=self.max_rows)
        need_positive(gain=self.gain)
        if isinstance(self.coupling, bool) or not 0 <= self.coupling <= 1:
            raise ValueError(f"coupling must be a number from 0 to 1, found {self.coupling!r}.")
        if self.gain < 1:
            raise ValueError(f"gain must be at least 1, which leaves the features as they are; found {self.gain!r}.")
