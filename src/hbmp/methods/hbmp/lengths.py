"""Codes of rows that differ in length: most bits rebuild a row's direction from the mean, the last ones its length.

Sums of bits have about one length, so rows whose lengths differ are rebuilt badly as they are. Here the direction of
y = x - μ is coded by the pursuit (`unlabelled`), and the last L bits number one of 2^L lengths:

    x ≈ μ + ℓ d        d: rebuilt direction, ℓ = y·y / y·d or y·d / d·d (least squares)

    σ    spread of log‖y‖           v    length bits   (n, L) in {-1, +1}, the most significant first
    D    share of the directions' squared length that is not rebuilt
    e    effective dimension        (Σλ)² / Σλ² of the variances

The error of a direction along the row is about √(D/e), and 2^L lengths leave about 1.5 σ / 2^L. L makes the second a
third of the first, which was best on training rows (docs/without-labels.md), but takes at most an eighth of the bits.
Below two bits L is 0. Rows of unit length tell their distance from the mean by their direction: below three bits.

A search adds up bits, while a length multiplies. So the scores of real-valued queries are linear about the product t
and the length ℓ that near rows have: q·ℓd ≈ ℓ₀ t + t₀ (ℓ - ℓ₀), with ℓ ≈ a₀ + Σ a_j v_j. The second part gets
the factor with which training rows find most of their nearest. Ranking by rebuilt vectors needs no approximation.

Reference: Sabin & Gray, Product Code Vector Quantizers for Waveform and Voice Coding, 1984 (gain and shape apart).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp import hamming
from hbmp.methods.hbmp.axes import in_parts
from hbmp.methods.hbmp.recall import distortion, nearest, shares_found
from hbmp.methods.hbmp.unlabelled import Rebuilding
from hbmp.pursuit.codebook import CodeBook
from hbmp.pursuit.features import code_book

_ROWS, _QUERIES, _NEAREST = 5000, 200, 10  # that near rows are looked up in
EFFICIENCY = 0.75  # of the bits of a direction, see `recall`
_MOST, _FEWEST_ROWS = 8, 200
FINER = 4.5  # 1.5 times 3: errors of lengths are a third of those of directions
_FEWEST, _FEWEST_TOLD = 2, 3  # length bits that pay; and of rows of unit length
_ALIKE = 0.1  # spread of the rows' own lengths, of that of the distances from the mean, that makes them unit length
_FINE = 2  # bits per feature beyond which linear scores lose more by inner product, or for unit rows, than lengths gain
_LLOYD = 30  # rounds
_FACTORS = (1.0, 0.1, 0.25, 0.5, 0.75, 1.5, 2.0, 3.0)  # of what length bits add to linear scores
_SHORTEST = 1e-3  # of the median length


class RebuildingLengths(Rebuilding):
    """Bits that rebuild directions, and `length_bits` bits at the end of the code for lengths; the same settings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 8)).astype(np.float32) * rng.uniform(1, 9, (300, 1)).astype(np.float32)
    >>> function = RebuildingLengths(length_bits=3)
    >>> codes = function.pursue(X, 16, random_state=0).codes
    >>> bool(np.corrcoef(np.linalg.norm(function.rebuild(codes), axis=1), np.linalg.norm(X, axis=1))[0, 1] > 0.9)
    True
    """

    def bits(self, X: Any) -> np.ndarray:
        """The codes as floats, float32 (n, n_bits)."""
        return in_parts(X, self._bits, len(self.scale_))

    def project(self, X: Any) -> np.ndarray:
        """Scores whose signs are the codes: lengths count as real-valued queries weigh them, but with their bits."""
        scores, bits = self._products(X), self.bits(X)
        return bits * np.maximum(np.abs(scores), np.float32(1e-6) * np.abs(scores).max(initial=1e-30))

    def rebuild(self, codes: Any) -> np.ndarray:
        """Feature vectors that codes stand for, float32 (n, n_features): compare them with queries by any distance."""
        codes = hamming.check_codes(codes, len(self.scale_))
        n_bits = codes.shape[1] - self.n_lengths_
        levels = (codes[:, n_bits:] > 0) @ (2 ** np.arange(self.n_lengths_)[::-1])
        found: np.ndarray = self.mean_ + self.levels_[levels, None] * self.directions_of_.rebuild(codes[:, :n_bits])
        return found

    def query_scores(self, X: Any, bit_weights: Any) -> np.ndarray:
        """Scores of queries alone, linear about the products and lengths of near rows."""
        weights = np.where(np.abs(bit_weights) > 1e-12, bit_weights, 1e-12).astype(np.float32)
        return self._products(X) / self.scale_ / weights

    def _found(self, X: Any, held: Any, n_bits: int, rng: Any, weighting: str | None, ridge: float) -> CodeBook:
        self.n_lengths_ = int(self.length_bits)
        self.mean_ = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        directions, sizes = self._directions(X)
        inner = Rebuilding(**{**self.get_params(), "metric": "l2", "length_bits": 0})
        inner.by_spectrum = False  # layers rebuild directions better, but fewer of the nearest are found
        inner._found(directions, held, n_bits - self.n_lengths_, rng, None, ridge)
        inner.rescale(1 / inner.scale_, np.zeros(len(inner.scale_)))
        inner.free_queries_ = inner.coupling_ == 1
        self.directions_of_, self.coupling_, self.unexplained_ = inner, inner.coupling_, inner.unexplained_
        bits = inner.bits(directions)
        self.levels_ = levels_of(best_lengths(directions, sizes, inner.rebuild(bits.astype(np.int8))), self.n_lengths_)
        self.steps_ = steps_of(self.levels_)
        self.scale_ = np.ones(n_bits, dtype=np.float32)
        codes = hamming.signs(self.bits(X))
        self._learn_near(X, rng)
        mean_length = float(self.levels_.mean())
        self.decoder_ = np.vstack([mean_length * inner.decoder_, np.zeros((self.n_lengths_, X.shape[1]), np.float32)])
        atoms = mean_length * np.linalg.norm(inner.decoder_, axis=1)
        return self._weighed(X, codes, atoms, weighting, ridge)

    def _weighed(self, X: Any, codes: np.ndarray, atoms: np.ndarray, weighting: str | None, ridge: float) -> CodeBook:
        """The code book; each bit is weighted by the square of what it adds, and the last bits least."""
        own = np.square(np.pad(atoms, (0, self.n_lengths_)))
        given = None if weighting else np.maximum(own / own.max(), 1e-6)
        book = code_book(codes, X - self.mean_, weighting=weighting or "ridge", ridge=ridge, given=given)
        self._take_out(book, weighting)
        return book

    def _directions(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Unit directions from the mean (n, d), and the lengths (n,)."""
        rows = np.asarray(X, dtype=np.float32) - self.mean_
        sizes = np.maximum(np.linalg.norm(rows, axis=1), np.float32(1e-12))
        return rows / sizes[:, None], sizes

    def _bits(self, X: Any) -> np.ndarray:
        directions, sizes = self._directions(X)
        bits = self.directions_of_.bits(directions)
        lengths = best_lengths(directions, sizes, self.directions_of_.rebuild(bits.astype(np.int8)))
        edges = np.sqrt(self.levels_[1:] * self.levels_[:-1])
        return np.hstack([bits, places_of(np.searchsorted(edges, lengths), self.n_lengths_)])

    def _products(self, X: Any) -> np.ndarray:
        """Linear scores of real-valued queries, see the module."""

        def scores(rows: np.ndarray) -> np.ndarray:
            directions, sizes = self._directions(rows)
            inner = self.directions_of_
            along = inner.queries(directions) * sizes[:, None]
            if self.metric == "ip":
                along += self.mean_ @ inner.decoder_.T
                sizes = np.linalg.norm(rows, axis=1)
            length = np.maximum(self.near_[1] + self.near_[2] * sizes, self.levels_[0])
            pull = self.near_[0] * sizes - (length * self.near_[3] if self.metric == "l2" else 0)
            return np.hstack([along * length[:, None], pull[:, None] * self.steps_]) * self.scale_

        return in_parts(X, scores, len(self.scale_))

    def _learn_near(self, X: Any, rng: Any) -> None:
        """near_: the mean product of a unit query with near rows' directions, their length as a line, and d·d."""
        rows = np.asarray(X[np.sort(rng.choice(len(X), min(_ROWS, len(X)), replace=False))], dtype=np.float32)
        directions = self.directions_of_.rebuild(hamming.signs(self._bits(rows))[:, : -self.n_lengths_])
        by_product = self.metric == "ip"
        queries = (rows if by_product else rows - self.mean_)[:_QUERIES]
        centred = rows - self.mean_
        similarity = queries @ centred.T - (0 if by_product else np.square(centred).sum(axis=1) / 2)
        np.fill_diagonal(similarity, -np.inf)
        near = nearest(similarity, min(_NEAREST, len(rows) - 1))
        sizes = np.maximum(np.linalg.norm(queries, axis=1), 1e-12)
        products = np.einsum("qd,qkd->qk", queries / sizes[:, None], directions[near])
        lengths = np.linalg.norm(centred, axis=1)[near].mean(axis=1)
        slope = float(np.cov(sizes, lengths)[0, 1] / max(float(np.var(sizes, ddof=1)), 1e-6 * float(sizes.mean()) ** 2))
        level = float(lengths.mean() - slope * sizes.mean())
        own = np.square(directions).sum(axis=1).mean()
        self.near_ = np.array([products.mean(), level, slope, own], dtype=np.float32)
        self._weigh_lengths(rows, near)

    def _weigh_lengths(self, rows: np.ndarray, near: np.ndarray) -> None:
        """The factor of the length bits' scores with which sampled rows find most of their nearest."""
        scores, bits = self._products(rows[:_QUERIES]), self._bits(rows)
        n_bits = bits.shape[1] - self.n_lengths_
        along, lengths = (scores[:, part] @ bits[:, part].T for part in (slice(n_bits), slice(n_bits, None)))
        np.fill_diagonal(along, -np.inf)
        found = [shares_found(along + factor * lengths, near, near.shape[1]).mean() for factor in _FACTORS]
        self.steps_ *= np.float32(_FACTORS[int(np.argmax(found))])


