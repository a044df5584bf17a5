"""Codes grouped into balls, so that a search bounds the distance to many codes at once.

    c   centres   k-majority: the bits that most codes around a centre have
    h   radii     the most masked bits in which a code of a ball differs from its centre
    r   reaches   the largest weighted distance of a code of a ball from its centre

Every code joins its nearest centre. The codes of one centre are sorted by their weighted distance from it and cut into
balls of at most 256, so inner balls are small. The mask leaves out bits of little weight: they would widen the radii
and hardly move a distance. Balls only speed a search up: its results do not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CODES_PER_CENTRE, _MOST_CENTRES = 1024, 1024
_CODES_PER_BALL = 256
_TRAINING_CODES, _TRAINING_ROUNDS = 40, 5  # codes per centre
_HEAVY = 0.25  # of the largest weight


@dataclass(frozen=True)
class Balls:
    """Codes `words` (W, n) in the order of their balls, and the balls."""

    words: NDArray[np.uint64]
    order: NDArray[np.uint32]  # (n,) the position of each code; empty where codes are in the order of positions
    starts: NDArray[np.int64]  # (m + 1,) first code of each ball
    centres: NDArray[np.uint64]  # (W, m)
    radii: NDArray[np.uint64]  # (m,)
    reaches: NDArray[np.float64]  # (m,)
    weights: NDArray[np.float64]  # (bits,) those of the reaches
    mask: NDArray[np.uint64]  # (W,)

    @classmethod
    def one(cls, words: NDArray[np.uint64]) -> Balls:
        """A single ball that holds everything: no code is ruled out before it is counted."""
        n_words, n_items = words.shape
        centres, whole = np.zeros((n_words, 1), np.uint64), np.array([64 * n_words], np.uint64)
        order, weights, mask = np.empty(0, np.uint32), np.zeros(64 * n_words), np.zeros(n_words, np.uint64)
        return cls(words, order, np.array([0, n_items]), centres, whole, np.zeros(1), weights, mask)

    @classmethod
    def around_centres(cls, words: NDArray[np.uint64], vectors: NDArray[np.float64]) -> Balls:
        """Balls around k-majority centres, for queries α∘q (n, bits) like these."""
        from hbmp.index import ball_loops

        n_words, n_items = words.shape
        weights, mask = np.zeros(64 * n_words), heavy_bits(vectors, n_words)
        weights[: vectors.shape[1]] = np.abs(vectors).mean(axis=0)
        n_centres = max(1, min(_MOST_CENTRES, n_items // _CODES_PER_CENTRE))
        used = as_words(np.packbits(weights > 0, bitorder="little")[None])[:, 0].copy()
        centres = _majority_centres(words, n_centres, used)
        numbers, distances, weighted = (np.empty(n_items, kind) for kind in (np.int32, np.int32, np.float64))
        ball_loops.assign(words, centres, used, numbers, distances)
        ball_loops.measure(words, centres, numbers, weights, mask, distances, weighted)
        order = np.lexsort((weighted, numbers)).astype(np.uint32)
        numbers = numbers[order]
        first = np.flatnonzero(np.diff(numbers, prepend=-1))
        ranks = np.arange(n_items) - np.repeat(first, np.diff(first, append=n_items))
        starts = np.flatnonzero(ranks % _CODES_PER_BALL == 0)
        return cls(
            words=np.ascontiguousarray(words[:, order]),
            order=order,
            starts=np.append(starts, n_items),
            centres=np.ascontiguousarray(centres[:, numbers[starts]]),
            radii=np.maximum.reduceat(distances[order], starts).astype(np.uint64),
            reaches=np.maximum.reduceat(weighted[order], starts),
            weights=weights,
            mask=mask,
        )

    def __len__(self) -> int:
        return len(self.radii)

    @property
    def nbytes(self) -> int:
        """Bytes of the codes, where they are a copy, and of the balls."""
        copied = self.words.nbytes if self.words.base is None else 0
        parts = (self.order, self.starts, self.centres, self.radii, self.reaches)
        return copied + sum(part.nbytes for part in parts)


def as_words(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Packed codes (n, n_bytes) as 64-bit words (W, n); bit k is bit k % 64 of word k // 64."""
    n_words = -(-rows.shape[1] // 8)
    if rows.shape[1] % 8:
        padded = np.zeros((len(rows), 8 * n_words), np.uint8)
        padded[:, : rows.shape[1]] = rows
        rows = padded
    rows = np.ascontiguousarray(rows)
    if rows.ctypes.data % 8:
        rows = rows.copy()
    columns = rows.view("<u8").astype(np.uint64, copy=False).T
    return columns.reshape(1, -1) if n_words == 1 else columns.copy()


def heavy_bits(vectors: NDArray[np.float64], n_words: int) -> NDArray[np.uint64]:
    """The mask of the bits that weigh at least a quarter of the heaviest, on average over queries α∘q (n, bits)."""
    weights = np.abs(vectors).mean(axis=0)
    marks = np.zeros(64 * n_words, bool)
    marks[: len(weights)] = weights >= _HEAVY * weights.max()
    return as_words(np.packbits(marks, bitorder="little")[None])[:, 0].copy()


def _majority_centres(words: NDArray[np.uint64], n_centres: int, mask: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Centres (W, n_centres) by k-majority, the k-means of codes, on a sample."""
    from hbmp.index import ball_loops

    n_words, n_items = words.shape
    chosen = np.random.default_rng(0).permutation(n_items)[: n_centres * _TRAINING_CODES]
    sample = np.ascontiguousarray(words[:, chosen])
    centres = np.ascontiguousarray(sample[:, :n_centres])
    numbers, distances = np.empty(len(chosen), np.int32), np.empty(len(chosen), np.int32)
    for _ in range(_TRAINING_ROUNDS):
        ball_loops.assign(sample, centres, mask, numbers, distances)
        set_bits, counts = np.zeros((n_centres, 64 * n_words), np.int32), np.zeros(n_centres, np.int64)
        ball_loops.tally(sample, numbers, set_bits, counts)
        majority = as_words(np.packbits(2 * set_bits > counts[:, None], axis=1, bitorder="little"))
        centres = np.ascontiguousarray(np.where(counts > 0, majority, centres))
    return centres
