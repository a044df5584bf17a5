"""The inner loops of exact search as machine code, which numba compiles at first use. Importing them takes numba.

    s   signs     (W,)      the pattern nearest to the query: bit k is set where v_k > 0
    a   sizes     (bits,)   |v_k|; the distance to a code u is base + Σ_k a_k [u_k ≠ s_k]
    n   levels    (bits,)   a_k in steps, rounded down, at most 7 in the first pass and 63 in the second
    M   planes    (6, W)    bit p of the levels of all bits, the highest first
    G   tiers     (7, W)    G_j marks the bits of level j or more in the first pass
    c   centre    (W,)      of a ball of codes
    h   radius              |(u ⊕ c) ∧ mask| ≤ h for every code u of the ball

Levels are rounded down, so the levels of the differing bits add up to a lower bound of the distance. With bit planes
that sum is a few population counts, Σ_p 2^p |(u ⊕ s) ∧ M_p|, on eight codes per instruction. Codes whose bound does not
exceed the k-th distance found so far are measured exactly. Sums of a_k stay on the grid of `hamming.query_terms`:
distances equal `hamming.distances` bit for bit.

A code of a ball agrees with s in at most h of the masked bits in which c and s differ. Without the dearest h of them, a
ball is at least Σ_j max(0, |(c ⊕ s) ∧ mask ∧ G_j| - h) steps away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from hbmp._core.compiled import compiled

FAST, PLANES, TIERS = 3, 6, 7
BASE, STEP, TOTAL, OFFSET, N_FAST, N_FACTS = 0, 1, 2, 3, 4, 5  # columns of `facts`
_CHUNK = np.uint64(128)  # codes whose least bound is compared at a time
_SLACK = 1e-6  # relative; covers the rounding of distances to float32
_ALMOST_EQUAL = 0.1  # share of the sizes that a single level may leave out
_MISSING = np.uint64(np.iinfo(np.uint64).max)
_NO_LIMIT = np.uint64(1 << 62)
_ZERO, _ONE, _TWO, _THREE, _FOUR, _32 = (np.uint64(value) for value in (0, 1, 2, 3, 4, 32))
_WHOLE = np.uint64(31)  # codes less one that an unrolled loop takes at a time
_LOW, _TOP = np.uint64(0xFFFFFFFF), np.uint32(1 << 31)
_TILE = np.uint64(256)  # balls that are held in the cache while all queries pass


def _loop(function: Callable[..., Any]) -> Any:
    return compiled(function)


def _part(function: Callable[..., Any]) -> Any:
    """Part of the loops that call it: passing arrays on takes longer than bounding a hundred codes."""
    return compiled(function, inlined=True)


def _count_ones(_context: Any, _word: Any) -> Any:
    """Population count of a 64-bit word."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _lowest_one(_context: Any, _word: Any) -> Any:
    """Number of the lowest bit that is set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


_ones: Any = intrinsic(_count_ones)
_lowest: Any = intrinsic(_lowest_one)


@_loop
def prepare(vectors, offsets, signs, sizes, planes, tiers, facts):
    """Signs, sizes, planes, tiers and facts of each query from α∘q (n, bits) and Σ α_k |q_k| (n,)."""
    for row in range(len(vectors)):
        total, most, least, n_used = 0.0, 0.0, np.inf, 0
        for bit in range(vectors.shape[1]):
            value = vectors[row, bit]
            if value > 0:
                signs[row, bit >> 6] |= _ONE << np.uint64(bit & 63)
            size = abs(value)
            sizes[row, bit] = size
            if size > 0:
                total += size
                most = max(most, size)
                least = min(least, size)
                n_used += 1
        facts[row, OFFSET], facts[row, TOTAL] = offsets[row], total
        facts[row, BASE] = (offsets[row] - total) * 0.5
        if n_used == 0 or total - n_used * least <= _ALMOST_EQUAL * total:
            facts[row, STEP], facts[row, N_FAST] = least if n_used else 1.0, 1
            for bit in range(vectors.shape[1]):
                if sizes[row, bit] > 0:
                    planes[row, 0, bit >> 6] |= _ONE << np.uint64(bit & 63)
            for word in range(signs.shape[1]):
                tiers[row, 0, word] = planes[row, 0, word]
            continue
        step = _best_step(sizes[row], most)
        facts[row, STEP], facts[row, N_FAST] = step, FAST
        for bit in range(vectors.shape[1]):
            level = np.int64(min(63.0, sizes[row, bit] / step * 8))
            mark, word = _ONE << np.uint64(bit & 63), bit >> 6
            for plane in range(PLANES):
                if level >> (PLANES - 1 - plane) & 1:
                    planes[row, plane, word] |= mark
            for tier in range(level >> FAST):
                tiers[row, tier, word] |= mark


@_loop
def _best_step(sizes, most):
    """The step for which seven levels leave out least of the sizes; the dearest bits may exceed the highest level."""
    best, best_left = most / TIERS, np.inf
    step = most / TIERS
    for _ in range(10):
        left = 0.0
        for bit in range(len(sizes)):
            left += sizes[bit] - step * min(TIERS, np.int64(sizes[bit] / step))
        if left < best_left:
            best, best_left = step, left
        step *= 0.7071067811865476
    return best


@_part
def _limit(distance, row, facts, parts):
    """The most steps / parts that a code at this distance or nearer can have."""
    slack = _SLACK * (facts[row, TOTAL] + abs(facts[row, BASE]) + abs(distance))
    steps = (distance - facts[row, BASE] + slack) * parts / facts[row, STEP] + 1e-3
    if steps < 0:
        return _ZERO
    return np.uint64(steps) if steps < 1e18 else _NO_LIMIT


@_part
def _three(word, high, middle, low):
    """Steps of the bits set in a word."""
    return (_ones(word & high) << _TWO) + (_ones(word & middle) << _ONE) + _ones(word & low)


@_part
def _next_near_by_one(words, start, last, row, signs, planes, limit, bounds):
    """The first chunk from `start` on with a code whose bound, by one plane, is within the limit; `last` if none is.

    Whole vectors of codes are bounded, beyond the end of a chunk where need be: what is there only costs a closer look.
    """
    n_words, n_items = np.uint64(words.shape[0]), np.uint64(words.shape[1])
    end_word = n_words - _ONE
    s0, m0 = signs[row, 0], planes[row, 0, 0]
    s1, m1 = signs[row, end_word], planes[row, 0, end_word]
    while start < last:
        end, least = min(n_items, (start + min(last - start, _CHUNK) + _WHOLE) & ~_WHOLE), _NO_LIMIT
        if n_words == _ONE:
            for i in range(start, end):
                least = min(least, _ones((words[0, i] ^ s0) & m0))
        elif n_words == _TWO:
            for i in range(start, end):
                least = min(least, _ones((words[0, i] ^ s0) & m0) + _ones((words[1, i] ^ s1) & m1))
        elif n_words == _FOUR:
            s2, m2, s3, m3 = signs[row, 1], planes[row, 0, 1], signs[row, 2], planes[row, 0, 2]
            for i in range(start, end):
                bound = _ones((words[0, i] ^ s0) & m0) + _ones((words[1, i] ^ s2) & m2)
                bound += _ones((words[2, i] ^ s3) & m3) + _ones((words[3, i] ^ s1) & m1)
                least = min(least, bound)
        else:
            for word in range(_ZERO, end_word):
                _add_plane(words, word, start, end, row, signs, planes, 0, _ZERO, word == _ZERO, bounds)
            for i in range(start, end):
                least = min(least, bounds[i - start] + _ones((words[end_word, i] ^ s1) & m1))
        if least <= limit:
            return start
        start += _CHUNK
    return last


@_part
def _next_near_by_three(words, start, last, row, signs, planes, limit, bounds):
    """The same by three planes."""
    n_words, n_items = np.uint64(words.shape[0]), np.uint64(words.shape[1])
    end_word = n_words - _ONE
    s0, a0, b0, c0 = signs[row, 0], planes[row, 0, 0], planes[row, 1, 0], planes[row, 2, 0]
    s1, a1, b1 = signs[row, end_word], planes[row, 0, end_word], planes[row, 1, end_word]
    c1 = planes[row, 2, end_word]
    while start < last:
        end, least = min(n_items, (start + min(last - start, _CHUNK) + _WHOLE) & ~_WHOLE), _NO_LIMIT
        if n_words == _ONE:
            for i in range(start, end):
                least = min(least, _three(words[0, i] ^ s0, a0, b0, c0))
        elif n_words == _TWO:
            for i in range(start, end):
                least = min(least, _three(words[0, i] ^ s0, a0, b0, c0) + _three(words[1, i] ^ s1, a1, b1, c1))
        elif n_words == _FOUR:
            s2, a2, b2, c2 = signs[row, 1], planes[row, 0, 1], planes[row, 1, 1], planes[row, 2, 1]
            s3, a3, b3, c3 = signs[row, 2], planes[row, 0, 2], planes[row, 1, 2], planes[row, 2, 2]
            for i in range(start, end):
                bound = _three(words[0, i] ^ s0, a0, b0, c0) + _three(words[1, i] ^ s2, a2, b2, c2)
                bound += _three(words[2, i] ^ s3, a3, b3, c3) + _three(words[3, i] ^ s1, a1, b1, c1)
                least = min(least, bound)
        else:
            for word in range(_ZERO, end_word):
                _add_three(words, word, start, end, row, signs, planes, word == _ZERO, bounds)
            for i in range(start, end):
                least = min(least, bounds[i - start] + _three(words[end_word, i] ^ s1, a1, b1, c1))
        if least <= limit:
            return start
        start += _CHUNK
    return last


@_part
def _add_plane(words, word, first, last, row, signs, planes, plane, shift, fresh, bounds):
    sign, mask = signs[row, word], planes[row, plane, word]
    if fresh:
        for i in range(first, last):
            bounds[i - first] = _ones((words[word, i] ^ sign) & mask) << shift
    else:
        for i in range(first, last):
            bounds[i - first] += _ones((words[word, i] ^ sign) & mask) << shift


@_part
def _add_three(words, word, first, last, row, signs, planes, fresh, bounds):
    sign = signs[row, word]
    high, middle, low = planes[row, 0, word], planes[row, 1, word], planes[row, 2, word]
    if fresh:
        for i in range(first, last):
            left = words[word, i] ^ sign
            bounds[i - first] = _three(left, high, middle, low)
    else:
        for i in range(first, last):
            left = words[word, i] ^ sign
            bounds[i - first] += _three(left, high, middle, low)


@_part
def _fine(words, first, last, row, signs, planes, many, bounds):
    """The bounds of some codes by all planes, and the least of them."""
    for word in range(_ZERO, np.uint64(words.shape[0])):
        sign, high = signs[row, word], planes[row, 0, word]
        if not many:
            if word == _ZERO:
                for i in range(first, last):
                    bounds[i - first] = _ones((words[word, i] ^ sign) & high)
            else:
                for i in range(first, last):
                    bounds[i - first] += _ones((words[word, i] ^ sign) & high)
            continue
        middle, low = planes[row, 1, word], planes[row, 2, word]
        high_part, middle_part, low_part = planes[row, 3, word], planes[row, 4, word], planes[row, 5, word]
        if word == _ZERO:
            for i in range(first, last):
                left = words[word, i] ^ sign
                steps = _three(left, high, middle, low) << _THREE
                bounds[i - first] = steps + _three(left, high_part, middle_part, low_part)
        else:
            for i in range(first, last):
                left = words[word, i] ^ sign
                steps = _three(left, high, middle, low) << _THREE
                bounds[i - first] += steps + _three(left, high_part, middle_part, low_part)
    least = _NO_LIMIT
    for i in range(_ZERO, last - first):
        least = min(least, bounds[i])
    return least


@_part
def _distance(words, item, row, signs, sizes, facts):
    differing = 0.0
    for word in range(words.shape[0]):
        left = words[word, item] ^ signs[row, word]
        while left != _ZERO:
            differing += sizes[row, word * 64 + np.int64(_lowest(left))]
            left &= left - _ONE
    return np.float32((facts[row, OFFSET] - (facts[row, TOTAL] - 2 * differing)) * 0.5) + np.float32(0)


@_part
def _push(heaps, row, key):
    """Replace the largest key of a heap."""
    at, size = 0, heaps.shape[1]
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


@_part
def _key(distance, position, number, bits):
    number[0] = distance
    ascending = ~bits[0] if bits[0] & _TOP else bits[0] | _TOP
    return np.uint64(ascending) << _32 | np.uint64(position)


@_part
def _key_distance(key, number, bits):
    ascending = np.uint32(key >> _32)
    bits[0] = ascending & ~_TOP if ascending & _TOP else ~ascending
    return np.float64(number[0])


@_part
def _offer(words, first, last, order, row, signs, sizes, planes, facts, heaps, limits, bounds, number, bits):
    """Put the codes of a chunk into the heap of a query where they belong; `limits` are those of its largest key."""
    if _fine(words, first, last, row, signs, planes, facts[row, N_FAST] > 1, bounds) > limits[row, 1]:
        return
    for item in range(first, last):
        if bounds[item - first] <= limits[row, 1]:
            position = np.uint64(order[item]) if len(order) else item
            key = _key(_distance(words, item, row, signs, sizes, facts), position, number, bits)
            if key < heaps[row, 0]:
                _push(heaps, row, key)
                _set_limits(heaps[row, 0], row, facts, limits, number, bits)


@_part
def _next_near(words, start, last, row, signs, planes, facts, limit, bounds):
    if facts[row, N_FAST] > 1:
        return _next_near_by_three(words, start, last, row, signs, planes, limit, bounds)
    return _next_near_by_one(words, start, last, row, signs, planes, limit, bounds)


@_part
def _set_limits(key, row, facts, limits, number, bits):
    if key == _MISSING:
        limits[row, 0] = limits[row, 1] = _NO_LIMIT
        return
    distance = _key_distance(key, number, bits)
    parts = 8.0 if facts[row, N_FAST] > 1 else 1.0
    limits[row, 0], limits[row, 1] = _limit(distance, row, facts, 1.0), _limit(distance, row, facts, parts)


@_loop
def nearest_in_order(words, signs, sizes, planes, facts, heaps, at_once):
    """Fill the heaps (n, k) of all queries with the nearest of all codes, `at_once` codes after the other."""
    order = np.empty(0, np.uint32)
    limits = np.full((len(heaps), 2), _NO_LIMIT)
    bounds, number = np.empty(_CHUNK, np.uint64), np.empty(1, np.float32)
    bits = number.view(np.uint32)
    n_items = np.uint64(words.shape[1])
    for first in range(_ZERO, n_items, np.uint64(at_once)):
        last = min(n_items, first + np.uint64(at_once))
        for row in range(len(heaps)):
            start = _next_near(words, first, last, row, signs, planes, facts, limits[row, 0], bounds)
            while start < last:
                end = min(last, start + _CHUNK)
                _offer(words, start, end, order, row, signs, sizes, planes, facts, heaps, limits, bounds, number, bits)
                start = _next_near(words, end, last, row, signs, planes, facts, limits[row, 0], bounds)


@_part
def _count(words, word, first, last, sign, mask, fresh, counts):
    """Differing bits of one word under a mask: new counts, or added to those there are."""
    if fresh:
        for i in range(first, last):
            counts[i - first] = _ones((words[word, i] ^ sign) & mask)
    else:
        for i in range(first, last):
            counts[i - first] += _ones((words[word, i] ^ sign) & mask)


@_loop
def assign(words, centres, mask, numbers, distances):
    """The nearest centre (W, m) of every code (W, n) by differing bits under a mask, and how many differ."""
    n_centres = np.uint64(centres.shape[1])
    bounds = np.empty(n_centres, np.uint64)
    for item in range(words.shape[1]):
        for word in range(_ZERO, np.uint64(words.shape[0])):
            _count(centres, word, _ZERO, n_centres, words[word, item], mask[word], word == _ZERO, bounds)
        least = _NO_LIMIT
        for centre in range(_ZERO, n_centres):
            least = min(least, bounds[centre] << _32 | centre)
        numbers[item] = least & _LOW
        distances[item] = least >> _32


@_loop
def tally(words, numbers, set_bits, counts):
    """Add to `set_bits` (m, bits) and `counts` (m,) the bits of each centre's codes."""
    for item in range(words.shape[1]):
        number = numbers[item]
        counts[number] += 1
        for word in range(words.shape[0]):
            left = words[word, item]
            while left != _ZERO:
                set_bits[number, word * 64 + np.int64(_lowest(left))] += 1
                left &= left - _ONE


