"""A batch of queries in the form the scans want it.

    v   vectors   (n, 8 * n_bytes)   α∘q, zero on pad bits
    o   offsets   (n,)               Σ_k α_k |q_k|
    E   error     (n,)               how far the score of FAISS's 8-bit tables can be off

The distance to a code u is (o - v·u) / 2, so nearest means largest v·u.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.exact_terms import exact_terms

_FLOAT32_SLACK = 4e-6  # relative; covers the float32 arithmetic of FAISS and the rounding of distances to float32

_TINY = float(np.finfo(np.float32).tiny)


class SignTerms(NamedTuple):
    """What the terms of all sign queries have in common: v = α∘q for q = 1, o, and whether the distance is plain."""

    vector: NDArray[np.float64]  # (n_bits,)
    offset: float
    plain: bool  # weights are equal, and large enough that other numbers of bits are other float32 distances

    @classmethod
    def of(cls, bit_weights: NDArray[np.float64]) -> SignTerms:
        """From checked weights."""
        vectors, offsets = exact_terms(np.ones((1, len(bit_weights))), bit_weights)
        plain = bool(bit_weights[0] >= _TINY and (bit_weights == bit_weights[0]).all())
        return cls(vectors[0], float(offsets[0]), plain)


@dataclass(frozen=True)
class QueryBatch:
    """Queries ready to scan with: `packed_signs` is set where the distance is plain Hamming times one weight."""

    vectors: NDArray[np.float64]  # (n, 8 * n_bytes), zero on pad bits
    offsets: NDArray[np.float64]  # (n,)
    packed_signs: NDArray[np.uint8] | None  # (n, n_bytes)

    @classmethod
    def prepare(
        cls, queries: NDArray[Any], bit_weights: NDArray[np.float64], of_signs: SignTerms | None = None
    ) -> QueryBatch:
        """From checked queries (n, n_bits), signs or scores, and what is known of the weights."""
        of_signs = SignTerms.of(bit_weights) if of_signs is None else of_signs
        if queries.dtype == np.int8:
            products, offsets = queries * of_signs.vector, np.full(len(queries), of_signs.offset)
        else:
            products, offsets = exact_terms(queries, bit_weights)
        n_bits, vectors = queries.shape[1], products
        if n_bits % 8:
            vectors = np.zeros((len(queries), 8 * hamming.bytes_for(n_bits)))
            vectors[:, :n_bits] = products
        plain = of_signs.plain and (queries.dtype == np.int8 or (np.abs(queries) == 1).all())
        return cls(vectors, offsets, np.packbits(queries > 0, axis=1, bitorder="little") if plain else None)

    def __len__(self) -> int:
        return len(self.vectors)

    def select(self, rows: slice | NDArray[Any]) -> QueryBatch:
        """Some of the queries."""
        signs = None if self.packed_signs is None else self.packed_signs[rows]
        return QueryBatch(self.vectors[rows], self.offsets[rows], signs)

    def weighted(self) -> QueryBatch:
        """The same queries without the shortcut for plain Hamming distance."""
        return replace(self, packed_signs=None)

    def plain_distances(self) -> NDArray[np.float32]:
        """Distance for 0, 1, … differing bits where the batch is plain."""
        return (np.arange(self.vectors.shape[1] + 1) * abs(self.vectors[0, 0])).astype(np.float32)

    def sizes(self) -> NDArray[np.float64]:
        """Σ_k |v_k| of each query: no score is larger."""
        return np.abs(self.vectors).sum(axis=1)

    def scan_error(self) -> NDArray[np.float64]:
        """E: half a quantisation step for each group of four bits, and float32 arithmetic."""
        spans = 2 * np.abs(self.vectors).reshape(len(self), -1, 4).sum(axis=2)  # (n, groups)
        return 0.5 * spans.shape[1] * spans.max(axis=1) / 255 + _FLOAT32_SLACK * self.sizes()

    def candidates(self, k: int, n_items: int) -> int:
        """K such that nearly every query can be proven: k times the growth of the tail of distances over 2E.

        Distances of unrelated codes are about normal with deviation σ = ‖v‖/2, and at the k-th of n items their tail
        grows by exp(zδ/σ) over a stretch δ, z² = 2 log(n/k).
        """
        deviations = np.sqrt(np.square(self.vectors).sum(axis=1)) / 2
        tail = np.sqrt(2 * np.log(max(n_items / k, 2.0)))
        growth = tail * self.scan_error() / np.maximum(deviations, np.finfo(float).tiny)
        most = float(np.sort(growth)[int(0.9 * (len(growth) - 1))])
        return int(min(1.5 * k * np.exp(min(most, 20.0)) + 16, max(4096, 8 * k)))

    def scaled(self) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Vectors in float32 of size ½ to 1, so that no scale of weights overflows, and the factors (n,) back."""
        _, exponents = np.frexp(self.sizes())
        scales = np.ldexp(1.0, exponents)
        return np.ascontiguousarray(self.vectors / scales[:, None], dtype=np.float32), scales
