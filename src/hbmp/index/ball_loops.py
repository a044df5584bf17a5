"""The loops over balls of codes, see `index.balls`. Importing them takes numba. The names of `index.loops`, and:

    c   centre     (W,)   of a ball of codes
    h   radius            |(u ⊕ c) ∧ mask| ≤ h for every code u of the ball
    r   reach             Σ_k w_k [u_k ≠ c_k] ≤ r for every code u of the ball

A code of a ball agrees with s in at most h of the masked bits in which c and s differ. Without the dearest h of them, a
ball is at least Σ_j max(0, |(c ⊕ s) ∧ mask ∧ G_j| - h) steps away. Queries whose sizes are about proportional to w, as
those of signs are, have a closer bound by the triangle inequality: Σ_k a_k [c_k ≠ s_k] - r max_k a_k / w_k. There the
sum over a centre is rounded down by levels of its own, the shades: finer ones than those that bound single codes.
"""

from __future__ import annotations

import numpy as np

from hbmp.index.intrinsics import loop, lowest, ones, part, step
from hbmp.index.loops import (
    FOUR,
    HALF,
    MISSING,
    MOST,
    N_FAST,
    NO_LIMIT,
    ONE,
    THREE,
    TIERS,
    ZERO,
    distance_of,
    grade_again,
    limit_at,
    set_limits,
    steps_at,
    three,
    visit,
)

SHADES = 5
UNIT, FLOOR, N_SHADES, N_SCALES = range(4)  # columns of `scales`

_LOW = np.uint64(0xFFFFFFFF)
TILE = np.uint64(64)  # balls that are bounded at a time; their codes stay in the cache while all queries pass
_ALIKE = 1.2  # how much larger the reaches may become for a query whose sizes are not proportional to the weights
_EQUAL = 0.005  # share of the largest size; sizes that differ by less count as equal
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


@step
def _shade(row, sizes, shades, scales):
    """Levels of one query for the distances of centres: every bit in use counts FLOOR steps, and shades add to that."""
    most, least = 0.0, np.inf
    for bit in range(sizes.shape[1]):
        if sizes[row, bit] > 0:
            most, least = max(most, sizes[row, bit]), min(least, sizes[row, bit])
    for plane in range(shades.shape[1]):
        for word in range(shades.shape[2]):
            shades[row, plane, word] = ZERO
    n_shades, unit = SHADES, most / ((1 << SHADES) - 1)
    if most - least <= most / 3:
        n_shades, unit = 3, (most - least) / 7
    if most - least <= _EQUAL * most:
        n_shades, unit = 0, least
    scales[row, UNIT], scales[row, FLOOR], scales[row, N_SHADES] = unit, np.floor(least / unit), n_shades
    for bit in range(sizes.shape[1]):
        if sizes[row, bit] > 0:
            place, word = np.uint64(bit & 63), bit >> 6
            shades[row, 0, word] |= ONE << place
            level = np.uint64(min(sizes[row, bit] / unit - scales[row, FLOOR], (1 << n_shades) - 1.0))
            for plane in range(SHADES):
                shades[row, 1 + plane, word] |= (level >> np.uint64(plane) & ONE) << place


@part
def _steps_to_centres(first, last, row, centres, signs, shades, scales, steps):
    """Steps from the query to the centres of some balls, rounded down."""
    floor, n_shades = np.uint64(scales[row, FLOOR]), scales[row, N_SHADES]
    for i in range(last - first):
        steps[i] = ZERO
    for word in range(np.uint64(centres.shape[0])):
        sign, used = signs[row, word], shades[row, 0, word]
        low, middle, high = shades[row, 1, word], shades[row, 2, word], shades[row, 3, word]
        if n_shades == 0:
            for i in range(last - first):
                steps[i] += ones((centres[word, first + i] ^ sign) & used)
        elif n_shades == 3:
            for i in range(last - first):
                left = centres[word, first + i] ^ sign
                steps[i] += ones(left & used) * floor + three(left, high, middle, low)
        else:
            fourth, fifth = shades[row, 4, word], shades[row, 5, word]
            for i in range(last - first):
                left = centres[word, first + i] ^ sign
                more = (ones(left & fifth) << FOUR) + (ones(left & fourth) << THREE)
                steps[i] += ones(left & used) * floor + more + three(left, high, middle, low)


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
def _near_by_reach(first, last, row, centres, reaches, signs, shades, scales, stretch, facts, distance, steps):
    """A bit for each of at most 64 balls: whether, by its reach, it may hold a code within a distance."""
    _steps_to_centres(first, last, row, centres, signs, shades, scales, steps)
    limit, factor = steps_at(distance, row, facts, scales[row, UNIT]), stretch * _ROUNDED / scales[row, UNIT]
    chosen = ZERO
    for i in range(last - first):
        chosen |= ONE << i if np.float64(steps[i]) <= limit + reaches[first + i] * factor else ZERO
    return chosen


