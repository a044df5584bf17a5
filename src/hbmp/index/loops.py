"""The inner loops of exact search as machine code, which numba compiles at first use. Importing them takes numba.

    s   signs     (W,)      the pattern nearest to the query: bit k is set where v_k > 0
    a   sizes     (bits,)   |v_k|; the distance to a code u is base + Σ_k a_k [u_k ≠ s_k]
    n   levels    (bits,)   a_k in steps, rounded down, at most 7 in the first pass and 63 in the second
    M   planes    (6, W)    bit p of the levels of all bits, the highest first
    G   tiers     (7, W)    G_j marks the bits of level j or more in the first pass

Levels are rounded down, so the levels of the differing bits add up to a lower bound of the distance. With bit planes
that sum is a few population counts, Σ_p 2^p |(u ⊕ s) ∧ M_p|, on eight codes per instruction. Codes whose bound does not
exceed the k-th distance found so far are measured exactly. Levels are chosen anew for queries whose k-th result is much
nearer than the dearest bit weighs. Sums of a_k stay on the grid of `hamming.query_terms`:
distances equal `hamming.distances` bit for bit.
"""

from __future__ import annotations

import numpy as np

from hbmp.index.intrinsics import loop, lowest, ones, part, rough, step

FAST, PLANES, TIERS = 3, 6, 7
BASE, STEP, TOTAL, OFFSET, N_FAST, LEAST, MOST, N_FACTS = range(8)  # columns of `facts`
CHUNK, MARKED = np.uint64(128), np.uint64(64)  # codes whose least bound is compared at a time; codes of one mark
ROOM = np.uint64(160)  # bounds of a chunk and of the whole vectors around it
_SLACK = 1e-6  # relative; covers the rounding of distances to float32
_ALMOST_EQUAL = 0.1  # share of the sizes that a single level may leave out
MISSING = np.uint64(np.iinfo(np.uint64).max)
NO_LIMIT = np.uint64(1 << 62)
ZERO, ONE, TWO, THREE, FOUR, HALF = (np.uint64(value) for value in (0, 1, 2, 3, 4, 32))
_WHOLE = np.uint64(31)  # codes less one that an unrolled loop takes at a time
LOW, _TOP = np.uint64(0xFFFFFFFF), np.uint32(1 << 31)


@loop
def prepared(vectors, offsets, n_words):
    """Signs, sizes, planes, tiers and facts of each query from α∘q (n, ≤ 64 W) and Σ α_k |q_k| (n,)."""
    n_queries = len(vectors)
    signs, sizes = np.zeros((n_queries, n_words), np.uint64), np.zeros((n_queries, 64 * n_words))
    planes = np.empty((n_queries, PLANES, n_words), np.uint64)
    tiers, facts = np.empty((n_queries, TIERS, n_words), np.uint64), np.empty((n_queries, N_FACTS))
    _prepare(vectors, offsets, signs, sizes, planes, tiers, facts)
    return signs, sizes, planes, tiers, facts


@step
def _prepare(vectors, offsets, signs, sizes, planes, tiers, facts):
    for row in range(len(vectors)):
        total, most, least = 0.0, 0.0, np.inf
        for bit in range(vectors.shape[1]):
            value = vectors[row, bit]
            if value > 0:
                signs[row, bit >> 6] |= ONE << np.uint64(bit & 63)
            size = abs(value)
            sizes[row, bit] = size
            total += size
            most = max(most, size)
            if size > 0:
                least = min(least, size)
        facts[row, OFFSET], facts[row, TOTAL] = offsets[row], total
        facts[row, BASE] = (offsets[row] - total) * 0.5
        facts[row, LEAST] = least if most > 0 else 1.0
        _grade(row, most, sizes, planes, tiers, facts)


@step
def _grade(row, most, sizes, planes, tiers, facts):
    """Levels of one query for sizes of at most `most`; dearer bits count as that much."""
    for word in range(planes.shape[2]):
        for plane in range(PLANES):
            planes[row, plane, word] = ZERO
        for tier in range(TIERS):
            tiers[row, tier, word] = ZERO
    total, n_used, least = 0.0, 0, facts[row, LEAST]
    for bit in range(sizes.shape[1]):
        total += min(sizes[row, bit], most)
        n_used += sizes[row, bit] > 0
    facts[row, MOST] = most
    if total - n_used * least <= _ALMOST_EQUAL * total:
        facts[row, STEP], facts[row, N_FAST] = least, 1
        for bit in range(sizes.shape[1]):
            if sizes[row, bit] > 0:
                planes[row, 0, bit >> 6] |= ONE << np.uint64(bit & 63)
        for word in range(planes.shape[2]):
            tiers[row, 0, word] = planes[row, 0, word]
        return
    step = _best_step(row, sizes, most)
    facts[row, STEP], facts[row, N_FAST] = step, FAST
    for bit in range(sizes.shape[1]):
        level = np.uint64(min(63.0, min(sizes[row, bit], most) / step * 8))
        place, word = np.uint64(bit & 63), bit >> 6
        for plane in range(PLANES):
            planes[row, plane, word] |= (level >> np.uint64(PLANES - 1 - plane) & ONE) << place
        for tier in range(TIERS):
            tiers[row, tier, word] |= np.uint64(level >> THREE > tier) << place