@_part
def _closest_ball(centres, mask, row, signs, tiers, counts):
    """The ball whose centre differs in the fewest bits; of balls around one centre the first, which is smallest."""
    for word in range(_ZERO, np.uint64(centres.shape[0])):
        _count(centres, word, _ZERO, np.uint64(centres.shape[1]), signs[row, word], tiers[row, 0, word] & mask[word],
               word == _ZERO, counts)  # fmt: skip
    least = _NO_LIMIT
    for ball in range(_ZERO, np.uint64(centres.shape[1])):
        least = min(least, counts[ball] << _32 | ball)
    return least & _LOW


@_part
def _bound_balls(centres, first, last, radii, mask, row, signs, tiers, n_tiers, counts, steps):
    """Steps to the nearest possible code of some balls."""
    for tier in range(n_tiers):
        for word in range(_ZERO, np.uint64(centres.shape[0])):
            marks = tiers[row, tier, word] & mask[word]
            _count(centres, word, first, last, signs[row, word], marks, word == _ZERO, counts)
        if tier == 0:
            for ball in range(first, last):
                steps[ball - first] = max(counts[ball - first], radii[ball]) - radii[ball]
        else:
            for ball in range(first, last):
                steps[ball - first] += max(counts[ball - first], radii[ball]) - radii[ball]


