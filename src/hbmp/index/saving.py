"""Segments as named arrays for the index file, and as a file of plain FAISS."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp.index import file as index_file
from hbmp.index.segment import Segment

_FAISS_CANDIDATES = 8  # per result: plain FAISS re-ranks that many times k, without the proof `hbmp.Index` gives


def describe(segment: Segment, name: str, arrays: dict[str, NDArray]) -> dict[str, Any]:
    """The header entry of a segment; its arrays are put into `arrays` under names that start with `name`."""
    arrays[f"{name}.rows"] = segment.rows
    entry: dict[str, Any] = {"name": name, "first_id": None, "inverted": None}
    if isinstance(segment.ids, int):
        entry["first_id"] = segment.ids
    else:
        arrays[f"{name}.ids"] = segment.ids
    if segment.inverted is not None:
        arrays[f"{name}.lists"] = segment.inverted.list_numbers()
        arrays[f"{name}.centroids"] = segment.inverted.centroids
        entry["inverted"] = {
            "probes": list(segment.inverted.probes.items()),
            "recalls": list(segment.inverted.recalls.items()),
        }
    return entry


def restore(entry: dict[str, Any], arrays: dict[str, NDArray], bit_weights: NDArray[np.float64]) -> Segment:
    """The segment of a header entry."""
    name = entry["name"]
    rows = arrays[f"{name}.rows"]
    ids = arrays[f"{name}.ids"] if entry["first_id"] is None else int(entry["first_id"])
    if entry["inverted"] is None:
        return Segment(rows, ids)
    from hbmp.index.inverted import InvertedLists

    measured = {key: dict(pairs) for key, pairs in entry["inverted"].items()}
    inverted = InvertedLists(rows, arrays[f"{name}.lists"], arrays[f"{name}.centroids"], bit_weights, **measured)
    return Segment(rows, ids, inverted)


def write_faiss(path: str | os.PathLike, segment: Segment, bit_weights: NDArray[np.float64]) -> None:
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
