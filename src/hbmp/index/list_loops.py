"""The loop over inverted lists, see `index.inverted`. Importing it takes numba. The names of `index.loops`, and:

    c   centroids   (bits, n_lists)   of the codes of each list, in the space scaled by √|α|
    s   inverse     (bits,)           1 / √|α|

A query probes the lists with the largest products of c and α∘q∘s, the very largest first, so that its k-th distance is
small early.
"""

from __future__ import annotations

import numpy as np

from hbmp.index.intrinsics import step
from hbmp.index.loops import MISSING, ONE, grade_again, visit

_HALVINGS = 16  # of the range of products; nearer ones count as equal


@step
def _least_of(products, n_chosen):
    """A number that at least `n_chosen` products reach, and hardly more."""
    least, most = products[0], products[0]
    for i in range(len(products)):
        least, most = min(least, products[i]), max(most, products[i])
    for _ in range(_HALVINGS):
        middle = least + (most - least) / np.float32(2)
        n_above = 0
        for i in range(len(products)):
            n_above += products[i] >= middle
        if n_above >= n_chosen:
            least = middle
        else:
            most = middle
    return least


@step
def _multiply(row, centroids, inverse, signs, sizes, products):
    """Products of all centroids with one query."""
    for i in range(len(products)):
        products[i] = 0
    for bit in range(len(centroids)):
        size = np.float32(sizes[row, bit]) * inverse[bit]
        factor = size if signs[row, bit >> 6] >> np.uint64(bit & 63) & ONE else -size
        for i in range(len(products)):
            products[i] += factor * centroids[bit, i]


@step
def visit_lists(words, order, starts, centroids, inverse, n_probe, signs, sizes, planes, tiers, facts, heaps, limits,
                 bounds, number, bits, products):  # fmt: skip
    """Fill the heaps (n, k) from the nearest list of each query first, then the others that it probes as they come."""
    for row in range(len(heaps)):
        _multiply(row, centroids, inverse, signs, sizes, products)
        least, best, seen, left = _least_of(products, n_probe), np.argmax(products), MISSING, n_probe
        for place in range(-1, len(products)):
            chosen = best if place < 0 else place
            if place == best or products[chosen] < least or left == 0:
                continue
            left -= 1
            if heaps[row, 0] != seen:
                seen = heaps[row, 0]
                grade_again(row, sizes, planes, tiers, facts, heaps, limits, number, bits)
            visit(words, order, np.uint64(starts[chosen]), np.uint64(starts[chosen + 1]), row, signs, sizes, planes,
                  facts, heaps, limits, number, bits, bounds)  # fmt: skip
