"""Inverted lists: codes grouped by nearest centroid, so that a query looks at a few groups instead of at all codes.

    s   scale       (n_bits,)             √|α|: squared Euclidean distance between s∘q and s∘u is 4 Σ|α_k| [q_k ≠ u_k]
    c   centroids   (n_lists, n_bits)     spherical k-means of s∘u

A query probes the lists whose centroids have the largest inner product with sign(α)∘s∘q. Inside the lists bits are
counted as by `index.counting`, and equal codes are counted once; items in other lists are missed. How many lists to
probe for a given recall is measured on codes that took no part in training. Without numba, the search is exact.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.index import counting
from hbmp.index.balls import as_words
from hbmp.index.query import QueryBatch
from hbmp.index.scan import Results, nearest
from hbmp.index.segment import Segment

if TYPE_CHECKING:
    from hbmp.index.grouped import Groups

_TRAINING_CODES_PER_LIST = 30
_TRAINING_ROUNDS = 5
_HELD_OUT = 500
_GROUPED_FROM = 256  # centroids; fewer are compared with every code
_NEAR_A_GROUP = 4  # one in four centroids is compared with the codes of a group
_ROWS_AT_ONCE = 1 << 16
_NOBODY = -2  # the position of a query that is no item
_MEASURED_K = (10, 100)  # the recall of the ten and of the hundred nearest is measured and kept


class _Layout(NamedTuple):
    """The distinct codes in the order of their lists."""

    words: NDArray[np.uint64]  # (W, n)
    order: NDArray[np.uint32]  # (n,) the position of each code, or the number of its group
    starts: NDArray[np.int64]  # (n_lists + 1,) first code of each list


class InvertedLists:
    """The lists of one segment: which list every row is in, and how many to probe for k results."""

    def __init__(
        self,
        rows: NDArray[np.uint8],
        list_numbers: NDArray[Any],
        centroids: NDArray[np.float32],
        bit_weights: NDArray[np.float64],
        *,
        probes: dict[int, int] | None = None,
        recalls: dict[int, float] | None = None,
    ):
        self.rows = rows
        self.list_numbers = list_numbers.astype(np.uint16)
        self.centroids = np.ascontiguousarray(centroids)
        self.bit_weights = bit_weights
        self.probes = probes or {}
        self.recalls = recalls or {}
        scale = _scale(bit_weights, rows.shape[1])
        self._by_bit = np.ascontiguousarray(centroids.T)
        self._inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        self._layout: _Layout | None = None
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers of lists, the centroids and, once built, the codes in the order of lists."""
        built = 0 if self._layout is None else sum(part.nbytes for part in self._layout)
        return self.list_numbers.nbytes + 2 * self.centroids.nbytes + built

    def narrowed(self, rows: NDArray[np.uint8], keep: NDArray[np.bool_]) -> InvertedLists:
        """The same lists with only the rows where `keep` (n,) holds, given anew as `rows`."""
        numbers = self.list_numbers[keep]
        return InvertedLists(rows, numbers, self.centroids, self.bit_weights, probes=self.probes, recalls=self.recalls)

    def search(self, segment: Segment, batch: QueryBatch, k: int, n_probe: int | None = None) -> Results:
        """The k nearest of their segment in the probed lists, distances and positions (n, ≤ k), inf and -1 at last."""
        k = min(k, len(segment))
        if len(batch) == 0 or not counting.available() or not counting.suits(batch):
            return nearest(segment, batch, k)
        n_probe = min(n_probe or self.probe_count(k), len(self.centroids))
        return counting.nearest_in_lists(
            self._built(segment.groups), self._by_bit, self._inverse, n_probe, batch, k, segment.groups
        )

    def probe_count(self, k: int) -> int:
        """Lists to probe for k results: the measured number for the next larger k."""
        return next((self.probes[at] for at in sorted(self.probes) if k <= at), max(self.probes.values()))

    def _built(self, groups: Groups | None) -> _Layout:
        with self._lock:
            if self._layout is None:
                rows, numbers = self.rows, self.list_numbers
                if groups is not None:  # equal codes are in the same list
                    rows, numbers = groups.codes.rows, numbers[groups.members[groups.starts[:-1]]]
                order = np.argsort(numbers, kind="stable")
                starts = np.searchsorted(numbers[order], np.arange(len(self.centroids) + 1))
                words = np.ascontiguousarray(as_words(rows)[:, order])
                self._layout = _Layout(words, order.astype(np.uint32), starts)
            return self._layout


