"""The k nearest codes of small segments, and without numba: FAISS's fast approximate pass, exact distances, a proof.

Larger segments are searched by `index.counting`.

    v·u   score      larger is nearer, see `index.query`
    K     candidates kept by the fast pass
    E     how far the fast pass can be off

The fast pass is FAISS's 4-bit product quantiser with its 16 centroids fixed to {±1}⁴: the packed bits are its codes. It
rounds the partial sums of each group of four bits to eight-bit steps of one size, so its scores are off by at most half
a step a group. The K best are measured again exactly. An item that is not among them scores at most E above the last of
them; where that still leaves it farther than the k-th exact distance, the answer is proven, ties included. Queries
without that proof look up everything within the k-th distance found, which contains the answer by definition.

Where all weights are equal and the queries are signs, FAISS counts bits instead for few or short codes, and for queries
whose ties the candidates do not exhaust. Equal codes are searched once (`index.grouped`).
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hbmp.index import counting
from hbmp.index.exact import all_within, exact_keys, key_distances, make_keys, nearest_of_all, smallest, split_keys
from hbmp.index.query import QueryBatch

if TYPE_CHECKING:
    from hbmp.index.segment import Segment

Results = tuple[NDArray[np.float32], NDArray[np.int64]]  # distances, positions

_QUERIES_AT_ONCE = 4096
_LARGE = 1 << 22  # bytes of codes
_CANDIDATES_AT_ONCE = 1 << 21
_COUNTED_FROM = 20_000  # codes; fewer are searched before the loops would be compiled
_PLAIN_BELOW, _PLAIN_BYTES = 100_000, 6  # plain codes, fewer or shorter: many ties or little to gain
_MOST_CANDIDATES = 1 << 14  # measuring more one by one costs as much as measuring all rows by table
_SCAN_EVERYTHING_BELOW = 2048  # rows; fewer are measured exactly straight away
MOST_BITS_OF_FAST_SCAN = 1024  # the sums of more groups overflow its 16-bit accumulators


def sign_quantiser(n_bytes: int, bits: int) -> Any:
    """A FAISS `IndexPQ` whose codes are packed signs: its centroids are all sign patterns of `bits` bits."""
    import faiss

    groups = 8 * n_bytes // bits
    quantiser = faiss.IndexPQ(8 * n_bytes, groups, bits, faiss.METRIC_INNER_PRODUCT)
    faiss.copy_array_to_vector(sign_centroids(groups, bits), quantiser.pq.centroids)
    quantiser.is_trained = True
    return quantiser


def sign_centroids(groups: int, bits: int) -> NDArray[np.float32]:
    """All sign patterns of `bits` bits, little-endian, once for each group, as FAISS expects them: one flat array."""
    patterns = 2.0 * (np.arange(2**bits)[:, None] >> np.arange(bits) & 1) - 1
    return np.tile(patterns.astype(np.float32), (groups, 1)).ravel()


def build_fast_scan(rows: NDArray[np.uint8]) -> Any:
    """A FAISS `IndexPQFastScan` over packed codes (n, n_bytes)."""
    import faiss

    quantiser = sign_quantiser(rows.shape[1], 4)
    quantiser.add_sa_codes(np.ascontiguousarray(rows))
    fast_scan: Any = faiss.IndexPQFastScan(quantiser)
    fast_scan.orig_codes = None  # it would point into `quantiser`, which ends here
    del quantiser
    if rows.nbytes >= _LARGE:
        return_freed_memory()
    return fast_scan


def return_freed_memory() -> None:
    """Give back what glibc's malloc keeps of FAISS's temporary copy of the codes; elsewhere there is nothing to do."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def nearest(segment: Segment, batch: QueryBatch, k: int) -> Results:
    """The k nearest of a segment, exactly: distances and positions (n, min(k, len)), sorted by both."""
    k = min(k, len(segment))
    if k == 0 or len(batch) == 0:
        return np.empty((len(batch), k), np.float32), np.empty((len(batch), k), np.int64)
    if len(batch) <= _QUERIES_AT_ONCE:
        return _nearest_block(segment, batch, k)
    blocks = [batch.select(slice(start, start + _QUERIES_AT_ONCE)) for start in range(0, len(batch), _QUERIES_AT_ONCE)]
    parts = [_nearest_block(segment, block, k) for block in blocks]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _nearest_block(segment: Segment, batch: QueryBatch, k: int) -> Results:
    groups = segment.groups
    codes = segment if groups is None else groups.codes
    if k <= len(codes) // 4 and _counts(codes, batch):
        return codes.counted.nearest(batch, k, groups)
    if groups is not None:
        found, numbers = _nearest_by_scan(codes, batch, min(k, len(codes)))
        return split_keys(groups.nearest_members(found, numbers, k))
    return _nearest_by_scan(segment, batch, k)