@rough
def _best_step(row, sizes, most):
    """The step for which seven levels leave out least of the sizes; the dearest bits may exceed the highest level."""
    best, best_left = most / TIERS, np.inf
    step = most / TIERS
    for _ in range(10):
        inverse, left = 1 / step, 0.0
        for bit in range(sizes.shape[1]):
            size = min(sizes[row, bit], most)
            left += size - step * min(7.0, np.floor(size * inverse))
        if left < best_left:
            best, best_left = step, left
        step *= 0.7071067811865476
    return best


@step
def grade_for(row, distance, sizes, planes, tiers, facts):
    """New levels where results lie much nearer than the dearest bit weighs, so that cheap bits tell codes apart."""
    beyond = max(distance - facts[row, BASE], 0.0)
    if 2 * beyond >= facts[row, MOST] or facts[row, MOST] <= facts[row, LEAST]:
        return False
    _grade(row, max(1.25 * beyond, facts[row, LEAST]), sizes, planes, tiers, facts)
    return True


@part
def steps_at(distance, row, facts, unit):
    """The most steps of a unit that a code at this distance or nearer can have."""
    slack = _SLACK * (facts[row, TOTAL] + abs(facts[row, BASE]) + abs(distance))
    return (distance - facts[row, BASE] + slack) / unit + 1e-3


@part
def limit_at(distance, row, facts, parts):
    """The most steps / parts that a code at this distance or nearer can have."""
    steps = steps_at(distance, row, facts, facts[row, STEP] / parts)
    if steps < 0:
        return ZERO
    return np.uint64(steps) if steps < 1e18 else NO_LIMIT


@part
def three(word, high, middle, low):
    """Steps of the bits set in a word."""
    return (ones(word & high) << TWO) + (ones(word & middle) << ONE) + ones(word & low)


@part
def _next_near_by_one(words, start, last, row, signs, planes, limit, bounds):
    """The first chunk from `start` on with a code whose bound, by one plane, is within the limit; `last` if none is.

    Whole vectors of codes are bounded, beyond the end of a chunk where need be: what is there only costs a closer look.
    """
    n_words, n_items = np.uint64(words.shape[0]), np.uint64(words.shape[1])
    end_word = n_words - ONE
    s0, m0 = signs[row, 0], planes[row, 0, 0]
    s1, m1 = signs[row, end_word], planes[row, 0, end_word]
    while start < last:
        end, least = min(n_items, (start + min(last - start, CHUNK) + _WHOLE) & ~_WHOLE), NO_LIMIT
        if n_words == ONE:
            for i in range(start, end):
                least = min(least, ones((words[0, i] ^ s0) & m0))
        elif n_words == TWO:
            for i in range(start, end):
                least = min(least, ones((words[0, i] ^ s0) & m0) + ones((words[1, i] ^ s1) & m1))
        elif n_words == FOUR:
            s2, m2, s3, m3 = signs[row, 1], planes[row, 0, 1], signs[row, 2], planes[row, 0, 2]
            for i in range(start, end):
                bound = ones((words[0, i] ^ s0) & m0) + ones((words[1, i] ^ s2) & m2)
                bound += ones((words[2, i] ^ s3) & m3) + ones((words[3, i] ^ s1) & m1)
                least = min(least, bound)
        else:
            for word in range(ZERO, end_word):
                _add_plane(words, word, start, end, row, signs, planes, word == ZERO, bounds)
            for i in range(start, end):
                least = min(least, bounds[i - start] + ones((words[end_word, i] ^ s1) & m1))
        if least <= limit:
            return start
        start += CHUNK
    return last


