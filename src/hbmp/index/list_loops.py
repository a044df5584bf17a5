"""The loop over inverted lists, see `index.inverted`. Importing it takes numba. The names of `index.loops`, and:

c   centroids   (n_lists, bits)   of the codes of each list, in the space scaled by s
s   inverse     (bits,)           1 / √|α|; the lists are ranked by their products with α∘q / √|α|
"""

from __future__ import annotations

import numpy as np

from hbmp.index.answer_loops import sort_heap
from hbmp.index.intrinsics import loop, part, rough, step
from hbmp.index.loops import LOW, MISSING, NO_LIMIT, ONE, ROOM, grade_again, key_of, sift, visit


@rough
def _multiply(centroids, probe, products):
    """Products of all centroids with one vector."""
    for number in range(len(centroids)):
        total = np.float32(0)
        for bit in range(len(probe)):
            total += centroids[number, bit] * probe[bit]
        products[number] = total


@part
def _rank(row, centroids, inverse, signs, sizes, probe, products, probed, number, bits):
    """Fill `probed` (1, n_probe) with the keys of the lists of the largest products, the largest first."""
    for bit in range(len(probe)):
        size = np.float32(sizes[row, bit]) * inverse[bit]
        probe[bit] = size if signs[row, bit >> 6] >> np.uint64(bit & 63) & ONE else -size
    _multiply(centroids, probe, products)
    for i in range(probed.shape[1]):
        probed[0, i] = MISSING
    least = np.float32(-np.inf)
    for i in range(len(products)):
        if products[i] >= least or probed[0, 0] == MISSING:
            key = key_of(-products[i], i, number, bits)
            if key < probed[0, 0]:
                sift(probed, 0, key, probed.shape[1])
                if probed[0, 0] != MISSING:
                    least = products[probed[0, 0] & LOW]
    sort_heap(probed, 0)


@loop
def nearest_in_lists(words, order, starts, centroids, inverse, n_probe, signs, sizes, planes, tiers, facts, heaps):
    """Fill the heaps (n, k) of all queries with the nearest codes of their own `n_probe` lists."""
    limits, bounds, number = np.full((len(heaps), 2), NO_LIMIT), np.empty(ROOM, np.uint64), np.empty(1, np.float32)
    probe, products = np.empty(centroids.shape[1], np.float32), np.empty(len(centroids), np.float32)
    probed = np.empty((1, n_probe), np.uint64)
    _visit_lists(words, order, starts, centroids, inverse, signs, sizes, planes, tiers, facts, heaps, limits, bounds,
                 number, number.view(np.uint32), probe, products, probed)  # fmt: skip


@step
def _visit_lists(words, order, starts, centroids, inverse, signs, sizes, planes, tiers, facts, heaps, limits, bounds,
                 number, bits, probe, products, probed):  # fmt: skip
    for row in range(len(heaps)):
        _rank(row, centroids, inverse, signs, sizes, probe, products, probed, number, bits)
        seen = MISSING
        for place in range(probed.shape[1]):
            if heaps[row, 0] != seen:
                seen = heaps[row, 0]
                grade_again(row, sizes, planes, tiers, facts, heaps, limits, number, bits)
            chosen = probed[0, place] & LOW
            visit(words, order, np.uint64(starts[chosen]), np.uint64(starts[chosen + ONE]), row, signs, sizes, planes,
                  facts, heaps, limits, number, bits, bounds)  # fmt: skip
