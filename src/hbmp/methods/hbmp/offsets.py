"""Codes for real-valued queries alone: full coupling, and lengths as the rows need them (`HBMP(queries="floats")`).

Rows that differ in length are coded by direction and length (`lengths`), or as they are where this finds clearly more
of the nearest on a sample. As they are, distance needs the length of the rebuilt vector, which no sum of the bits'
products has:

    ‖q - x‖²/2 ≈ constant - (q·ŷ + o)        o = -‖ŷ‖²/2 ≈ a₀ + Σ a_j v_j

    ŷ    rebuilt, centred  (d,)
    v    offset bits       (L,) in {-1, +1} at the end of the code
    a    steps             (L,) of levels that are such sums, found by rounds of k-means

The inner product needs no offset, and rebuilt vectors take no notice of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from hbmp import hamming
from hbmp._core.progress import parts, stage
from hbmp.methods.hbmp.axes import in_parts
from hbmp.methods.hbmp.lengths import EFFICIENCY, FINER, RebuildingLengths, places_of, rows_throughout, with_lengths
from hbmp.methods.hbmp.recall import water_level
from hbmp.methods.hbmp.unlabelled import Rebuilding
from hbmp.pursuit.codebook import CodeBook

_MOST = 10
_TRIED, _TRIED_ITER = 1500, 3  # rows and rounds that choose between lengths and offsets
_CLEARLY = 0.03  # recall that offsets must gain: where they gain less, lengths rank rebuilt vectors better
_ROUNDS = 30  # of k-means
_FEWEST = 64  # bits from which on they pay


class RebuildingOffsets(RebuildingLengths):
    """Bits that rebuild rows, and `length_bits` bits at the end of the code for the offset of their scores.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 8)).astype(np.float32) * rng.uniform(1, 9, (300, 1)).astype(np.float32)
    >>> function = RebuildingOffsets(coupling=1.0, length_bits=4)
    >>> codes = function.pursue(X, 20, random_state=0).codes
    >>> function.rebuild(codes).shape
    (300, 8)
    """

    def rebuild(self, codes: Any) -> np.ndarray:
        """Feature vectors that codes stand for, float32 (n, n_features); offset bits add nothing to them."""
        codes = hamming.check_codes(codes, len(self.scale_))
        found: np.ndarray = self.directions_of_.rebuild(codes[:, : -self.n_lengths_])
        return found

    def _found(self, X: Any, held: Any, n_bits: int, rng: Any, weighting: str | None, ridge: float) -> CodeBook:
        self.n_lengths_ = int(self.length_bits)
        inner = Rebuilding(**{**self.get_params(), "length_bits": 0})
        inner._found(X, held, n_bits - self.n_lengths_, rng, None, ridge)
        inner.rescale(1 / inner.scale_, np.zeros(len(inner.scale_)))
        inner.free_queries_ = True
        self.directions_of_, self.coupling_, self.unexplained_ = inner, inner.coupling_, inner.unexplained_
        self.mean_ = inner.mean_
        offsets = in_parts(X, lambda rows: self._offsets_of(inner.bits(rows)), 1)[:, 0]
        self.levels_, self.steps_ = levels_of_sums(offsets, self.n_lengths_)
        self.scale_ = np.ones(n_bits, dtype=np.float32)
        self.decoder_ = np.vstack([inner.decoder_, np.zeros((self.n_lengths_, X.shape[1]), np.float32)])
        return self._weighed(X, hamming.signs(self.bits(X)), np.linalg.norm(inner.decoder_, axis=1), weighting, ridge)

    def _bits(self, X: Any) -> np.ndarray:
        bits = self.directions_of_.bits(X)
        numbers = nearest_level(self.levels_, self._offsets_of(bits)[:, 0])
        return np.hstack([bits, places_of(numbers, self.n_lengths_)])

    def _offsets_of(self, bits: np.ndarray) -> np.ndarray:
        """-‖ŷ‖²/2 of rebuilt rows, (n, 1)."""
        rebuilt = bits.astype(np.float32) @ self.directions_of_.decoder_
        return -np.square(rebuilt).sum(axis=1, keepdims=True) / 2

    def _products(self, X: Any) -> np.ndarray:
        """Scores of real-valued queries: products with what bits add to rebuilt vectors, and steps of the offset."""

        def scores(rows: np.ndarray) -> np.ndarray:
            along = (rows - self.mean_) @ self.directions_of_.decoder_.T
            return np.hstack([along, np.broadcast_to(self.steps_, (len(rows), self.n_lengths_))]) * self.scale_

        return in_parts(X, scores, len(self.scale_))


def offset_bits(X: np.ndarray, n_bits: int) -> int:
    """L for these rows, at most an eighth of the bits: levels err by a third of what the scores of codes err by.

    That is √(Σ λ min(θ, λ)) with the water level θ of the variances λ, see `recall`; 2^L levels leave about 1.5 σ / 2^L
    of the spread σ of o.
    """
    rows = rows_throughout(X)
    centred = rows - rows.mean(axis=0)
    variances = np.linalg.eigvalsh(np.cov(centred.T))[::-1]
    variances = np.maximum(variances, 1e-9 * variances[0])
    level, _ = water_level(variances, EFFICIENCY * n_bits)
    error = np.sqrt((variances * np.minimum(variances, level)).sum())
    wanted = np.log2(max(FINER * float((np.square(centred).sum(axis=1) / 2).std()) / error, 2))
    return min(int(np.ceil(wanted)), _MOST, n_bits // 8)


def levels_of_sums(values: np.ndarray, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(levels (2^n_bits,) by their number, steps (n_bits,)): levels are sums of steps, each as its bit is set."""
    bits = places_of(np.arange(2**n_bits), n_bits)
    terms = np.hstack([np.ones((len(bits), 1)), bits])
    low, high = np.quantile(values, (0.005, 0.995))
    levels: np.ndarray = np.linspace(low, high, len(bits))
    for _ in range(_ROUNDS):
        numbers = nearest_level(levels, values)
        counts = np.bincount(numbers, minlength=len(bits))
        match = terms.T @ np.bincount(numbers, values, len(bits))
        steps = np.linalg.lstsq(terms.T @ (terms * counts[:, None]), match, rcond=None)[0]
        levels = terms @ steps
    return levels.astype(np.float32), steps[1:].astype(np.float32)