@part
def _near_by_radius(first, last, row, centres, radii, mask, signs, tiers, facts, limit, counts, steps):
    """A bit for each of at most 64 balls: whether, by its radius, it may hold a code within a limit."""
    _steps_by_radius(first, last, row, centres, radii, mask, signs, tiers, TIERS if facts[row, N_FAST] > 1 else 1,
                     counts, steps)  # fmt: skip
    chosen = ZERO
    for i in range(last - first):
        chosen |= ONE << i if steps[i] <= limit else ZERO
    return chosen


@step
def visit_balls(words, order, starts, centres, radii, reaches, weights, mask, signs, sizes, planes, tiers, facts,
                 heaps, visited, limits, bounds, number, bits, counts, steps, closest, stretches, seen, shades, scales,
                 first_tiers, first_facts, first_limits):  # fmt: skip
    """Fill the heaps (n, k) of all queries with the nearest codes: the closest ball first, then all that are near."""
    n_balls, n_queries = np.uint64(len(radii)), len(heaps)
    for row in range(n_queries):
        closest[row] = _closest_ball(centres, mask, row, signs, tiers, counts)
        stretches[row] = _stretch(row, sizes, weights)
        if stretches[row] > 0:
            _shade(row, sizes, shades, scales)
    # The first turn takes the closest ball of each query, each further turn a tile of balls.
    for turn in range(1 + np.int64((n_balls + TILE - ONE) // TILE)):
        for row in range(n_queries):
            if heaps[row, 0] != seen[row]:
                seen[row] = heaps[row, 0]
                grade_again(row, sizes, planes, tiers, facts, heaps, limits, number, bits)
                set_limits(heaps[row, 0], row, first_facts, first_limits, number, bits)
            first, chosen = closest[row], ONE
            if turn > 0:
                first = np.uint64(turn - 1) * TILE
                last = min(n_balls, first + TILE)
                if stretches[row] > 0:
                    kth = distance_of(heaps[row, 0], number, bits) if heaps[row, 0] != MISSING else np.inf
                    chosen = _near_by_reach(first, last, row, centres, reaches, signs, shades, scales, stretches[row],
                                            facts, kth, steps)  # fmt: skip
                else:
                    chosen = _near_by_radius(first, last, row, centres, radii, mask, signs, tiers, facts,
                                             limits[row, 0], counts, steps)  # fmt: skip
                    if chosen != ZERO and facts[row, MOST] < first_facts[row, MOST]:
                        chosen &= _near_by_radius(first, last, row, centres, radii, mask, signs, first_tiers,
                                                  first_facts, first_limits[row, 0], counts, steps)  # fmt: skip
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
    counts, steps, stretch = np.empty(TILE, np.uint64), np.empty(TILE, np.uint64), _stretch(row, sizes, weights)
    shades, scales = np.empty((row + 1, 1 + SHADES, len(centres)), np.uint64), np.empty((row + 1, N_SCALES))
    if stretch > 0:
        _shade(row, sizes, shades, scales)
    limit = limit_at(radius, row, facts, 1.0)
    for first in range(ZERO, np.uint64(len(radii)), TILE):
        last = min(np.uint64(len(radii)), first + TILE)
        if stretch > 0:
            chosen = _near_by_reach(first, last, row, centres, reaches, signs, shades, scales, stretch, facts, radius,
                                    steps)  # fmt: skip
        else:
            chosen = _near_by_radius(first, last, row, centres, radii, mask, signs, tiers, facts, limit, counts, steps)
        for i in range(last - first):
            near[first + i] = chosen >> i & ONE
