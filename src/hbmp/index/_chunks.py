"""Multi-index hashing with weights: codes found by the values of their 16-bit chunks.

    starts   (n_chunks, 65537)   where the items with each value of a chunk begin
    items    (n_chunks, n)       positions, sorted by the value of the chunk

The chunks of a near code are near. For each query the values of every chunk are visited in order of their cost, the
chunk whose items are fewest first; all items with such a value are measured exactly. What has not been met costs at
least as much as the cheapest unvisited values of all chunks together, which is the proof of the answer. Where the proof
takes more work than scanning all codes, the query is left to the scan.

The idea is of Norouzi, Punjani & Fleet, "Fast exact search in Hamming space with multi-index hashing", 2014; uneven
thresholds for the chunks are of Qin et al., "GPH: similarity search in Hamming space", 2018. The weights need neither
be equal nor positive: flipping bit k away from its better value costs |α_k q_k|.
"""

from __future__ import annotations

import importlib.util
import threading

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.index._query import QueryBatch

AVAILABLE = importlib.util.find_spec("numba") is not None
_VALUES = 1 << 16
_SAMPLE, _SAMPLE_K = 32, 10
_MEASURED_FOR_A_SCAN = 1 / 32  # of the codes: measuring as many one by one takes as long as scanning all
_BUDGET = 1 / 100  # of the codes: what a query may measure before it is left to the scan
_PAYS_BELOW = 0.7  # of the time of a scan
_TRIED_FIRST = 16  # queries of a batch that show whether the others are worth trying
_SHORTEST_REST, _LONGEST_REST = 64, 4096  # queries that go straight to the scan after failures


class Chunks:
    """The chunk tables of packed codes (n, n_bytes)."""

    def __init__(self, rows: NDArray[np.uint8]):
        n_items, n_bytes = rows.shape
        self.rows = rows
        self.starts = np.zeros(((n_bytes + 1) // 2, _VALUES + 1), np.uint32)
        self.items = np.empty((len(self.starts), n_items), np.uint32)
        for chunk in range(len(self.starts)):
            values = rows[:, 2 * chunk].astype(np.uint16)
            if 2 * chunk + 1 < n_bytes:
                values |= rows[:, 2 * chunk + 1].astype(np.uint16) << 8
            np.cumsum(np.bincount(values, minlength=_VALUES), out=self.starts[chunk, 1:])
            self.items[chunk] = np.argsort(values, kind="stable")
        # Bits that no code has, such as those after the last, are never flipped.
        self._n_bits = 8 * n_bytes - 8 + max(1, int(np.bitwise_or.reduce(rows[:, -1])).bit_length())
        self._resting, self._rest = 0, _SHORTEST_REST
        self._lock = threading.Lock()

    @classmethod
    def where_they_pay(cls, rows: NDArray[np.uint8]) -> Chunks | None:
        """The tables, or None where the neighbours of a sample of the codes are too far or too many to be proven."""
        chunks = cls(rows)
        sample = hamming.unpack(rows[:: max(1, len(rows) // _SAMPLE)][:_SAMPLE], 8 * rows.shape[1])
        batch = QueryBatch.prepare(sample, np.ones(sample.shape[1]))
        keys, proven = np.empty((len(batch), _SAMPLE_K), np.uint64), np.zeros(len(batch), bool)
        return chunks if chunks._run(batch, _SAMPLE_K, keys, proven, slice(None)) < _PAYS_BELOW else None

    @property
    def nbytes(self) -> int:
        """Bytes of the tables; the codes are the segment's own."""
        return self.starts.nbytes + self.items.nbytes

    def search(self, batch: QueryBatch, k: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Sorted keys (n, k), and for which of the queries (n,) they are proven; the other rows mean nothing."""
        keys, proven = np.empty((len(batch), k), np.uint64), np.zeros(len(batch), bool)
        if self._rests(len(batch)):
            return keys, proven
        first = slice(0, _TRIED_FIRST)
        if self._run(batch, k, keys, proven, first) < _PAYS_BELOW:
            self._rest = _SHORTEST_REST
            self._run(batch, k, keys, proven, slice(_TRIED_FIRST, None))
        else:
            self._resting = self._rest * len(proven[first])
            self._rest = min(2 * self._rest, _LONGEST_REST)
        return keys, proven

    def _rests(self, n_queries: int) -> bool:
        with self._lock:
            self._resting -= n_queries
            return self._resting + n_queries > 0

    def _run(self, batch: QueryBatch, k: int, keys: NDArray, proven: NDArray, some: slice) -> float:
        """Search for some of the queries; returns the time it took with the scans that are left, in times of a scan."""
        from hbmp.index._kernels import search_chunks

        n_items, work = len(self.rows), np.zeros(len(proven[some]), np.int64)
        search_chunks(
            self.rows, self._n_bits, self.starts, self.items, batch.vectors[some], batch.offsets[some], k,
            int(n_items * _BUDGET) + 256, keys[some], proven[some], work,
        )  # fmt: skip
        if len(work) == 0:
            return 0.0
        return float(work.mean() / (n_items * _MEASURED_FOR_A_SCAN) + 1 - proven[some].mean())