def nearest_level(levels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The number of the level nearest to each value, (n,)."""
    order = np.argsort(levels)
    ascending = levels[order]
    found: np.ndarray = order[np.searchsorted((ascending[1:] + ascending[:-1]) / 2, values)]
    return found


def for_floats(function: Rebuilding, X: Any, n_bits: int, random_state: Any) -> tuple[Rebuilding, CodeBook]:
    """(function fitted for real-valued queries, its code book)."""
    if function.coupling not in ("auto", 1):
        raise ValueError(
            f"queries='floats' needs a coupling of 1: leave the coupling of Rebuilding at 'auto', "
            f"found {function.coupling!r}."
        )
    function.set_params(coupling=1.0)
    candidates = _candidates(function, X, n_bits)
    if len(candidates) > 1:
        few = X[np.linspace(0, len(X) - 1, min(_TRIED, len(X))).astype(int)]
        recalls = []
        with stage("lengths of rows", until=0.3):
            for candidate in parts(candidates):
                tried = clone(candidate).set_params(n_iter=min(candidate.n_iter, _TRIED_ITER))
                tried.pursue(few, n_bits, random_state=random_state)
                recalls.append(0.0 if tried.recall_ is None else tried.recall_.estimate)
        clearly = _CLEARLY if function.metric == "l2" else 0.0
        candidates = candidates[1:] if recalls[1] > recalls[0] + clearly else candidates[:1]
    return candidates[0], candidates[0].pursue(X, n_bits, random_state=random_state)


def _candidates(function: Rebuilding, X: Any, n_bits: int) -> list[Rebuilding]:
    """What is fitted: with lengths where rows differ in them, and as they are."""
    first = with_lengths(function, X, n_bits)
    if function.length_bits != "auto" or type(first) is Rebuilding or n_bits < _FEWEST:
        return [first]
    if function.metric == "ip":
        return [first, Rebuilding(**{**function.get_params(), "length_bits": 0})]
    return [first, RebuildingOffsets(**{**function.get_params(), "length_bits": offset_bits(X, n_bits)})]
