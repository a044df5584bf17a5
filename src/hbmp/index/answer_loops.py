"""From queries to results in one call, with the items of equal codes. Importing it takes numba.

`index.grouped` does the same with arrays, for sets that are searched without compiled loops.
"""

from __future__ import annotations

import numpy as np

from hbmp.index.ball_loops import N_SCALES, SHADES, TILE, visit_balls
from hbmp.index.intrinsics import loop, part
from hbmp.index.list_loops import visit_lists
from hbmp.index.loops import HALF, LOW, MISSING, NO_LIMIT, ROOM, distance_of, prepared, sift, visit_in_order


@part
def sort_heap(heaps, row):
    """A heap in ascending order."""
    for size in range(heaps.shape[1] - 1, 0, -1):
        largest, last = heaps[row, 0], heaps[row, size]
        sift(heaps, row, last, size)
        heaps[row, size] = largest


@part
def _nearest_members(groups, row, starts, members, best):
    """Fill a heap with the nearest items of groups whose keys are sorted by distance and first member."""
    for i in range(groups.shape[1]):
        if groups[row, i] == MISSING:
            return
        group = np.int64(groups[row, i] & LOW)
        distance = groups[row, i] >> HALF << HALF
        for place in range(starts[group], starts[group + 1]):
            key = distance | np.uint64(members[place])
            if key >= best[row, 0]:
                if place == starts[group]:
                    return  # nor is any item of later groups nearer
                break
            sift(best, row, key, best.shape[1])


@loop
def answer_in_order(words, order, at_once, vectors, offsets, starts, members, found, positions):
    """The nearest of all codes: distances and positions (n, k)."""
    heaps, limits = np.full(found.shape, MISSING), np.full((len(found), 2), NO_LIMIT)
    bounds, number = np.empty(ROOM, np.uint64), np.empty(1, np.float32)
    signs, sizes, planes, tiers, facts = prepared(vectors, offsets, len(words))
    visit_in_order(words, order, signs, sizes, planes, tiers, facts, heaps, np.uint64(at_once), limits, bounds, number,
                   number.view(np.uint32))  # fmt: skip
    _answer(heaps, starts, members, found, positions)


@loop
def answer_in_balls(words, order, firsts, centres, radii, reaches, weights, mask, visited, vectors, offsets, starts,
                    members, found, positions):  # fmt: skip
    """The nearest codes of balls: distances and positions (n, k); `visited` (n,) counts the codes of all balls met."""
    n_balls, n_queries = len(radii), len(found)
    heaps, limits = np.full(found.shape, MISSING), np.full((n_queries, 2), NO_LIMIT)
    bounds, number = np.empty(ROOM, np.uint64), np.empty(1, np.float32)
    counts, steps, closest = np.empty(n_balls, np.uint64), np.empty(TILE, np.uint64), np.empty(n_queries, np.uint64)
    stretches, seen = np.empty(n_queries), np.full(n_queries, MISSING)
    shades, scales = np.empty((n_queries, 1 + SHADES, len(centres)), np.uint64), np.empty((n_queries, N_SCALES))
    signs, sizes, planes, tiers, facts = prepared(vectors, offsets, len(words))
    # Balls whose codes differ in dear bits are ruled out by the first levels, others by levels that are chosen anew.
    first_tiers, first_facts, first_limits = tiers.copy(), facts.copy(), limits.copy()
    visit_balls(words, order, firsts, centres, radii, reaches, weights, mask, signs, sizes, planes, tiers, facts, heaps,
                visited, limits, bounds, number, number.view(np.uint32), counts, steps, closest, stretches, seen,
                shades, scales, first_tiers, first_facts, first_limits)  # fmt: skip
    _answer(heaps, starts, members, found, positions)


@loop
def answer_in_lists(words, order, firsts, centroids, inverse, n_probe, vectors, offsets, starts, members, found,
                    positions):  # fmt: skip
    """The nearest codes of the `n_probe` lists of each query: distances and positions (n, k)."""
    heaps, limits = np.full(found.shape, MISSING), np.full((len(found), 2), NO_LIMIT)
    bounds, number = np.empty(ROOM, np.uint64), np.empty(1, np.float32)
    products = np.empty(centroids.shape[1], np.float32)
    signs, sizes, planes, tiers, facts = prepared(vectors, offsets, len(words))
    visit_lists(words, order, firsts, centroids, inverse, n_probe, signs, sizes, planes, tiers, facts, heaps, limits,
                bounds, number, number.view(np.uint32), products)  # fmt: skip
    _answer(heaps, starts, members, found, positions)


@loop
def _answer(heaps, starts, members, found, positions):
    """Distances and positions (n, k) from heaps of codes; `starts` of groups are empty where no code repeats."""
    number = np.empty(1, np.float32)
    bits = number.view(np.uint32)
    best = np.full(heaps.shape, MISSING) if len(starts) else heaps
    for row in range(len(heaps)):
        sort_heap(heaps, row)
        if len(starts):
            _nearest_members(heaps, row, starts, members, best)
            sort_heap(best, row)
        for i in range(best.shape[1]):
            if best[row, i] == MISSING:
                found[row, i], positions[row, i] = np.inf, -1
            else:
                found[row, i] = distance_of(best[row, i], number, bits)
                positions[row, i] = np.int64(best[row, i] & LOW)