def _nearest_by_scan(segment: Segment, batch: QueryBatch, k: int) -> Results:
    if batch.packed_signs is not None and (len(segment) < _PLAIN_BELOW or segment.rows.shape[1] < _PLAIN_BYTES):
        return _nearest_plain(segment.rows, batch.packed_signs, batch.plain_distances(), k)
    n_candidates = batch.candidates(k, len(segment))
    if batch.packed_signs is not None:
        n_candidates *= 2  # plain distances tie, and all ties of the k-th must be seen
    if not _fast_scan_pays(segment, n_candidates):
        return split_keys(nearest_of_all(segment.rows, batch, k))
    keys, unseen = _scan(segment, batch, n_candidates)
    keys = smallest(keys, k)
    kth = key_distances(keys[:, -1])
    unproven = np.flatnonzero(~(unseen > kth))  # a query of zeros has no scale to quantise on: NaN proves nothing
    if batch.packed_signs is not None:
        found, positions = split_keys(keys)
        if len(unproven):
            signs = batch.packed_signs[unproven]
            found[unproven], positions[unproven] = _nearest_plain(segment.rows, signs, batch.plain_distances(), k)
        return found, positions
    everything = _within_each(segment, batch.select(unproven), kth[unproven], 8 * n_candidates)
    for row, near in zip(unproven, everything, strict=True):
        keys[row] = near[:k]
    return split_keys(keys)


def within(segment: Segment, batch: QueryBatch, radius: float) -> list[Results]:
    """Everything at distance ≤ radius of each query: distances and positions, sorted by both."""
    if len(batch) == 0:
        return []
    groups = segment.groups
    if groups is not None:
        return [split_keys(groups.all_members(*each)) for each in within(groups.codes, batch, radius)]
    if _counts(segment, batch):
        keys = segment.counted.within(batch, np.full(len(batch), radius))
    elif batch.packed_signs is not None:
        keys = _within_plain(segment.rows, batch.packed_signs, batch.plain_distances(), radius)
    else:
        keys = _within_each(segment, batch, np.full(len(batch), radius), 1024)
    return [split_keys(each) for each in keys]


def _counts(segment: Segment, batch: QueryBatch) -> bool:
    """Whether compiled loops (`index.counting`) search this segment."""
    return len(segment) >= _COUNTED_FROM and counting.available() and counting.suits(batch)


def scan_candidates(segment: Segment, batch: QueryBatch, n_candidates: int) -> NDArray[np.int64]:
    """Positions (n, ≤ n_candidates) that the fast pass ranks first, without proof."""
    if not _fast_scan_pays(segment, n_candidates):
        return split_keys(nearest_of_all(segment.rows, batch, n_candidates))[1]
    return segment.fast_scan.search(batch.scaled()[0], n_candidates)[1]


def coarse_to_fine(segment: Segment, short: Segment, batch: QueryBatch, k: int, n_candidates: int) -> Results:
    """Approximate: the best candidates by the first bits (`short`), then the k nearest of them by all bits."""
    n_short = 8 * short.rows.shape[1]
    vectors = batch.vectors[:, :n_short]
    positions = scan_candidates(short, QueryBatch(vectors, np.zeros(len(batch)), None), max(k, n_candidates))
    return split_keys(smallest(exact_keys(segment.rows, batch, positions), min(k, len(segment))))


def _fast_scan_pays(segment: Segment, n_candidates: int) -> bool:
    n_items, n_bytes = segment.rows.shape
    return n_items > max(_SCAN_EVERYTHING_BELOW, 4 * n_candidates) and 8 * n_bytes <= MOST_BITS_OF_FAST_SCAN