@part
def _next_near_by_three(words, start, last, row, signs, planes, limit, bounds):
    """The same by three planes."""
    n_words, n_items = np.uint64(words.shape[0]), np.uint64(words.shape[1])
    end_word = n_words - ONE
    s0, a0, b0, c0 = signs[row, 0], planes[row, 0, 0], planes[row, 1, 0], planes[row, 2, 0]
    s1, a1, b1 = signs[row, end_word], planes[row, 0, end_word], planes[row, 1, end_word]
    c1 = planes[row, 2, end_word]
    while start < last:
        end, least = min(n_items, (start + min(last - start, CHUNK) + _WHOLE) & ~_WHOLE), NO_LIMIT
        if n_words == ONE:
            for i in range(start, end):
                least = min(least, three(words[0, i] ^ s0, a0, b0, c0))
        elif n_words == TWO:
            for i in range(start, end):
                least = min(least, three(words[0, i] ^ s0, a0, b0, c0) + three(words[1, i] ^ s1, a1, b1, c1))
        elif n_words == FOUR:
            s2, a2, b2, c2 = signs[row, 1], planes[row, 0, 1], planes[row, 1, 1], planes[row, 2, 1]
            s3, a3, b3, c3 = signs[row, 2], planes[row, 0, 2], planes[row, 1, 2], planes[row, 2, 2]
            for i in range(start, end):
                bound = three(words[0, i] ^ s0, a0, b0, c0) + three(words[1, i] ^ s2, a2, b2, c2)
                bound += three(words[2, i] ^ s3, a3, b3, c3) + three(words[3, i] ^ s1, a1, b1, c1)
                least = min(least, bound)
        else:
            for word in range(ZERO, end_word):
                _add_three(words, word, start, end, row, signs, planes, word == ZERO, bounds)
            for i in range(start, end):
                least = min(least, bounds[i - start] + three(words[end_word, i] ^ s1, a1, b1, c1))
        if least <= limit:
            return start
        start += CHUNK
    return last


@part
def _add_plane(words, word, first, last, row, signs, planes, fresh, bounds):
    sign, mask = signs[row, word], planes[row, 0, word]
    if fresh:
        for i in range(first, last):
            bounds[i - first] = ones((words[word, i] ^ sign) & mask)
    else:
        for i in range(first, last):
            bounds[i - first] += ones((words[word, i] ^ sign) & mask)


@part
def _add_three(words, word, first, last, row, signs, planes, fresh, bounds):
    sign = signs[row, word]
    high, middle, low = planes[row, 0, word], planes[row, 1, word], planes[row, 2, word]
    if fresh:
        for i in range(first, last):
            left = words[word, i] ^ sign
            bounds[i - first] = three(left, high, middle, low)
    else:
        for i in range(first, last):
            left = words[word, i] ^ sign
            bounds[i - first] += three(left, high, middle, low)


@part
def near_marks(words, first, last, row, signs, planes, many, limit, bounds):
    """A bit for each of at most 64 codes: whether its bound of the first pass is within the limit."""
    for word in range(ZERO, np.uint64(words.shape[0])):
        if many:
            _add_three(words, word, first, last, row, signs, planes, word == ZERO, bounds)
        else:
            _add_plane(words, word, first, last, row, signs, planes, word == ZERO, bounds)
    marks = ZERO
    for i in range(ZERO, last - first):
        marks |= ONE << i if bounds[i] <= limit else ZERO
    return marks


@part
def fine_bound(words, item, row, signs, planes, many):
    """The bound of one code by all planes."""
    total = ZERO
    for word in range(words.shape[0]):
        left = words[word, item] ^ signs[row, word]
        if many:
            steps = three(left, planes[row, 0, word], planes[row, 1, word], planes[row, 2, word])
            parts = three(left, planes[row, 3, word], planes[row, 4, word], planes[row, 5, word])
            total += (steps << THREE) + parts
        else:
            total += ones(left & planes[row, 0, word])
    return total


@part
def distance_to(words, item, row, signs, sizes, facts):
    """The exact distance of one code."""
    differing = 0.0
    for word in range(words.shape[0]):
        left = words[word, item] ^ signs[row, word]
        while left != ZERO:
            differing += sizes[row, word * 64 + np.int64(lowest(left))]
            left &= left - ONE
    return np.float32((facts[row, OFFSET] - (facts[row, TOTAL] - 2 * differing)) * 0.5) + np.float32(0)


