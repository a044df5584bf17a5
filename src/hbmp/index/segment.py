"""A part of an index that never changes: packed codes sorted by id, and structures built from them on first use.

An index is a tuple of segments. Adding makes a new segment and a new tuple; a search keeps the tuple it started with,
so it needs no lock and sees either all of an addition or nothing of it. Segments of like size are merged as they come,
the way a binary counter carries, so there are about log n of them and every code is copied about log n times.

Because a segment is sorted by id, the order of positions is the order of ids, and ties by position are ties by id.
"""

from __future__ import annotations

import mmap
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp import hamming

if TYPE_CHECKING:
    from hbmp.index.counting import CountedCodes
    from hbmp.index.grouped import Groups
    from hbmp.index.inverted import InvertedLists

_PREFIXES_KEPT = 2
_LARGE = 1 << 20  # bytes
_GROUPED_FROM = 4096  # codes


def room_for(n_items: int, n_bytes: int) -> NDArray[np.uint8]:
    """An array for packed codes, from the operating system where it is large: malloc would keep what merging frees."""
    if n_items * n_bytes < _LARGE:
        return np.empty((n_items, n_bytes), np.uint8)
    memory = mmap.mmap(-1, n_items * n_bytes, access=mmap.ACCESS_COPY)
    return np.frombuffer(memory, np.uint8).reshape(n_items, n_bytes)