def build_inverted(
    segment: Segment,
    bit_weights: NDArray[np.float64],
    recall: float,
    random_state: int,
    most_probed: float = 1.0,
    queries: QueryBatch | None = None,
) -> InvertedLists | None:
    """Lists for a segment that reach a recall, or None where that takes more than a share `most_probed` of them.

    The recall is measured with `queries` or, without them, with two kinds of held-out codes.
    """
    n_items, n_bytes = segment.rows.shape
    order = np.random.default_rng(random_state).permutation(n_items)
    n_lists = _number_of_lists(n_items)
    held_out, training = np.sort(order[:_HELD_OUT]), order[_HELD_OUT:][: n_lists * _TRAINING_CODES_PER_LIST]
    training = np.sort(training if len(training) >= n_lists else order)
    scale = _scale(bit_weights, n_bytes)
    centroids = _train(_scaled_signs(segment.rows[training], scale), n_lists, random_state)
    numbers = _assign(segment.rows, centroids, scale, random_state)
    inverted = InvertedLists(segment.rows, numbers, centroids, bit_weights)
    if queries is None:
        trial = _Trial(segment, _held_out_batches(segment.rows[held_out], bit_weights), held_out)
    else:
        trial = _Trial(segment, [queries.weighted()], np.full(len(queries), _NOBODY))
    return inverted if _choose_probes(inverted, trial, recall, most_probed) else None


def _number_of_lists(n_items: int) -> int:
    """About 2√n, a power of two, with enough codes for each to train on."""
    wanted = min(2 * np.sqrt(n_items), n_items / _TRAINING_CODES_PER_LIST, 4096)
    return 2 ** max(0, round(np.log2(max(wanted, 1))))


def _scale(bit_weights: NDArray[np.float64], n_bytes: int) -> NDArray[np.float32]:
    scale = np.zeros(8 * n_bytes, np.float32)
    scale[: len(bit_weights)] = np.sqrt(np.abs(bit_weights))
    return scale


