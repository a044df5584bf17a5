"""The loops over balls of codes, see `index.balls`. Importing them takes numba. The names of `index.loops`, and:

    c   centre     (W,)   of a ball of codes
    h   radius            |(u ⊕ c) ∧ mask| ≤ h for every code u of the ball
    r   reach             Σ_k w_k [u_k ≠ c_k] ≤ r for every code u of the ball

A code of a ball agrees with s in at most h of the masked bits in which c and s differ. Without the dearest h of them, a
ball is at least Σ_j max(0, |(c ⊕ s) ∧ mask ∧ G_j| - h) steps away. Queries whose sizes are about proportional to w, as
those of signs are, have a closer bound by the triangle inequality: Σ_k a_k [c_k ≠ s_k] - r max_k a_k / w_k.
"""

from __future__ import annotations

import numpy as np

from hbmp.index.intrinsics import loop, lowest, ones, part, step
from hbmp.index.loops import (
    HALF,
    MISSING,
    MOST,
    N_FAST,
    NO_LIMIT,
    ONE,
    PLANES,
    ROOM,
    STEP,
    TIERS,
    ZERO,
    grade_again,
    limit_at,
    set_limits,
    visit,
)

_LOW = np.uint64(0xFFFFFFFF)
_TILE = np.uint64(64)  # balls that are bounded at a time; their codes stay in the cache while all queries pass
_ALIKE = 1.2  # how much larger the reaches may become for a query whose sizes are not proportional to the weights
_ROUNDED = 1 + 1e-6  # covers the rounding of reaches


@part
def _count(words, word, first, last, sign, mask, fresh, counts):
    """Differing bits of one word under a mask: new counts, or added to those there are."""
    if fresh:
        for i in range(first, last):
            counts[i - first] = ones((words[word, i] ^ sign) & mask)
    else:
        for i in range(first, last):
            counts[i - first] += ones((words[word, i] ^ sign) & mask)


@loop
def assign(words, centres, mask, numbers, distances):
    """The nearest centre (W, m) of every code (W, n) by differing bits under a mask, and how many differ."""
    n_centres = np.uint64(centres.shape[1])
    bounds = np.empty(n_centres, np.uint64)
    for item in range(words.shape[1]):
        for word in range(ZERO, np.uint64(words.shape[0])):
            _count(centres, word, ZERO, n_centres, words[word, item], mask[word], word == ZERO, bounds)
        least = NO_LIMIT
        for centre in range(ZERO, n_centres):
            least = min(least, bounds[centre] << HALF | centre)
        numbers[item] = least & _LOW
        distances[item] = least >> HALF


@loop
def tally(words, numbers, set_bits, counts):
    """Add to `set_bits` (m, bits) and `counts` (m,) the bits of each centre's codes."""
    for item in range(words.shape[1]):
        number = numbers[item]
        counts[number] += 1
        for word in range(words.shape[0]):
            left = words[word, item]
            while left != ZERO:
                set_bits[number, word * 64 + np.int64(lowest(left))] += 1
                left &= left - ONE


@loop
def measure(words, centres, numbers, weights, mask, distances, weighted):
    """How far every code (W, n) is from its own centre (W, m): in bits under a mask, and by weights."""
    for item in range(words.shape[1]):
        n_masked, total = ZERO, 0.0
        for word in range(words.shape[0]):
            left = words[word, item] ^ centres[word, numbers[item]]
            n_masked += ones(left & mask[word])
            while left != ZERO:
                total += weights[word * 64 + np.int64(lowest(left))]
                left &= left - ONE
        distances[item], weighted[item] = n_masked, total


@part
def _closest_ball(centres, mask, row, signs, tiers, counts):
    """The ball whose centre differs in the fewest bits; of balls around one centre the first, which is smallest."""
    for word in range(ZERO, np.uint64(centres.shape[0])):
        _count(centres, word, ZERO, np.uint64(centres.shape[1]), signs[row, word], tiers[row, 0, word] & mask[word],
               word == ZERO, counts)  # fmt: skip
    least = NO_LIMIT
    for ball in range(ZERO, np.uint64(centres.shape[1])):
        least = min(least, counts[ball] << HALF | ball)
    return least & _LOW


@part
def _stretch(row, sizes, weights):
    """The least factor by which weights exceed all sizes of a query, or 0 where it would exceed most by far."""
    most, total, whole = 0.0, 0.0, 0.0
    for bit in range(len(weights)):
        size = sizes[row, bit]
        total += size
        whole += weights[bit]
        if size > most * weights[bit]:
            most = size / weights[bit] if weights[bit] > 0 else np.inf
    return most if most * whole <= _ALIKE * total else 0.0


@part
def _steps_by_reach(first, last, row, centres, reaches, signs, planes, n_planes, unit, counts, steps):
    """Fine steps to the nearest possible code of some balls, by their reaches in steps of `unit`."""
    for i in range(last - first):
        steps[i] = ZERO
    for plane in range(n_planes):
        for word in range(ZERO, np.uint64(centres.shape[0])):
            _count(centres, word, first, last, signs[row, word], planes[row, plane, word], word == ZERO, counts)
        for i in range(last - first):
            steps[i] = (steps[i] << ONE) + counts[i]
    for i in range(last - first):
        most = np.uint64(min(reaches[first + i] * unit * _ROUNDED + 1e-3, 1e15))
        steps[i] = max(steps[i], most) - most