def _scan(segment: Segment, batch: QueryBatch, n_candidates: int) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
    """Keys (n, K) of the candidates of the fast pass, and the least distance an item outside them can have (n,)."""
    vectors, scales = batch.scaled()
    scores, positions = segment.fast_scan.search(vectors, n_candidates)
    # FAISS leaves out items at its lowest score, -Σ|v|, and then has fewer than K.
    last = np.where(positions[:, -1] < 0, -batch.sizes(), scores[:, -1] * scales)
    # Rounded like the distances themselves: whatever is farther than this stays farther, or equal, as a float32.
    unseen = ((batch.offsets - (last + batch.scan_error())) / 2).astype(np.float32)
    return exact_keys(segment.rows, batch, positions), unseen


def _within_each(
    segment: Segment, batch: QueryBatch, radii: NDArray[Any], n_candidates: int
) -> list[NDArray[np.uint64]]:
    """Sorted keys of everything within each query's radius: ever more candidates, and at last all rows."""
    near: dict[int, NDArray[np.uint64]] = {}
    while len(near) < len(batch) and n_candidates <= _MOST_CANDIDATES and _fast_scan_pays(segment, n_candidates):
        pending = np.array([i for i in range(len(batch)) if i not in near])
        at_once = max(1, _CANDIDATES_AT_ONCE // n_candidates)
        for rows in (pending[start : start + at_once] for start in range(0, len(pending), at_once)):
            keys, unseen = _scan(segment, batch.select(rows), n_candidates)
            for row, row_keys in zip(rows[unseen > radii[rows]], keys[unseen > radii[rows]], strict=True):
                near[int(row)] = np.sort(row_keys[key_distances(row_keys) <= radii[row]])
        n_candidates *= 8
    for i in range(len(batch)):
        if i not in near:
            near[i] = all_within(segment.rows, batch.select(slice(i, i + 1)), radii[i])
    return [near[i] for i in range(len(batch))]


def _nearest_plain(rows: NDArray[Any], packed_signs: NDArray[Any], distance_of: NDArray[np.float32], k: int) -> Results:
    """By counting bits: FAISS's counting and heap variants both keep the first rows among equal distances."""
    import faiss

    counters = k * (8 * rows.shape[1] + 1)  # what the counting variant holds for each query
    variant, at_once = ("mc", (1 << 23) // counters) if counters < 1 << 18 else ("hc", len(packed_signs))
    blocks = [packed_signs[start : start + at_once] for start in range(0, len(packed_signs), at_once)]
    parts = [faiss.knn_hamming(np.ascontiguousarray(block), rows, k, variant=variant) for block in blocks]
    n_different = np.concatenate([part[0] for part in parts])
    return distance_of[n_different], np.concatenate([part[1] for part in parts]).astype(np.int64)


def _within_plain(
    rows: NDArray[Any], packed_signs: NDArray[Any], distance_of: NDArray[np.float32], radius: float
) -> list[NDArray[np.uint64]]:
    import faiss

    range_search: Any = vars(faiss)["hamming_range_search"]  # FAISS's type stubs do not know it
    n_queries, packed_signs = len(packed_signs), np.ascontiguousarray(packed_signs)
    first_outside = int(np.searchsorted(distance_of, np.float64(radius), side="right"))
    result = faiss.RangeSearchResult(n_queries)
    range_search(
        faiss.swig_ptr(packed_signs), faiss.swig_ptr(rows), n_queries, len(rows), first_outside, rows.shape[1], result
    )
    limits = faiss.rev_swig_ptr(result.lims, n_queries + 1).astype(np.int64)
    if limits[-1] == 0:
        return [np.empty(0, np.uint64)] * n_queries
    n_different = faiss.rev_swig_ptr(result.distances, int(limits[-1])).astype(np.int64)
    positions = faiss.rev_swig_ptr(result.labels, int(limits[-1])).astype(np.int64)
    keys = make_keys(distance_of[n_different], positions)
    return [np.sort(keys[first:last]) for first, last in itertools.pairwise(limits)]