class Segment:
    """Packed codes `rows` (n, n_bytes) and their ascending `ids`: an array, or the first of n consecutive numbers."""

    def __init__(self, rows: NDArray[np.uint8], ids: NDArray[Any] | int, inverted: InvertedLists | None = None):
        self.rows = rows
        self.ids = ids
        self.inverted = inverted
        self.distinct = False  # no code repeats
        self.brief = False  # made for one search: building more than a scan would not pay
        self._fast_scan: Any = None
        self._counted: CountedCodes | None = None
        self._groups: Any = None  # Groups, or False: looked for and not worth having
        self._prefixes: dict[int, Segment] = {}
        self._lock = threading.Lock()

    @classmethod
    def sorted(cls, rows: NDArray[np.uint8], ids: NDArray[np.int64]) -> Segment:
        """From rows in any order; consecutive ids are kept as their first, others in the narrowest type."""
        if len(ids) and np.any(ids[1:] < ids[:-1]):
            order = np.argsort(ids, kind="stable")
            rows, ids = rows[order], ids[order]
        if len(ids) and ids[-1] - ids[0] == len(ids) - 1:
            return cls(rows, int(ids[0]))
        narrow = len(ids) == 0 or ids[-1] <= np.iinfo(np.int32).max
        return cls(rows, ids.astype(np.int32 if narrow else np.int64))

    @classmethod
    def merged(cls, parts: list[Segment]) -> Segment:
        """One segment with the codes of several."""
        rows = room_for(sum(len(part) for part in parts), parts[0].rows.shape[1])
        np.concatenate([part.rows for part in parts], out=rows)
        first = parts[0].ids
        if isinstance(first, int):
            starts = first + np.cumsum([0, *(len(part) for part in parts[:-1])])
            if all(isinstance(part.ids, int) and part.ids == start for part, start in zip(parts, starts, strict=True)):
                return cls(rows, first)
        return cls.sorted(rows, np.concatenate([part.all_ids() for part in parts]))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes held: codes, ids and whatever has been built for searching."""
        ids = 0 if isinstance(self.ids, int) else self.ids.nbytes
        fast_scan = 0 if self._fast_scan is None else self._fast_scan.codes.size()
        counted = 0 if self._counted is None else self._counted.nbytes
        inverted = 0 if self.inverted is None else self.inverted.nbytes
        with self._lock:
            built = [*self._prefixes.values(), *([self._groups] if self._groups else [])]
        return self.rows.nbytes + ids + fast_scan + counted + inverted + sum(part.nbytes for part in built)

    @property
    def fast_scan(self) -> Any:
        """The FAISS fast scan over these rows, built at the first use (15 ms a million codes)."""
        from hbmp.index.scan import build_fast_scan

        with self._lock:
            if self._fast_scan is None:
                self._fast_scan = build_fast_scan(self.rows)
            return self._fast_scan

    @property
    def counted(self) -> CountedCodes:
        """The codes as the compiled loops read them, made at the first use."""
        from hbmp.index.counting import CountedCodes

        with self._lock:
            if self._counted is None:
                self._counted = CountedCodes(self.rows, self.brief)
            return self._counted

    @property
    def groups(self) -> Groups | None:
        """The distinct codes where many repeat, found at the first use (0.2 s per million codes)."""
        from hbmp.index.grouped import Groups

        with self._lock:
            if self._groups is None:
                worthwhile = not self.distinct and not self.brief and len(self) >= _GROUPED_FROM
                self._groups = (Groups.of(self.rows) if worthwhile else None) or False
            return self._groups or None

    def prefix(self, n_bits: int) -> Segment:
        """The same items by their first n_bits bits; the most recently used ones are kept."""
        with self._lock:
            if n_bits not in self._prefixes:
                rows = np.array(self.rows[:, : hamming.bytes_for(n_bits)], order="C")
                if n_bits % 8:
                    rows[:, -1] &= (1 << n_bits % 8) - 1
                while len(self._prefixes) >= _PREFIXES_KEPT:
                    self._prefixes.pop(next(iter(self._prefixes)))
                self._prefixes[n_bits] = Segment(rows, self.ids)
                self._prefixes[n_bits].brief = self.brief
            return self._prefixes[n_bits]

    def last_id(self) -> int:
        """The largest id; the segment must not be empty."""
        return self.ids + len(self) - 1 if isinstance(self.ids, int) else int(self.ids[-1])

    def all_ids(self) -> NDArray[np.int64]:
        """The ids of all items, ascending."""
        if isinstance(self.ids, int):
            return np.arange(self.ids, self.ids + len(self), dtype=np.int64)
        return self.ids.astype(np.int64)

    def ids_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ids of positions; -1 stays -1."""
        if isinstance(self.ids, int):
            if self.ids == 0:
                return positions
            ids = positions + self.ids
        else:
            ids = self.ids[positions].astype(np.int64)
        return np.where(positions < 0, np.int64(-1), ids)

    def positions_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions (≥ 0) of those of the ids that are here, in the order given; -1 for the others."""
        if isinstance(self.ids, int):
            inside = (ids >= self.ids) & (ids < self.ids + len(self))
            return np.where(inside, ids - self.ids, -1)
        # Comparing in the narrow type of the stored ids spares a wide copy of them; what does not fit is not here.
        fits = (ids >= 0) & (ids <= np.iinfo(self.ids.dtype).max)
        wanted = np.where(fits, ids, 0).astype(self.ids.dtype)
        places = np.minimum(np.searchsorted(self.ids, wanted), len(self) - 1)
        return np.where(fits & (self.ids[places] == wanted), places, -1)

    def take(self, positions: NDArray[np.int64]) -> Segment:
        """Only the items at these ascending positions, without inverted lists."""
        return Segment.sorted(self.rows[positions], self.ids_at(positions))


def append(segments: tuple[Segment, ...], new: Segment) -> tuple[Segment, ...]:
    """Segments with one more at the end; adjacent ones of similar size are merged. Inverted lists are not merged."""
    together = [new]
    rest = list(segments)
    size = len(new)
    while rest and rest[-1].inverted is None and len(rest[-1]) <= 2 * size:
        together.insert(0, rest.pop())
        size += len(together[0])
    return (*rest, new if len(together) == 1 else Segment.merged(together))


def only(segments: tuple[Segment, ...], ids: NDArray[np.int64]) -> tuple[Segment, ...]:
    """Segments of just the items with these ids; ids that are nowhere are ignored."""
    ids = np.unique(ids)
    chosen = []
    for segment in segments:
        positions = segment.positions_of(ids)
        if (positions >= 0).any():
            few = segment.take(positions[positions >= 0])
            few.brief = True
            chosen.append(few)
    return tuple(chosen)


def without(segments: tuple[Segment, ...], ids: NDArray[np.int64]) -> tuple[Segment, ...]:
    """Segments without the items with these ids; inverted lists are kept."""
    ids = np.unique(ids)
    left = []
    for segment in segments:
        keep = np.ones(len(segment), bool)
        positions = segment.positions_of(ids)
        keep[positions[positions >= 0]] = False
        if keep.all():
            left.append(segment)
        elif keep.any():
            smaller = segment.take(np.flatnonzero(keep))
            if segment.inverted is not None:
                smaller.inverted = segment.inverted.narrowed(smaller.rows, keep)
            left.append(smaller)
    return tuple(left)


def as_ids(ids: ArrayLike) -> NDArray[np.int64]:
    """Ids as int64 (n,)."""
    ids = np.asarray(ids)
    if ids.size == 0:
        return np.empty(0, np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or ids.max() > np.iinfo(np.int64).max:
        raise ValueError(f"Ids must be one row of 64-bit integers, found {ids.dtype} of shape {ids.shape}.")
    return ids.astype(np.int64)


def new_ids(ids: ArrayLike, n_codes: int) -> NDArray[np.int64]:
    """Ids for n new codes: as many, none negative, none twice."""
    ids = as_ids(ids)
    if len(ids) != n_codes:
        raise ValueError(f"{n_codes} codes need {n_codes} ids, found {len(ids)}.")
    if len(ids) and ids.min() < 0:
        raise ValueError(f"Ids must not be negative, found {ids.min()}: -1 marks a missing result.")
    in_order = np.sort(ids)
    twice = in_order[1:][in_order[1:] == in_order[:-1]]
    if len(twice):
        raise ValueError(f"Ids must be distinct, found {twice[0]} more than once.")
    return ids