@part
def _steps_by_radius(first, last, row, centres, radii, mask, signs, tiers, n_tiers, counts, steps):
    """Coarse steps to the nearest possible code of some balls, by their radii."""
    for i in range(last - first):
        steps[i] = ZERO
    for tier in range(n_tiers):
        for word in range(ZERO, np.uint64(centres.shape[0])):
            marks = tiers[row, tier, word] & mask[word]
            _count(centres, word, first, last, signs[row, word], marks, word == ZERO, counts)
        for i in range(last - first):
            steps[i] += max(counts[i], radii[first + i]) - radii[first + i]


@part
def _near_balls(first, last, row, centres, radii, reaches, mask, signs, planes, tiers, facts, stretch, limits, counts,
                steps):  # fmt: skip
    """A bit for each of at most 64 balls: whether it may hold a code within the limits."""
    many, limit = facts[row, N_FAST] > 1, limits[row, 1 if stretch > 0 else 0]
    if stretch > 0:
        n_planes, unit = PLANES if many else 1, stretch * (8.0 if many else 1.0) / facts[row, STEP]
        _steps_by_reach(first, last, row, centres, reaches, signs, planes, n_planes, unit, counts, steps)
    else:
        n_tiers = TIERS if many else 1
        _steps_by_radius(first, last, row, centres, radii, mask, signs, tiers, n_tiers, counts, steps)
    chosen = ZERO
    for i in range(last - first):
        chosen |= ONE << i if steps[i] <= limit else ZERO
    return chosen


@loop
def nearest_in_balls(words, order, starts, centres, radii, reaches, weights, mask, signs, sizes, planes, tiers, facts,
                     heaps, visited):  # fmt: skip
    """Fill the heaps (n, k) of all queries with the nearest codes: the closest ball first, then all that are near."""
    n_balls, n_queries = np.uint64(len(radii)), len(heaps)
    limits, bounds, number = np.full((n_queries, 2), NO_LIMIT), np.empty(ROOM, np.uint64), np.empty(1, np.float32)
    counts, steps, closest = np.empty(n_balls, np.uint64), np.empty(_TILE, np.uint64), np.empty(n_queries, np.uint64)
    stretches, seen, bits = np.empty(n_queries), np.full(n_queries, MISSING), number.view(np.uint32)
    # Balls whose codes differ in dear bits are ruled out by the first levels, others by levels that are chosen anew.
    first_planes, first_tiers, first_facts, first_limits = planes.copy(), tiers.copy(), facts.copy(), limits.copy()
    _visit_balls(words, order, starts, centres, radii, reaches, weights, mask, signs, sizes, planes, tiers, facts,
                 heaps, visited, limits, bounds, number, bits, counts, steps, closest, stretches, seen, first_planes,
                 first_tiers, first_facts, first_limits)  # fmt: skip


@step
def _visit_balls(words, order, starts, centres, radii, reaches, weights, mask, signs, sizes, planes, tiers, facts,
                 heaps, visited, limits, bounds, number, bits, counts, steps, closest, stretches, seen, first_planes,
                 first_tiers, first_facts, first_limits):  # fmt: skip
    n_balls, n_queries = np.uint64(len(radii)), len(heaps)
    for row in range(n_queries):
        closest[row] = _closest_ball(centres, mask, row, signs, tiers, counts)
        stretches[row] = _stretch(row, sizes, weights)
    # The first turn takes the closest ball of each query, each further turn a tile of balls.
    for turn in range(1 + np.int64((n_balls + _TILE - ONE) // _TILE)):
        for row in range(n_queries):
            if heaps[row, 0] != seen[row]:
                seen[row] = heaps[row, 0]
                grade_again(row, sizes, planes, tiers, facts, heaps, limits, number, bits)
                set_limits(heaps[row, 0], row, first_facts, first_limits, number, bits)
            first, chosen = closest[row], ONE
            if turn > 0:
                first = np.uint64(turn - 1) * _TILE
                last = min(n_balls, first + _TILE)
                chosen = _near_balls(first, last, row, centres, radii, reaches, mask, signs, planes, tiers, facts,
                                     stretches[row], limits, counts, steps)  # fmt: skip
                if chosen != ZERO and facts[row, MOST] < first_facts[row, MOST]:
                    chosen &= _near_balls(first, last, row, centres, radii, reaches, mask, signs, first_planes,
                                          first_tiers, first_facts, stretches[row], first_limits, counts,
                                          steps)  # fmt: skip
            while chosen != ZERO:
                ball = first + lowest(chosen)
                chosen &= chosen - ONE
                if turn > 0 and ball == closest[row]:
                    continue
                start, end = np.uint64(starts[ball]), np.uint64(starts[ball + ONE])
                visited[row] += end - start
                visit(words, order, start, end, row, signs, sizes, planes, facts, heaps, limits, number, bits, bounds)


@loop
def near_balls(centres, radii, reaches, weights, mask, signs, sizes, planes, tiers, facts, radius, row, near):
    """Mark the balls that may hold a code within a radius of one query."""
    counts, steps, limits = np.empty(_TILE, np.uint64), np.empty(_TILE, np.uint64), np.empty((row + 1, 2), np.uint64)
    limits[row, 0] = limit_at(radius, row, facts, 1.0)
    limits[row, 1] = limit_at(radius, row, facts, 8.0 if facts[row, N_FAST] > 1 else 1.0)
    stretch = _stretch(row, sizes, weights)
    for first in range(ZERO, np.uint64(len(radii)), _TILE):
        last = min(np.uint64(len(radii)), first + _TILE)
        chosen = _near_balls(first, last, row, centres, radii, reaches, mask, signs, planes, tiers, facts, stretch,
                             limits, counts, steps)  # fmt: skip
        for i in range(last - first):
            near[first + i] = chosen >> i & ONE