def _scaled_signs(rows: NDArray[np.uint8], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    return hamming.unpack(rows, 8 * rows.shape[1]) * scale


def _train(points: NDArray[np.float32], n_lists: int, random_state: int) -> NDArray[np.float32]:
    import faiss

    kmeans = faiss.Kmeans(
        points.shape[1],
        n_lists,
        niter=_TRAINING_ROUNDS,
        spherical=True,
        seed=random_state,
        min_points_per_centroid=1,
        max_points_per_centroid=_TRAINING_CODES_PER_LIST + 1,
    )
    kmeans.train(points)
    return np.asarray(kmeans.centroids)


def _quantiser(centroids: NDArray[np.float32]) -> Any:
    import faiss

    quantiser = faiss.IndexFlatIP(centroids.shape[1])
    quantiser.add(np.ascontiguousarray(centroids))
    return quantiser


def _assign(
    rows: NDArray[np.uint8], centroids: NDArray[np.float32], scale: NDArray[np.float32], random_state: int
) -> NDArray[np.uint16]:
    """The list of every code: the nearest centroid or, where there are many, of those near its group of centroids."""
    numbers = np.empty(len(rows), np.uint16)
    groups = _quantiser(centroids)
    near: list[NDArray[np.int64]] = []
    if len(centroids) >= _GROUPED_FROM:
        middles = _train(centroids, round(len(centroids) ** 0.5), random_state)
        groups = _quantiser(middles)
        near = list(np.argsort(-(middles @ centroids.T), axis=1)[:, : len(centroids) // _NEAR_A_GROUP])
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = _scaled_signs(rows[start : start + _ROWS_AT_ONCE], scale)
        found = groups.search(block, 1)[1][:, 0]
        for group, some in enumerate(near):
            members = np.flatnonzero(found == group)
            if len(members):
                found[members] = some[_quantiser(centroids[some]).search(block[members], 1)[1][:, 0]]
        numbers[start : start + _ROWS_AT_ONCE] = found
    return numbers


class _Trial:
    """Queries of one or more kinds, and the distances of what they should find."""

    def __init__(self, segment: Segment, batches: list[QueryBatch], own: NDArray[np.int64]):
        exact = Segment(segment.rows, segment.ids)  # what it builds is dropped afterwards
        most = max(_MEASURED_K)
        self.segment, self.batches, self.own = segment, batches, own
        self.truths = [_without_self(*nearest(exact, batch, most + 1), own, most) for batch in batches]

    def reaches(self, inverted: InvertedLists, k: int, n_probe: int, recall: float) -> bool:
        """Whether the recall of each kind, less two standard errors, is the one asked for."""
        return all(
            shares.mean() - 2 * shares.std() / np.sqrt(len(shares)) >= recall
            for shares in self._shares(inverted, k, n_probe)
        )

    def recall(self, inverted: InvertedLists, k: int, n_probe: int) -> float:
        """The recall of the worst kind."""
        return float(min(shares.mean() for shares in self._shares(inverted, k, n_probe)))

    def _shares(self, inverted: InvertedLists, k: int, n_probe: int) -> Iterator[NDArray[np.float64]]:
        for batch, truth in zip(self.batches, self.truths, strict=True):
            found = _without_self(*inverted.search(self.segment, batch, k + 1, n_probe), self.own, k)
            yield _recalls(found, truth[:, :k])


def _choose_probes(inverted: InvertedLists, trial: _Trial, recall: float, most_probed: float) -> bool:
    """Find the fewest lists that reach the recall in a trial; whether they are few enough."""
    n_lists, low = len(inverted.centroids), 0
    counts = sorted({min(n_lists, int(2 ** (quarter / 4))) for quarter in range(4 * 12 + 1)})
    for k in sorted(_MEASURED_K):  # more results take no fewer lists
        high = len(counts) - 1
        while low < high:  # bisection: more lists never find less
            middle = (low + high) // 2
            enough = trial.reaches(inverted, k, counts[middle], recall)
            low, high = (low, middle) if enough else (middle + 1, high)
        if counts[low] > max(1, most_probed * n_lists):
            return False
        inverted.probes[k] = counts[low]
        inverted.recalls[k] = trial.recall(inverted, k, counts[low])
    return True


def _held_out_batches(rows: NDArray[np.uint8], bit_weights: NDArray[np.float64]) -> list[QueryBatch]:
    """Held-out codes as sign queries, and as normally distributed scores with a mean of one towards their sign.

    The smallest scores often have the wrong sign, as those near a decision boundary do.
    """
    codes = hamming.unpack(rows, len(bit_weights))
    scores = codes * np.random.default_rng(0).normal(1.0, 0.7, codes.shape)
    return [QueryBatch.prepare(queries, bit_weights).weighted() for queries in (codes, scores)]


def _recalls(found: NDArray[np.float32], truth: NDArray[np.float32]) -> NDArray[np.float64]:
    """Recall of each held-out query: the share of its true distances that are matched."""
    hits = (found <= truth[:, -1:]) & np.isfinite(found)
    return hits.sum(axis=1) / np.maximum(1, np.isfinite(truth).sum(axis=1))


def _without_self(found: NDArray[Any], positions: NDArray[Any], own: NDArray[Any], k: int) -> NDArray[np.float32]:
    """The k smallest distances to others than the query's own row."""
    return np.sort(np.where(positions == own[:, None], np.float32(np.inf), found), axis=1)[:, :k]
