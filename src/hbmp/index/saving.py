"""Segments as named arrays for the index file, checked when they come back, and as a file of plain FAISS."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.index import file as index_file
from hbmp.index.file import Damaged, is_whole
from hbmp.index.segment import Segment

if TYPE_CHECKING:
    from hbmp.index.inverted import InvertedLists

_FAISS_CANDIDATES = 8  # per result: plain FAISS re-ranks that many times k, without the proof `hbmp.Index` gives


def describe(segment: Segment, name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The header entry of a segment; its arrays are put into `arrays` under names that start with `name`."""
    arrays[f"{name}.rows"] = segment.rows
    entry: dict[str, Any] = {"name": name, "first_id": None, "inverted": None}
    if isinstance(segment.ids, int):
        entry["first_id"] = segment.ids
    else:
        arrays[f"{name}.ids"] = segment.ids
    if segment.inverted is not None:
        arrays[f"{name}.lists"] = segment.inverted.list_numbers
        arrays[f"{name}.centroids"] = segment.inverted.centroids
        entry["inverted"] = {
            "probes": list(segment.inverted.probes.items()),
            "recalls": list(segment.inverted.recalls.items()),
        }
    return entry


def restore(
    header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> tuple[NDArray[np.float64], int, tuple[Segment, ...]]:
    """Bit weights, next id and segments of a file; `Damaged` where header and arrays cannot belong together."""
    n_bits: Any
    next_id: Any
    n_bits, next_id, entries = (header.get(key) for key in ("n_bits", "next_id", "segments"))
    if not is_whole(n_bits, 2**31) or n_bits == 0 or not is_whole(next_id) or not isinstance(entries, list):
        raise Damaged("its header does not describe an index")
    bit_weights = expect(arrays, "bit_weights", "<f8", (n_bits,))
    if not np.isfinite(bit_weights).all():
        raise Damaged("a bit weight is not finite")
    segments = tuple(_restore_segment(entry, arrays, bit_weights) for entry in entries)
    if any(len(segment) and segment.last_id() >= next_id for segment in segments):
        raise Damaged("it holds ids that it claims not to have given yet")
    return bit_weights, next_id, segments


def expect(arrays: dict[str, NDArray[Any]], name: str, dtypes: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """The array of that name if it has one of the dtypes and the shape (None: any length)."""
    array = arrays.get(name)
    if array is None:
        raise Damaged(f"the array {name!r} is missing")
    lengths_fit = len(array.shape) == len(shape) and all(
        wanted in (None, found) for found, wanted in zip(array.shape, shape, strict=True)
    )
    if array.dtype.newbyteorder("<").str not in dtypes.split() or not lengths_fit:
        raise Damaged(f"the array {name!r} is {array.dtype} of shape {array.shape}")
    return array


def _restore_segment(entry: Any, arrays: dict[str, NDArray[Any]], bit_weights: NDArray[np.float64]) -> Segment:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise Damaged("a segment has no name")
    name, n_bits = entry["name"], len(bit_weights)
    rows = expect(arrays, f"{name}.rows", "|u1", (None, hamming.bytes_for(n_bits)))
    if n_bits % 8 and (rows[:, -1] >> n_bits % 8).any():
        raise Damaged("a code has bits after its last")
    segment = Segment(rows, _restore_ids(entry.get("first_id"), f"{name}.ids", len(rows), arrays))
    if entry.get("inverted") is not None:
        segment.inverted = _restore_lists(entry["inverted"], name, segment, arrays, bit_weights)
    return segment


def _restore_ids(first_id: Any, name: str, n_items: int, arrays: dict[str, NDArray[Any]]) -> NDArray[Any] | int:
    if first_id is not None:
        if not is_whole(first_id, 2**63 - 1 - n_items):
            raise Damaged(f"a first id cannot be {first_id!r}")
        return first_id
    ids = expect(arrays, name, "<i4 <i8", (n_items,))
    if n_items and (ids[0] < 0 or (ids[1:] <= ids[:-1]).any()):
        raise Damaged("ids are negative or out of order")
    return ids


def _restore_lists(
    measured: Any, name: str, segment: Segment, arrays: dict[str, NDArray[Any]], bit_weights: NDArray[np.float64]
) -> InvertedLists:
    from hbmp.index.inverted import InvertedLists

    numbers = expect(arrays, f"{name}.lists", "<u2", (len(segment),))
    centroids = expect(arrays, f"{name}.centroids", "<f4", (None, 8 * segment.rows.shape[1]))
    if len(centroids) == 0 or (len(numbers) and int(numbers.max()) >= len(centroids)):
        raise Damaged("a code is in a list that does not exist")
    if not np.isfinite(centroids).all():
        raise Damaged("a centroid is not finite")
    try:
        probes = {int(k): int(count) for k, count in measured["probes"]}
        recalls = {int(k): float(value) for k, value in measured["recalls"]}
    except (KeyError, TypeError, ValueError, OverflowError):
        raise Damaged("the measurements of its lists cannot be read") from None
    if not probes or min(probes.values()) < 1:
        raise Damaged("it does not hold how many lists to probe")
    return InvertedLists(segment.rows, numbers, centroids, bit_weights, probes=probes, recalls=recalls)


def write_faiss(path: str | os.PathLike[str], segment: Segment, bit_weights: NDArray[np.float64]) -> None:
    """Weights, fast scan, exact re-ranking and ids as one FAISS index.

    The weights are a linear map before the index, so queries go in as plain signs or scores in float32; what comes out
    is Σ_k α_k q_k u_k, largest first.
    """
    import faiss

    from hbmp.index.scan import build_fast_scan, sign_quantiser

    n_bytes = hamming.bytes_for(len(bit_weights))
    rows = np.ascontiguousarray(segment.rows)
    fast_scan, exact = build_fast_scan(rows), sign_quantiser(n_bytes, 8)
    exact.add_sa_codes(rows)
    refined = faiss.IndexRefine(fast_scan, exact)
    refined.k_factor = _FAISS_CANDIDATES
    numbered = faiss.IndexIDMap2(sign_quantiser(n_bytes, 8))  # it insists on starting empty
    numbered.index = refined
    faiss.copy_array_to_vector(segment.all_ids(), numbered.id_map)
    numbered.construct_rev_map()
    numbered.ntotal = len(segment)
    weighting = faiss.LinearTransform(len(bit_weights), 8 * n_bytes, False)
    matrix = np.zeros((8 * n_bytes, len(bit_weights)), np.float32)
    np.fill_diagonal(matrix, bit_weights)
    faiss.copy_array_to_vector(matrix.ravel(), weighting.A)
    weighting.is_trained = True
    whole = faiss.IndexPreTransform(weighting, numbered)
    with index_file.replacing(path) as temporary:
        faiss.write_index(whole, temporary)