@_loop
def nearest_in_balls(words, order, starts, centres, radii, mask, signs, sizes, planes, tiers, facts, heaps, visited):
    """Fill the heaps (n, k) of all queries with the nearest codes: the closest ball first, then all that are near."""
    n_balls = np.uint64(len(radii))
    limits, bounds = np.full((len(heaps), 2), _NO_LIMIT), np.empty(_CHUNK, np.uint64)
    counts, steps, closest = np.empty(n_balls, np.uint64), np.empty(_TILE, np.uint64), np.empty(len(heaps), np.uint64)
    number = np.empty(1, np.float32)
    bits = number.view(np.uint32)
    for row in range(len(heaps)):
        closest[row] = ball = _closest_ball(centres, mask, row, signs, tiers, counts)
        start, last = np.uint64(starts[ball]), np.uint64(starts[ball + _ONE])
        visited[row] += last - start
        while start < last:
            end = min(last, start + _CHUNK)
            _offer(words, start, end, order, row, signs, sizes, planes, facts, heaps, limits, bounds, number, bits)
            start = end
    for first in range(_ZERO, n_balls, _TILE):
        last = min(n_balls, first + _TILE)
        for row in range(len(heaps)):
            n_tiers = TIERS if facts[row, N_FAST] > 1 else 1
            _bound_balls(centres, first, last, radii, mask, row, signs, tiers, n_tiers, counts, steps)
            for ball in range(first, last):
                if steps[ball - first] > limits[row, 0] or ball == closest[row]:
                    continue
                start, end = np.uint64(starts[ball]), np.uint64(starts[ball + _ONE])
                visited[row] += end - start
                start = _next_near(words, start, end, row, signs, planes, facts, limits[row, 0], bounds)
                while start < end:
                    stop = min(end, start + _CHUNK)
                    _offer(
                        words, start, stop, order, row, signs, sizes, planes, facts, heaps, limits, bounds, number, bits
                    )
                    start = _next_near(words, stop, end, row, signs, planes, facts, limits[row, 0], bounds)


