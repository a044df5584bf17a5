"""Equal codes searched once: the distinct codes of a segment, and the positions of the items that have each.

    first     order of the groups: by their smallest position
    starts    (m + 1,)   where the members of each group begin
    members   (n,)       positions, ascending within a group

Codes learned from labels repeat: a million items of a hundred classes may have a few thousand codes. The k nearest
items lie in the k nearest groups, ranked by (distance, smallest position): an item of any other group comes after the
first member of each of those k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hbmp.index.exact import make_keys, smallest

if TYPE_CHECKING:
    from hbmp.index.segment import Segment

MISSING = np.iinfo(np.uint64).max
_SAMPLE = 8192
_REPEATED = 0.1  # of a sample; with fewer repetitions the groups would save too little
_KEYS_AT_ONCE = 1 << 21
_MIXER = np.uint64(0x9E3779B97F4A7C15)


class Groups:
    """The distinct codes `codes` of a segment, as a segment of its own, and their members."""

    def __init__(self, rows: NDArray[np.uint8], members: NDArray[np.intp], starts: NDArray[np.int64]):
        from hbmp.index.segment import Segment

        self.codes: Segment = Segment(rows, 0)
        self.codes.distinct = True
        self.members = members.astype(np.uint32)
        self.starts = starts

    @classmethod
    def of(cls, rows: NDArray[np.uint8]) -> Groups | None:
        """The groups of packed codes (n, n_bytes), or None where few codes repeat."""
        fingerprints = _fingerprints(rows)
        # All items of some codes, so that the sample repeats as much as the whole does.
        chosen = (fingerprints * _MIXER >> np.uint64(40)) % np.uint64(max(1, len(rows) // _SAMPLE)) == 0
        sample = fingerprints[chosen]
        if len(np.unique(sample)) > (1 - _REPEATED) * len(sample):
            return None
        order = np.argsort(fingerprints, kind="stable")
        fingerprints = fingerprints[order]
        begins = np.flatnonzero(np.concatenate([[True], fingerprints[1:] != fingerprints[:-1]]))
        sizes = np.diff(begins, append=len(rows))
        first = order[begins]
        if rows.shape[1] > 8 and not np.array_equal(rows[order], np.repeat(rows[first], sizes, axis=0)):
            return None  # two codes share a fingerprint, which hardly ever happens
        by_first = np.argsort(first)
        starts = np.concatenate([[0], np.cumsum(sizes[by_first])])
        members = order[np.repeat(begins[by_first] - starts[:-1], sizes[by_first]) + np.arange(len(rows))]
        return cls(rows[first[by_first]], members, starts)

    @property
    def nbytes(self) -> int:
        """Bytes of the distinct codes, what is built from them, and the lists of members."""
        return self.codes.nbytes + self.members.nbytes + self.starts.nbytes

    def nearest_members(self, found: NDArray[np.float32], groups: NDArray[np.int64], k: int) -> NDArray[np.uint64]:
        """Keys (n, k) of the nearest items, given the distances and numbers of the nearest groups in order."""
        counts = self.starts[groups + 1] - self.starts[groups]
        before = np.cumsum(counts, axis=1) - counts
        # A group after i others can place k - i members at most; none, if nearer groups have k.
        counts = np.minimum(counts, k - np.arange(groups.shape[1]))
        enough = np.maximum((before < k).sum(axis=1) - 1, 0)
        counts[found > np.take_along_axis(found, enough[:, None], axis=1)] = 0
        totals = counts.sum(axis=1)
        at_once = max(1, _KEYS_AT_ONCE // max(k, int(totals.max(initial=1))))
        blocks = [slice(start, start + at_once) for start in range(0, len(groups), at_once)]
        parts = [self._best_keys(found[some], groups[some], counts[some], totals[some], k) for some in blocks]
        return np.concatenate(parts) if parts else np.empty((0, k), np.uint64)

    def _best_keys(
        self, found: NDArray[Any], groups: NDArray[Any], counts: NDArray[Any], totals: NDArray[Any], k: int
    ) -> NDArray[np.uint64]:
        flat = counts.ravel()
        ends = np.cumsum(flat)
        within = np.arange(ends[-1]) - np.repeat(ends - flat, flat)
        positions = self.members[np.repeat(self.starts[groups.ravel()], flat) + within]
        keys = make_keys(np.repeat(found.ravel(), flat), positions)
        width = int(max(totals.max(), k))
        if (totals == width).all():
            table = keys.reshape(len(groups), width)
        else:
            table = np.full((len(groups), width), MISSING, np.uint64)
            table[np.arange(width) < totals[:, None]] = keys
        return smallest(table, k)

    def all_members(self, keys_distances: NDArray[np.float32], groups: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Sorted keys of all members of some groups."""
        sizes = self.starts[groups + 1] - self.starts[groups]
        ends = np.cumsum(sizes)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        positions = self.members[np.repeat(self.starts[groups], sizes) + within]
        return np.sort(make_keys(np.repeat(keys_distances, sizes), positions))


def _fingerprints(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """One integer per code: the code itself where it has up to 64 bits, else a hash."""
    n_words = -(-rows.shape[1] // 8)
    words = np.zeros((len(rows), 8 * n_words), np.uint8)
    words[:, : rows.shape[1]] = rows
    words = words.view(np.uint64)
    mixed = words[:, 0].copy()
    for word in range(1, n_words):
        mixed = (mixed ^ mixed >> np.uint64(29)) * _MIXER + words[:, word]
    return mixed