@part
def sift(heaps, row, key, size):
    """Replace the largest key of a heap, which takes the first places of a row."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heaps[row, child + 1] > heaps[row, child]:
            child += 1
        if heaps[row, child] <= key:
            break
        heaps[row, at] = heaps[row, child]
        at = child
    heaps[row, at] = key


@part
def key_of(distance, position, number, bits):
    """The sort key of a result, as `index.exact.make_keys` makes it."""
    number[0] = distance
    ascending = ~bits[0] if bits[0] & _TOP else bits[0] | _TOP
    return np.uint64(ascending) << HALF | np.uint64(position)


@part
def distance_of(key, number, bits):
    """The distance in a sort key."""
    ascending = np.uint32(key >> HALF)
    bits[0] = ascending & ~_TOP if ascending & _TOP else ~ascending
    return np.float64(number[0])


@part
def offer(words, item, position, row, signs, sizes, facts, heaps, limits, number, bits):
    """Put a code into the heap of a query if it belongs there; `limits` are those of its largest key."""
    key = key_of(distance_to(words, item, row, signs, sizes, facts), position, number, bits)
    if key < heaps[row, 0]:
        sift(heaps, row, key, heaps.shape[1])
        set_limits(heaps[row, 0], row, facts, limits, number, bits)


@part
def next_near(words, start, last, row, signs, planes, many, limit, bounds):
    """The first chunk from `start` on with a code whose bound is within the limit; `last` if none is."""
    if many:
        return _next_near_by_three(words, start, last, row, signs, planes, limit, bounds)
    return _next_near_by_one(words, start, last, row, signs, planes, limit, bounds)


@part
def set_limits(key, row, facts, limits, number, bits):
    """The limits of both passes for a query whose worst result so far has a key."""
    if key == MISSING:
        limits[row, 0] = limits[row, 1] = NO_LIMIT
        return
    distance = distance_of(key, number, bits)
    parts = 8.0 if facts[row, N_FAST] > 1 else 1.0
    limits[row, 0], limits[row, 1] = limit_at(distance, row, facts, 1.0), limit_at(distance, row, facts, parts)


@part
def grade_again(row, sizes, planes, tiers, facts, heaps, limits, number, bits):
    """New levels for a query if its results so far call for them."""
    if heaps[row, 0] != MISSING:
        distance = distance_of(heaps[row, 0], number, bits)
        if grade_for(row, distance, sizes, planes, tiers, facts):
            set_limits(heaps[row, 0], row, facts, limits, number, bits)


@part
def visit(words, order, start, last, row, signs, sizes, planes, facts, heaps, limits, number, bits, bounds):
    """Offer the codes from `start` to `last` that may be near; `order` is empty where it is that of positions."""
    many = facts[row, N_FAST] > 1
    start = next_near(words, start, last, row, signs, planes, many, limits[row, 0], bounds)
    while start < last:
        end = min(last, start + MARKED)
        marks = near_marks(words, start, end, row, signs, planes, many, limits[row, 0], bounds)
        while marks != ZERO:
            item = start + lowest(marks)
            marks &= marks - ONE
            if fine_bound(words, item, row, signs, planes, many) <= limits[row, 1]:
                position = np.uint64(order[item]) if len(order) else item
                offer(words, item, position, row, signs, sizes, facts, heaps, limits, number, bits)
        start = next_near(words, end, last, row, signs, planes, many, limits[row, 0], bounds)


@step
def visit_in_order(words, order, signs, sizes, planes, tiers, facts, heaps, at_once, limits, bounds, number, bits):
    """Fill the heaps (n, k) of all queries with the nearest of all codes, `at_once` codes after the other."""
    n_items = np.uint64(words.shape[1])
    for first in range(ZERO, n_items, at_once):
        last = min(n_items, first + at_once)
        for row in range(len(heaps)):
            grade_again(row, sizes, planes, tiers, facts, heaps, limits, number, bits)
            visit(words, order, first, last, row, signs, sizes, planes, facts, heaps, limits, number, bits, bounds)


@loop
def within_in_order(words, first, last, order, signs, sizes, planes, facts, radius, row, found, n_found):
    """Add to `found` the keys of the codes from `first` to `last` within a radius of one query, as many as it holds.

    Returns how many there are with the `n_found` of earlier calls.
    """
    bounds, number = np.empty(ROOM, np.uint64), np.empty(1, np.float32)
    bits, many = number.view(np.uint32), facts[row, N_FAST] > 1
    coarse, fine = limit_at(radius, row, facts, 1.0), limit_at(radius, row, facts, 8.0 if many else 1.0)
    last = np.uint64(last)
    start = next_near(words, np.uint64(first), last, row, signs, planes, many, coarse, bounds)
    while start < last:
        end = min(last, start + MARKED)
        marks = near_marks(words, start, end, row, signs, planes, many, coarse, bounds)
        while marks != ZERO:
            item = start + lowest(marks)
            marks &= marks - ONE
            if fine_bound(words, item, row, signs, planes, many) <= fine:
                distance = distance_to(words, item, row, signs, sizes, facts)
                if np.float64(distance) <= radius:
                    if n_found < len(found):
                        position = np.uint64(order[item]) if len(order) else item
                        found[n_found] = key_of(distance, position, number, bits)
                    n_found += 1
        start = next_near(words, end, last, row, signs, planes, many, coarse, bounds)
    return n_found
