"""Search by weighted Hamming distance: `Index` holds packed codes and finds the nearest, exactly by default.

    index = hbmp.Index(64, bit_weights=model.bit_weights_)
    index.add(model.transform(X))
    distances, ids = index.search(model.transform(queries), 10)

The parts: `index.segment` keeps the codes, `index.counting` and, for few codes, `index.scan` find the nearest of a
segment, `index.inverted` trades exactness for speed on large sets, `index.file` saves.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import hamming
from hbmp.index import file as index_file
from hbmp.index.exact import merge_results
from hbmp.index.query import QueryBatch, SignTerms
from hbmp.index.saving import describe, restore, write_faiss
from hbmp.index.scan import coarse_to_fine, nearest, within
from hbmp.index.segment import Segment, append, as_ids, new_ids, only, room_for, without

_KINDS = ("auto", "flat", "ivf")
_INVERTED_ABOVE = 2_000_000  # codes; below, a flat scan takes about a millisecond and nothing is missed
_PROBED_AT_MOST = 1 / 8  # of the lists: where "auto" would have to probe more, a flat scan is as fast
_ROWS_AT_ONCE = 1 << 14
_OVERSAMPLE = 50


class Index:
    """Exact search of codes by weighted Hamming distance d(q, u) = Σ_k α_k [q_k ≠ u_k].

    Results are sorted by (distance, id) and equal a brute-force search, ties included. Two options are approximate:
    inverted lists (`Index.build(kind="ivf")`) and `coarse=`. Any number of threads may search while others add.
    `hbmp.hamming` defines the distance for real-valued queries.

    Parameters
    ----------
    n_bits : int
        Length of the codes.
    bit_weights : array-like of shape (n_bits,), optional
        Weight of each bit; negative weights are allowed. All ones if omitted, which is plain Hamming distance.

    Attributes
    ----------
    n_bits : int
        Length of the codes.
    bit_weights : ndarray of shape (n_bits,)
        Weight of each bit, read-only.
    kind : {"flat", "ivf"}
        Whether the index has inverted lists.
    recall_ : dict of int to float
        Measured recall of the k nearest, by k; 1 for a flat index.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> codes = np.array([[1, 1, 1], [1, 1, -1], [-1, -1, -1]], dtype=np.int8)
    >>> index = hbmp.Index(3, bit_weights=[2.0, 1.0, 0.5]).add(codes)
    >>> distances, ids = index.search(codes[:1], 2)
    >>> ids
    array([[0, 1]])
    >>> distances
    array([[0. , 0.5]], dtype=float32)
    """

    def __init__(self, n_bits: int, bit_weights: ArrayLike | None = None):
        hamming.bytes_for(n_bits)
        self.n_bits = int(n_bits)
        weights = hamming.check_weights(np.ones(self.n_bits) if bit_weights is None else bit_weights, n_bits).copy()
        weights.flags.writeable = False
        self.bit_weights = weights
        self._of_signs = SignTerms.of(weights)
        self._segments: tuple[Segment, ...] = ()
        self._next_id = 0
        self._writing = threading.Lock()

    @classmethod
    def build(
        cls,
        codes: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        bit_weights: ArrayLike | None = None,
        kind: str = "auto",
        recall: float = 0.99,
        queries: ArrayLike | None = None,
        random_state: int = 0,
    ) -> Index:
        """Build an index from codes.

        Parameters
        ----------
        codes : array-like of shape (n, n_bits)
            Signs in {-1, +1}.
        ids : array-like of shape (n,), optional
            Distinct integers, at least 0. Row numbers if omitted.
        bit_weights : array-like of shape (n_bits,), optional
            Weight of each bit.
        kind : {"auto", "flat", "ivf"}, default="auto"
            "flat" is exact. "ivf" groups the codes and probes as many groups as reach `recall` on held-out queries.
            "auto" is "ivf" above two million codes if that saves work, else "flat".
        recall : float, default=0.99
            Recall that "ivf" must reach; `recall_` holds the measured value.
        queries : array-like of shape (n_queries, n_bits), optional
            Queries to measure the recall of "ivf" with: signs, or scores as `model.project` returns them. Give a few
            hundred that are not in the index. Without them, recall is the lower one of held-out codes as signs and as
            simulated scores.
        random_state : int, default=0
            Seed of the grouping.

        Returns
        -------
        index : Index
            Codes added to it later are searched exactly.

        Examples
        --------
        >>> import numpy as np
        >>> import hbmp
        >>> hbmp.Index.build(np.ones((3, 8), dtype=np.int8))
        Index(3 codes of 8 bits, kind='flat')
        """
        if kind not in _KINDS:
            raise LookupError(f"No kind of index called {kind!r}. There are: {', '.join(_KINDS)}.")
        if not 0 < recall <= 1:
            raise ValueError(f"The recall asked for must lie in (0, 1], found {recall}.")
        codes = hamming.check_codes(codes)
        index = cls(codes.shape[1], bit_weights).add(codes, ids)
        if len(codes) and (kind == "ivf" or (kind == "auto" and len(codes) > _INVERTED_ABOVE)):
            measured = None if queries is None else index._prepare(queries, None, None)[0]
            index._group(recall, random_state, 1.0 if kind == "ivf" else _PROBED_AT_MOST, measured)
        return index

    def _group(self, recall: float, random_state: int, most_probed: float, queries: QueryBatch | None) -> None:
        from hbmp.index.inverted import build_inverted

        (segment,) = self._segments
        inverted = build_inverted(segment, self.bit_weights, recall, random_state, most_probed, queries)
        self._segments = (Segment(segment.rows, segment.ids, inverted),)

    def __len__(self) -> int:
        return sum(len(segment) for segment in self._segments)

    def __repr__(self) -> str:
        return f"Index({len(self)} codes of {self.n_bits} bits, kind={self.kind!r})"

    @property
    def kind(self) -> str:
        """ "ivf" if there are inverted lists, else "flat"."""
        return "ivf" if any(segment.inverted for segment in self._segments) else "flat"

    @property
    def recall_(self) -> dict[int, float]:
        """Recall of the k nearest, by k, measured while building; 1 for a flat index.

        It is that of the `queries` given to `build` or, without them, of held-out codes.
        """
        recalls = [segment.inverted.recalls for segment in self._segments if segment.inverted]
        return recalls[0] if recalls else {10: 1.0, 100: 1.0}

    @property
    def nbytes(self) -> int:
        """Bytes held in memory or mapped: codes, ids, and structures built for searching so far."""
        return sum(segment.nbytes for segment in self._segments)

    def add(self, codes: ArrayLike, ids: ArrayLike | None = None) -> Index:
        """Add codes. If any code or id is invalid, nothing is added.

        Parameters
        ----------
        codes : array-like of shape (n, n_bits)
            Signs in {-1, +1}.
        ids : array-like of shape (n,), optional
            Distinct integers, at least 0, that are not in the index yet. The next free numbers if omitted.

        Returns
        -------
        self : Index
        """
        codes = hamming.check_codes(codes, self.n_bits)
        packed = room_for(len(codes), hamming.bytes_for(self.n_bits))
        for start in range(0, len(codes), _ROWS_AT_ONCE):
            block = codes[start : start + _ROWS_AT_ONCE] > 0
            packed[start : start + _ROWS_AT_ONCE] = np.packbits(block, axis=1, bitorder="little")
        return self._add_rows(packed, ids)

    def add_packed(self, packed: ArrayLike, ids: ArrayLike | None = None) -> Index:
        """Add packed codes.

        Parameters
        ----------
        packed : array-like of shape (n, ceil(n_bits / 8)), uint8
            Codes as `hbmp.hamming.pack` returns them.
        ids : array-like of shape (n,), optional
            As for `add`.

        Returns
        -------
        self : Index
        """
        packed = np.asarray(packed)
        n_bytes = hamming.bytes_for(self.n_bits)
        if packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != n_bytes:
            raise ValueError(
                f"Packed codes of {self.n_bits} bits must be uint8 of shape (n, {n_bytes}), "
                f"found {packed.dtype} of shape {packed.shape}."
            )
        if self.n_bits % 8 and (packed[:, -1] >> self.n_bits % 8).any():
            raise ValueError(f"Bits after the first {self.n_bits} must be zero in packed codes, found others set.")
        own = room_for(len(packed), n_bytes)
        own[:] = packed
        return self._add_rows(own, ids)

    def _add_rows(self, packed: NDArray[np.uint8], ids: ArrayLike | None) -> Index:
        given = None if ids is None else new_ids(ids, len(packed))
        with self._writing:
            if len(packed) == 0:
                return self
            if given is None:
                new = Segment(packed, self._next_id)
                next_id = self._next_id + len(packed)
            else:
                self._refuse_known(given)
                new = Segment.sorted(packed, given)
                next_id = max(self._next_id, int(given.max()) + 1)
            self._segments = append(self._segments, new)
            self._next_id = next_id
        return self

    def _refuse_known(self, ids: NDArray[np.int64]) -> None:
        for segment in self._segments:
            known = ids[segment.positions_of(ids) >= 0]
            if len(known):
                raise ValueError(
                    f"{len(known)} of the {len(ids)} ids are in the index already, the first is {known[0]}; "
                    "remove them before adding them again."
                )

    def remove(self, ids: ArrayLike) -> int:
        """Remove items. Each call copies the index, so remove many at once.

        Parameters
        ----------
        ids : array-like of shape (n,)
            Ids to remove; unknown ones are ignored.

        Returns
        -------
        n_removed : int
        """
        wanted = as_ids(ids)
        with self._writing:
            before = len(self)
            self._segments = without(self._segments, wanted)
            return before - len(self)

    def codes(self, ids: ArrayLike) -> NDArray[np.int8]:
        """Codes of items by id.

        Parameters
        ----------
        ids : array-like of shape (n,)
            Ids in the index. An unknown id raises LookupError.

        Returns
        -------
        codes : ndarray of shape (n, n_bits), int8
            Signs, in the order of the ids.
        """
        wanted = as_ids(ids)
        packed = np.zeros((len(wanted), hamming.bytes_for(self.n_bits)), np.uint8)
        missing = np.ones(len(wanted), bool)
        for segment in self._segments:
            positions = segment.positions_of(wanted)
            here = positions >= 0
            packed[here] = segment.rows[positions[here]]
            missing &= ~here
        if missing.any():
            raise LookupError(
                f"{missing.sum()} of the {len(wanted)} ids are not in the index, e.g. {wanted[missing][0]}."
            )
        return hamming.unpack(packed, self.n_bits)

    def search(
        self,
        queries: ArrayLike,
        k: int,
        *,
        n_bits: int | None = None,
        bit_weights: ArrayLike | None = None,
        subset: ArrayLike | None = None,
        coarse: int | None = None,
        oversample: int = _OVERSAMPLE,
        n_probe: int | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Find the k nearest items of each query.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_bits)
            Signs (integers), or scores before the sign (floating point), which rank more finely.
        k : int
            Number of results per query.
        n_bits : int, optional
            Compare only the first bits of nested codes. Queries may have all bits or only these.
        bit_weights : array-like of shape (n_bits,), optional
            Weights for this search instead of the index's own, for example `book.weights_for(16)`.
        subset : array-like of int, optional
            Search only among these ids; unknown ones are ignored.
        coarse : int, optional
            Approximate search: rank by this many first bits, then measure `oversample * k` candidates in full.
        oversample : int, default=50
            Candidates per result for `coarse`.
        n_probe : int, optional
            Number of inverted lists to probe instead of the number chosen while building.

        Returns
        -------
        distances : ndarray of shape (n_queries, k), float32
            Sorted by distance, then id; padded with infinity.
        ids : ndarray of shape (n_queries, k), int64
            Padded with -1.
        """
        k = _check_count(k, "k")
        n_probe = None if n_probe is None else _check_count(n_probe, "n_probe")
        batch, n_bits = self._prepare(queries, n_bits, bit_weights)
        segments = self._segments if subset is None else only(self._segments, as_ids(subset))
        own_metric = n_bits == self.n_bits and bit_weights is None
        coarse = None if coarse is None else self._check_prefix(coarse, n_bits)
        n_candidates = k * _check_count(oversample, "oversample")
        parts = []
        for whole in segments if len(batch) else ():
            segment = self._prefix(whole, n_bits)
            if coarse is not None:
                found, positions = coarse_to_fine(segment, whole.prefix(coarse), batch, k, n_candidates)
            elif segment.inverted is not None and own_metric:
                found, positions = segment.inverted.search(segment, batch, k, n_probe)
            else:
                found, positions = nearest(segment, batch, k)
            parts.append((found, segment.ids_at(positions)))
        return merge_results(parts, len(batch), k)

    def range_search(
        self,
        queries: ArrayLike,
        radius: float,
        *,
        n_bits: int | None = None,
        bit_weights: ArrayLike | None = None,
        subset: ArrayLike | None = None,
    ) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """Find every item within a distance of each query, always exactly.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_bits)
            As for `search`.
        radius : float
            Largest distance of a result.
        n_bits, bit_weights, subset
            As for `search`.

        Returns
        -------
        results : list of (distances, ids)
            One pair per query, sorted by distance, then id.
        """
        radius = float(radius)
        if np.isnan(radius):
            raise ValueError("The radius must be a number, found NaN.")
        batch, n_bits = self._prepare(queries, n_bits, bit_weights)
        segments = self._segments if subset is None else only(self._segments, as_ids(subset))
        parts = [within(self._prefix(segment, n_bits), batch, radius) for segment in segments]
        results = []
        for i in range(len(batch)):
            found = np.concatenate([np.empty(0, np.float32), *(part[i][0] for part in parts)])
            ids = [segment.ids_at(part[i][1]) for segment, part in zip(segments, parts, strict=True)]
            merged = np.concatenate([np.empty(0, np.int64), *ids])
            order = np.lexsort((merged, found))
            results.append((found[order], merged[order]))
        return results

    def _prepare(self, queries: ArrayLike, n_bits: int | None, bit_weights: ArrayLike | None) -> tuple[QueryBatch, int]:
        n_bits = self.n_bits if n_bits is None else self._check_prefix(n_bits, self.n_bits)
        queries = np.asarray(queries)
        if queries.ndim == 2 and queries.shape[1] == self.n_bits:
            queries = queries[:, :n_bits]
        own = bit_weights is None and n_bits == self.n_bits
        weights = self.bit_weights[:n_bits] if bit_weights is None else hamming.check_weights(bit_weights, n_bits)
        checked = hamming.check_queries(queries, n_bits)
        return QueryBatch.prepare(checked, weights, self._of_signs if own else None), n_bits

    def _check_prefix(self, n_bits: int, most: int) -> int:
        if int(n_bits) != n_bits or not 1 <= n_bits <= most:
            raise ValueError(f"A prefix of these codes has 1 to {most} bits, found {n_bits}.")
        return int(n_bits)

    def _prefix(self, segment: Segment, n_bits: int) -> Segment:
        return segment if n_bits == self.n_bits else segment.prefix(n_bits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file. A failed write leaves an earlier file as it was.

        Parameters
        ----------
        path : str or path
            The file; an earlier one is replaced.
        """
        with self._writing:
            segments, next_id = self._segments, self._next_id
        flat = [segment for segment in segments if segment.inverted is None]
        grouped = [segment for segment in segments if segment.inverted is not None]
        header: dict[str, Any] = {"n_bits": self.n_bits, "next_id": next_id, "segments": []}
        arrays = {"bit_weights": self.bit_weights}
        for number, segment in enumerate(grouped + ([Segment.merged(flat)] if flat else [])):
            header["segments"].append(describe(segment, f"segment{number}", arrays))
        index_file.write(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True, mapped: bool = False) -> Index:
        """Open a saved index.

        Parameters
        ----------
        path : str or path
            A file written by `save`, of this format or an older one.
        verify : bool, default=True
            Compare the checksum of the whole file. The header is checked in any case.
        mapped : bool, default=False
            Map the codes instead of reading them, for files larger than memory. The file must not be cut or overwritten
            while the index is in use: the operating system ends a process that reads a mapped page that no longer
            exists. `save` replaces a file as a whole and is safe.

        Returns
        -------
        index : Index
        """
        header, arrays = index_file.read(path, verify, mapped)
        with index_file.naming(path):
            bit_weights, next_id, segments = restore(header, arrays)
        index = cls(len(bit_weights), bit_weights)
        index._segments, index._next_id = segments, next_id
        return index

    def to_faiss(self, path: str | os.PathLike[str]) -> None:
        """Write a file for `faiss.read_index`, whose queries are signs or scores as float32.

        Parameters
        ----------
        path : str or path
            The file. FAISS returns inner products, which order items as the distance does.
        """
        if not self._segments:
            raise ValueError("An empty index has nothing to write for FAISS; add codes first.")
        write_faiss(path, Segment.merged(list(self._segments)), self.bit_weights)


def _check_count(count: int, name: str) -> int:
    if int(count) != count or count < 1:
        raise ValueError(f"{name} must be a whole number, at least 1, found {count}.")
    return int(count)
