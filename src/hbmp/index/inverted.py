"""Inverted lists: codes grouped by nearest centroid, so that a query looks at a few groups instead of at all codes.

    s   scale       (n_bits,)             √|α|: squared Euclidean distance between s∘q and s∘u is 4 Σ|α_k| [q_k ≠ u_k]
    c   centroids   (n_lists, n_bits)     spherical k-means of s∘u

A query probes the lists whose centroids have the largest inner product with sign(α)∘s∘q. Inside the lists runs the fast
scan of `index._scan`, and its candidates are measured exactly; items in other lists are missed. How many lists
to probe for a given recall is measured on codes that took no part in training.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.index.exact import exact_keys, smallest, split_keys
from hbmp.index.query import QueryBatch
from hbmp.index.scan import MOST_BITS_OF_FAST_SCAN, Results, nearest, return_freed_memory, sign_centroids
from hbmp.index.segment import Segment

_TRAINING_CODES_PER_LIST = 30
_TRAINING_ROUNDS = 5
_HELD_OUT = 500
_GROUPED_FROM = 256  # centroids; fewer are compared with every code
_NEAR_A_GROUP = 4  # one in four centroids is compared with the codes of a group
_ROWS_AT_ONCE = 1 << 16
_NOBODY = -2  # the position of a query that is no item
_MEASURED_K = (10, 100)  # the recall of the ten and of the hundred nearest is measured and kept


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
        self.centroids = centroids
        self.bit_weights = bit_weights
        self.probes = probes or {}
        self.recalls = recalls or {}
        self._scale = _scale(bit_weights, rows.shape[1])
        self._list_numbers: NDArray[Any] | None = list_numbers
        self._lists: Any = None
        self._quantiser: Any = None
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of the lists (codes and 8-byte row numbers, once built) and the centroids."""
        held = len(self.rows) * (self.rows.shape[1] + 8) if self._list_numbers is None else self._list_numbers.nbytes
        return held + self.centroids.nbytes

    def list_numbers(self) -> NDArray[np.uint16]:
        """The list of every row, (n,)."""
        if self._list_numbers is not None:
            return self._list_numbers.astype(np.uint16)
        import faiss

        numbers = np.empty(len(self.rows), np.uint16)
        for number in range(len(self.centroids)):
            size = self._lists.get_list_size(number)
            if size:
                numbers[faiss.rev_swig_ptr(self._lists.invlists.get_ids(number), size)] = number
        return numbers

    def narrowed(self, rows: NDArray[np.uint8], keep: NDArray[np.bool_]) -> InvertedLists:
        """The same lists with only the rows where `keep` (n,) holds, given anew as `rows`."""
        numbers = self.list_numbers()[keep]
        return InvertedLists(rows, numbers, self.centroids, self.bit_weights, probes=self.probes, recalls=self.recalls)

    def search(self, batch: QueryBatch, k: int, n_probe: int | None = None) -> Results:
        """The k nearest in the probed lists, distances and positions (n, k), padded with inf and -1."""
        lists = self._built()
        n_probe = min(n_probe or self.probe_count(k), len(self.centroids))
        # Half the margin of a proof: what that loses is part of the recall measured while building.
        n_candidates = min((k + batch.candidates(k, len(self.rows))) // 2, len(self.rows))
        vectors, _ = batch.scaled()
        probing = np.divide(vectors, self._scale, out=np.zeros_like(vectors), where=self._scale > 0)
        positions = _search_lists(lists, vectors, self._quantiser.search(probing, n_probe), n_candidates)
        keys = smallest(exact_keys(self.rows, batch, positions), k)
        return split_keys(np.pad(keys, ((0, 0), (0, k - keys.shape[1])), constant_values=np.iinfo(np.uint64).max))

    def probe_count(self, k: int) -> int:
        """Lists to probe for k results: the measured number for the next larger k."""
        return next((self.probes[at] for at in sorted(self.probes) if k <= at), max(self.probes.values()))

    def _built(self) -> Any:
        with self._lock:
            if self._lists is None:
                self._quantiser = _quantiser(self.centroids)
                self._lists = _build_lists(self.rows, np.asarray(self._list_numbers), self._quantiser)
                self._list_numbers = None  # the lists know it now
            return self._lists


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
    if 8 * n_bytes > MOST_BITS_OF_FAST_SCAN:
        raise ValueError(
            f"Inverted lists hold codes of up to {MOST_BITS_OF_FAST_SCAN} bits, found {len(bit_weights)}. "
            "Use kind='flat'."
        )
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


def _build_lists(rows: NDArray[np.uint8], list_numbers: NDArray[Any], quantiser: Any) -> Any:
    """A FAISS `IndexIVFPQFastScan`: like the flat one, it comes from the slow index that takes ready codes."""
    import faiss

    n_items, n_bytes = rows.shape
    slow: Any = faiss.IndexIVFPQ(quantiser, 8 * n_bytes, quantiser.ntotal, 2 * n_bytes, 4, faiss.METRIC_INNER_PRODUCT)
    slow.by_residual = False
    faiss.copy_array_to_vector(sign_centroids(2 * n_bytes, 4), slow.pq.centroids)
    slow.is_trained = True
    number_bytes = list_numbers.astype("<u8").view(np.uint8).reshape(n_items, 8)[:, : slow.coarse_code_size()]
    slow.add_sa_codes(np.hstack([number_bytes, rows]), np.arange(n_items))
    fast = faiss.IndexIVFPQFastScan(slow)
    fast.orig_invlists = None  # it would point into `slow`, which ends here
    del slow, number_bytes
    return_freed_memory()
    return fast


def _search_lists(
    lists: Any, vectors: NDArray[np.float32], probed: tuple[NDArray[Any], NDArray[Any]], n_candidates: int
) -> NDArray[np.int64]:
    """Positions (n, n_candidates) found in each query's own lists `probed`, -1 where they hold fewer."""
    import faiss

    products, numbers = probed
    parameters = faiss.IVFSearchParameters()
    parameters.nprobe = numbers.shape[1]
    scores = np.empty((len(vectors), n_candidates), np.float32)
    positions = np.empty((len(vectors), n_candidates), np.int64)
    lists.search_preassigned_c(  # FAISS's Python method of that name knows no parameters
        len(vectors),
        faiss.swig_ptr(vectors),
        n_candidates,
        faiss.swig_ptr(numbers),
        faiss.swig_ptr(products),
        faiss.swig_ptr(scores),
        faiss.swig_ptr(positions),
        False,
        parameters,
    )
    return positions


class _Trial:
    """Queries of one or more kinds, and the distances of what they should find."""

    def __init__(self, segment: Segment, batches: list[QueryBatch], own: NDArray[np.int64]):
        exact = Segment(segment.rows, segment.ids)  # what it builds is dropped afterwards
        most = max(_MEASURED_K)
        self.batches, self.own = batches, own
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
            yield _recalls(inverted, batch, self.own, truth[:, :k], n_probe)


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


def _recalls(
    inverted: InvertedLists, batch: QueryBatch, held_out: NDArray[Any], truth: NDArray[Any], n_probe: int
) -> NDArray[np.float64]:
    """Recall of each held-out query: the share of its true distances that are matched."""
    k = truth.shape[1]
    found = _without_self(*inverted.search(batch, k + 1, n_probe), held_out, k)
    hits = (found <= truth[:, -1:]) & np.isfinite(found)
    return hits.sum(axis=1) / np.maximum(1, np.isfinite(truth).sum(axis=1))


def _without_self(found: NDArray[Any], positions: NDArray[Any], own: NDArray[Any], k: int) -> NDArray[np.float32]:
    """The k smallest distances to others than the query's own row."""
    return np.sort(np.where(positions == own[:, None], np.float32(np.inf), found), axis=1)[:, :k]