def with_lengths(function: Rebuilding, X: Any, n_bits: int) -> Rebuilding:
    """The function, or the same with as many bits for lengths as it asks for, or as these rows need."""
    function._check()
    wanted = function.length_bits
    if wanted == "auto":
        wanted = 0 if function.nested else length_bits(X, n_bits, function.metric)
    elif wanted >= n_bits:
        raise ValueError(f"length_bits={wanted} leaves none of {n_bits} bits for the direction.")
    return RebuildingLengths(**{**function.get_params(), "length_bits": wanted}) if wanted else function


def length_bits(X: np.ndarray, n_bits: int, metric: str = "l2") -> int:
    """L for these rows, see the module."""
    if len(X) < _FEWEST_ROWS:
        return 0
    rows = rows_throughout(X)
    centred = rows - rows.mean(axis=0)
    spread, spread_as_given = (spread_of(np.linalg.norm(each, axis=1)) for each in (centred, rows))
    told = spread_as_given < _ALIKE * spread
    if n_bits > _FINE * rows.shape[1] and (told or metric == "ip"):
        return 0
    variances = np.linalg.eigvalsh(np.cov(centred.T)) if rows.shape[1] > 1 else np.ones(1)
    variances = np.maximum(variances, 1e-9 * max(float(variances.max()), 1e-30))
    left = distortion(variances, EFFICIENCY * n_bits) / variances.sum()
    effective = variances.sum() ** 2 / np.square(variances).sum()
    wanted = np.log2(max(FINER * spread / np.sqrt(left / effective), 1e-9))
    return 0 if wanted < (_FEWEST_TOLD if told else _FEWEST) else min(int(wanted), _MOST, n_bits // 8)


def rows_throughout(X: np.ndarray) -> np.ndarray:
    """At most 5,000 rows, from the first to the last, float32."""
    return np.asarray(X[np.linspace(0, len(X) - 1, min(_ROWS, len(X))).astype(int)], dtype=np.float32)


def spread_of(lengths: np.ndarray) -> float:
    """Standard deviation of the logarithms."""
    return float(np.log(np.maximum(lengths, max(_SHORTEST * np.median(lengths), 1e-30))).std())


def best_lengths(directions: np.ndarray, sizes: np.ndarray, rebuilt: np.ndarray) -> np.ndarray:
    """The factor of each rebuilt direction that leaves the least of its row, (n,)."""
    found = sizes * np.einsum("nd,nd->n", directions, rebuilt)
    found /= np.maximum(np.square(rebuilt).sum(axis=1), 1e-12)
    return np.maximum(found, np.float32(_SHORTEST) * np.median(np.abs(found)))


def levels_of(lengths: np.ndarray, n_bits: int) -> np.ndarray:
    """Lloyd's levels of the logarithms, (2^n_bits,)."""
    logs = np.log(lengths)
    levels = np.quantile(logs, (np.arange(2**n_bits) + 0.5) / 2**n_bits)
    for _ in range(_LLOYD):
        part = np.searchsorted((levels[1:] + levels[:-1]) / 2, logs)
        counts = np.bincount(part, minlength=len(levels))
        levels = np.where(counts > 0, np.bincount(part, logs, len(levels)) / np.maximum(counts, 1), levels)
    return np.exp(np.sort(levels)).astype(np.float32)


def places_of(levels: np.ndarray, n_bits: int) -> np.ndarray:
    """Numbers of levels as floats in {-1, +1}, (n, n_bits), the most significant bit first."""
    places = np.arange(n_bits)[::-1]
    return ((levels[:, None] >> places & 1) * 2 - 1).astype(np.float32)


def steps_of(levels: np.ndarray) -> np.ndarray:
    """a_j: what each length bit adds to a length, by least squares over the levels."""
    n_bits = int(np.log2(len(levels)))
    bits = places_of(np.arange(len(levels)), n_bits)
    return (bits.T @ levels / len(levels)).astype(np.float32)  # the columns of all numbers are orthogonal
