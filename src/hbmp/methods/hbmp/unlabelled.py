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
from hbmp._core.progress import parts, stage
from hbmp._core.seeds import as_generator
from hbmp.functions import HashFunction
from hbmp.methods._shared.checks import need_counts, need_positive, need_spread
from hbmp.methods._shared.rotation import as_signs, learn_rotation
from hbmp.methods.hbmp.recall import RecallEstimate, estimate_recall
from hbmp.pursuit.features import choose_codes, code_book, fit_atoms, overlaps_of, refine

_LARGEST_POWER = 0.5  # of λ: beyond half-whitening noise is what grows
_ROWS = 8192  # rows read or encoded at a time
SWEEPS = 8  # of an encoding; nearly all bits are settled after three
_ROTATIONS = 50  # iterations of the start
_SETTLED = 1e-3  # of what is unexplained: an iteration that gains less is the last
_QUERIES, _FEWEST_QUERIES = 500, 20  # rows held out to measure recall


def scaled_axes(X: np.ndarray, n_bits: int, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """(mean (d,), axes (d, m)): principal axes that vary, scaled so that the n_bits-th gains on the first."""
    mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    variances, components = np.linalg.eigh(_covariance(X, mean))
    variances, components = variances[::-1], components[:, ::-1][:, : min(4 * n_bits, *X.shape)]
    variances = variances[: components.shape[1]]
    kept = variances > 1e-5 * variances.max()
    variances, components = variances[kept] / variances.max(), components[:, kept]
    last = variances[min(n_bits, len(variances)) - 1]
    power = min(2 * np.log(gain) / -np.log(last), _LARGEST_POWER) if last < 1 else 0.0
    return mean, np.ascontiguousarray(components * variances ** (-power / 2), dtype=np.float32)


def stage_sizes(n_bits: int, nested: bool) -> list[int]:
    """Bits per stage of the pursuit: all at once, or so that an eighth, a quarter and half of the bits are codes."""
    if not nested:
        return [n_bits]
    ends = [n_bits // 8, n_bits // 4, n_bits // 2, n_bits]
    return [int(size) for size in np.diff([0, *ends]) if size]


class Rebuilding(HashFunction):
    """Bits that rebuild the features, found by a pursuit on them; the function and its codes come together.

    Parameters
    ----------
    coupling : float or "auto", default="auto"
        How much a bit looks at the others: 0 for a linear function, 1 for the codes that rebuild best. "auto" is 0.5
        up to one bit per feature, which suits Hamming distance, and 0.75 from two bits per feature.
    gain : float, default=1.2
        Length of the n_bits-th principal axis over the first; 1 leaves the features as they are.
    n_iter : int, default=15
        Most rounds of choosing codes and refitting atoms; fewer where they settle.
    max_rows : int, default=100_000
        More samples than this are drawn down to it for training.
    nested : bool, default=False
        Learn the bits in stages, so that the first eighth, quarter and half of the bits are good codes too.

    Attributes
    ----------
    recall_ : RecallEstimate or None
        Recall of held-out rows against the training rows; None below 200 samples.
    decoder_ : ndarray of shape (n_bits, n_features)
        What each bit adds to a rebuilt vector.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    >>> function = Rebuilding()
    >>> codes = function.pursue(X, 16, random_state=0).codes
    >>> function.rebuild(codes).shape
    (300, 8)
    """

    scale_: np.ndarray

    smoke = {"n_iter": 2}

    recall_: RecallEstimate | None

    def __init__(self, *, coupling="auto", gain=1.2, n_iter=15, max_rows=100_000, nested=False):
        self.coupling = coupling
        self.gain = gain
        self.n_iter = n_iter
        self.max_rows = max_rows
        self.nested = nested

    def pursue(self, X, n_bits: int, *, weighting="ridge", ridge=0.1, random_state=None):
        """Learn codes of n_bits from features alone; the code book of the rows learned from, with its weights."""
        self._check()
        rng = as_generator(random_state)
        if len(X) > self.max_rows:
            X = X[np.sort(rng.choice(len(X), self.max_rows, replace=False))]
        held = _held_out(len(X), rng)
        learned = np.delete(np.arange(len(X)), held)
        with stage("bits that rebuild", until=0.9):
            points = self._learn(X, learned if len(held) else slice(None), n_bits, rng)
        codes = hamming.signs(self.project(X))
        book = code_book(codes, points, weighting=weighting, ridge=ridge)
        # A real-valued query is weighted by the bits' weights too; the scores are right as they are, so take them out.
        mean_weight = max(float(np.abs(book.weights).mean()), 1e-12)
        self.rescale(1 / np.maximum(book.weights / mean_weight, 0.1), np.zeros(n_bits))
        self.decoder_ = _decoder(X, self.mean_, codes)
        with stage("recall of held-out rows"):
            self.recall_ = self._measure(X, held, codes, book.weights) if len(held) else None
        return book

    def project(self, X):
        """Scores whose signs are the codes.

        The best score of a real-valued query is C y, its agreement with each atom, and what decided its bit is that
        less the pull of the other bits. Half the pull is taken off: none of it was best on GIST descriptors, all of it
        for the nearest ten on CIFAR-10 and COCO features.
        """
        scores = np.empty((len(X), len(self.scale_)), dtype=np.float32)
        for start in range(0, len(X), _ROWS):
            scores[start : start + _ROWS] = self._scores(np.asarray(X[start : start + _ROWS], dtype=np.float32))
        return scores

    def rebuild(self, codes) -> np.ndarray:
        """Feature vectors that codes stand for, float32 (n, n_features): compare them to queries by any distance."""
        return self.mean_ + hamming.check_codes(codes, len(self.scale_)).astype(np.float32) @ self.decoder_

    def query_scores(self, X, bit_weights) -> np.ndarray:
        """Scores of queries alone: their weighted agreement with a code is the inner product with its rebuilt vector.

        Their signs are not the codes of the queries. Items are found by inner product, or by cosine where they have
        unit length.
        """
        weights = np.where(np.abs(bit_weights) > 1e-12, bit_weights, 1e-12).astype(np.float32)
        return np.asarray(X, dtype=np.float32) @ (self.decoder_.T / weights)

    def rescale(self, factor: np.ndarray, shift: np.ndarray) -> None:
        """Multiply every score by a positive factor; the bits depend on one another, so a shift makes no sense."""
        if np.any(np.asarray(shift) != 0) or np.any(np.asarray(factor) <= 0):
            raise ValueError("Scores that rebuild features can be scaled by positive factors alone, not shifted.")
        self.scale_ = (self.scale_ * factor).astype(np.float32)

    def fit(self, X, targets, *, bit_weights=None, random_state=None):
        """Not a function of given codes."""
        raise ValueError("Rebuilding finds its own codes: call `pursue(X, n_bits)`, or choose a function that learns.")

    def _learn(self, X, rows, n_bits, rng):
        """Axes from all rows, atoms from `rows`; the points of all rows."""
        self.mean_, axes = scaled_axes(X, n_bits, self.gain)
        self.coupling_ = coupling_for(n_bits, X.shape[1]) if self.coupling == "auto" else float(self.coupling)
        self.sizes_ = stage_sizes(n_bits, self.nested)
        points = _in_parts(X, lambda part: (part - self.mean_) @ axes, axes.shape[1])
        rest, atoms, self.unexplained_ = points[rows], [], []
        for size in parts(self.sizes_):
            found, left = refine(rest, _start(rest, size, rng), self.coupling_, self.n_iter, tol=_SETTLED)
            atoms.append(found)
            self.unexplained_ += left
            if len(self.sizes_) > 1:
                rest = rest - choose_codes(rest @ found.T, overlaps_of(found), self.coupling_) @ found
        C = np.concatenate(atoms)
        self.directions_ = np.ascontiguousarray(axes @ C.T)  # (d, b): scores straight from features
        self.offsets_ = self.mean_ @ self.directions_
        self.overlaps_ = overlaps_of(C)
        self.scale_ = np.ones(n_bits, dtype=np.float32)
        return points

    def _scores(self, X):
        """Scores stage by stage: the bits of earlier stages are fixed, and later ones explain what they leave."""
        scores = X @ self.directions_
        scores -= self._offsets()
        coupling, smallest = self._coupling(), np.float32(1e-6) * max(float(np.abs(self.directions_).max()), 1e-30)
        codes, start = np.empty_like(scores), 0
        for size in getattr(self, "sizes_", [scores.shape[1]]):
            stage = slice(start, start + size)
            agreement, overlaps = scores[:, stage], self.overlaps_[stage, stage]
            if start:
                agreement -= codes[:, :start] @ self.overlaps_[:start, stage]
            signs = codes[:, stage] = choose_codes(agreement, overlaps, coupling, sweeps=SWEEPS)
            agreement -= signs @ (np.float32(coupling / 2) * overlaps)
            agreement *= signs
            np.maximum(agreement, smallest, out=agreement)
            start += size
        scores *= codes
        scores *= self.scale_
        return scores

    def _measure(self, X, held, codes, weights):
        rows = X - self.mean_
        scores = self.project(X[held]) * weights.astype(np.float32)
        squares, left = 0.0, 0.0
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            squares += float(np.square(rows[part]).sum())
            left += float(np.square(rows[part] - codes[part].astype(np.float32) @ self.decoder_).sum())
        return estimate_recall(rows[held], rows, scores, codes, unexplained=left / squares, own=held)

    def _coupling(self) -> float:
        return getattr(self, "coupling_", self.coupling)  # models saved before there was "auto" have the number alone

    def _offsets(self):
        return self.offsets_ if hasattr(self, "offsets_") else self.mean_ @ self.directions_

    def _check(self):
        need_counts(n_iter=self.n_iter, max_rows=self.max_rows)
        need_positive(gain=self.gain)
        if self.coupling != "auto" and (isinstance(self.coupling, (bool, str)) or not 0 <= self.coupling <= 1):
            raise ValueError(f"coupling must be a number from 0 to 1, found {self.coupling!r}.")
        if self.gain < 1:
            raise ValueError(f"gain must be at least 1, which leaves the features as they are; found {self.gain!r}.")


def coupling_for(n_bits: int, n_features: int) -> float:
    """A half up to one bit per feature, three quarters from two bits per feature, in proportion between."""
    return float(np.clip((1 + n_bits / n_features) / 4, 0.5, 0.75))


def _start(points, size, rng):
    """Codes to start from: signs of the leading axes of these points under ITQ's rotation."""
    variances, components = np.linalg.eigh((points.T @ points).astype(np.float64))
    del variances
    leading = points @ np.ascontiguousarray(components[:, ::-1][:, :size], dtype=points.dtype)
    rotation, _ = learn_rotation(leading, size, _ROTATIONS, rng)
    return as_signs(leading @ rotation.astype(points.dtype))


def _held_out(n_rows: int, rng) -> np.ndarray:
    """A tenth of the rows, at most 500; none where that is too few to say anything."""
    n_held = min(_QUERIES, n_rows // 10)
    return np.sort(rng.choice(n_rows, n_held, replace=False)) if n_held >= _FEWEST_QUERIES else np.empty(0, np.int64)


def _in_parts(X, function, width: int) -> np.ndarray:
    """A function of the rows, float32 (n, width), a block of rows at a time."""
    found = np.empty((len(X), width), dtype=np.float32)
    for start in range(0, len(X), _ROWS):
        found[start : start + _ROWS] = function(np.asarray(X[start : start + _ROWS], dtype=np.float32))
    return found


def _covariance(X, mean) -> np.ndarray:
    """Covariance times the number of rows, float64, a block of rows at a time."""
    total, varies = np.zeros((X.shape[1], X.shape[1])), False
    for start in range(0, len(X), _ROWS):
        centred = X[start : start + _ROWS] - mean
        varies = varies or bool(centred.any())
        total += centred.T @ centred
    if not varies:
        need_spread(np.zeros(1))
    return total


def _decoder(X, mean, codes) -> np.ndarray:
    """Least-squares atoms in the space of the features, (b, d)."""
    return fit_atoms(codes.astype(np.float32), X - mean)