@_loop
def within_balls(words, order, starts, centres, radii, mask, signs, sizes, planes, tiers, facts, radius, row, found):
    """Keys of every code within a radius of one query: how many, and as many of them in `found` as it can hold."""
    n_balls, n_found = np.uint64(len(radii)), 0
    bounds, counts, steps = np.empty(_CHUNK, np.uint64), np.empty(n_balls, np.uint64), np.empty(n_balls, np.uint64)
    number = np.empty(1, np.float32)
    bits = number.view(np.uint32)
    many = facts[row, N_FAST] > 1
    coarse, fine = _limit(radius, row, facts, 1.0), _limit(radius, row, facts, 8.0 if many else 1.0)
    _bound_balls(centres, _ZERO, n_balls, radii, mask, row, signs, tiers, TIERS if many else 1, counts, steps)
    for ball in range(_ZERO, n_balls):
        if steps[ball] > coarse:
            continue
        start, last = np.uint64(starts[ball]), np.uint64(starts[ball + _ONE])
        start = _next_near(words, start, last, row, signs, planes, facts, coarse, bounds)
        while start < last:
            end = min(last, start + _CHUNK)
            if _fine(words, start, end, row, signs, planes, many, bounds) <= fine:
                for item in range(start, end):
                    if bounds[item - start] <= fine:
                        distance = _distance(words, item, row, signs, sizes, facts)
                        if np.float64(distance) <= radius:
                            if n_found < len(found):
                                position = np.uint64(order[item]) if len(order) else item
                                found[n_found] = _key(distance, position, number, bits)
                            n_found += 1
            start = _next_near(words, end, last, row, signs, planes, facts, coarse, bounds)
    return n_found
