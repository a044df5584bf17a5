"""The inner loop of `index._chunks`, compiled by numba.

    v     vectors   (n, 8 * n_bytes)   α∘q; flipping bit k away from sign(v_k) costs |v_k|
    S     best      Σ_k |v_k|          v·u of the code that agrees with every v_k
    next  (n_chunks,)                  least cost among the values of a chunk that have not been visited

The values of a chunk are visited in order of their cost: subsets of its bits in order of their sums, from a heap.
An item that has not been met costs at least Σ next, so the search may end once (o - S) / 2 + Σ next exceeds
the k-th distance.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_MOST_VISITS = 4096  # values of one chunk; more would cost as much as measuring all codes
_VISIT = 8  # a visit costs about as much as measuring this many codes


@njit(nogil=True, cache=True)
def search_chunks(rows, n_bits, starts, items, vectors, offsets, k, budget, keys, proven, work):  # noqa: PLR0912, PLR0915
    """Fill keys (n, k) with the sorted keys of the nearest rows where `budget` measured rows suffice to prove them."""
    n_bytes = rows.shape[1]
    n_chunks = len(starts)
    tables = np.empty((n_bytes, 256))
    costs = np.empty((n_chunks, 16))
    flips = np.empty((n_chunks, 16), np.int64)
    lengths = np.empty(n_chunks, np.int64)
    sums = np.empty((n_chunks, _MOST_VISITS + 2))
    states = np.empty((n_chunks, _MOST_VISITS + 2), np.int64)  # the last flipped bit and the flips, 5 + 16 bits
    sizes = np.empty(n_chunks, np.int64)
    values = np.empty(n_chunks, np.int64)
    spent = np.empty(n_chunks, np.int64)
    distance = np.empty(1, np.float32)
    bits_of_distance = distance.view(np.uint32)
    for row in range(len(vectors)):
        vector, offset = vectors[row], offsets[row]
        best = _fill_tables(vector, tables)
        least = (offset - best) * 0.5
        bound = least
        for chunk in range(n_chunks):
            values[chunk] = _sort_flips(vector, 16 * chunk, min(16, n_bits - 16 * chunk), costs[chunk], flips[chunk])
            sums[chunk, 0], states[chunk, 0] = 0.0, 31 << 16
            sizes[chunk], spent[chunk] = 1, 0
            lengths[chunk] = min(16, n_bits - 16 * chunk)
        found, total, finished = 0, 0, False
        limit = np.float32(np.inf)
        while True:
            if found == k and np.float32(bound) > limit:
                finished = True
                break
            chunk, cheapest = 0, 1 << 62
            for other in range(n_chunks):
                value = values[other] ^ (states[other, 0] & 0xFFFF)
                cost = spent[other] + np.int64(starts[other, value + 1]) - np.int64(starts[other, value])
                if cost < cheapest:
                    chunk, cheapest = other, cost
            value = values[chunk] ^ (states[chunk, 0] & 0xFFFF)
            first, last = np.int64(starts[chunk, value]), np.int64(starts[chunk, value + 1])
            total += int(last - first) + _VISIT
            spent[chunk] += last - first + _VISIT
            if total > budget:
                break
            for place in range(first, last):
                item = items[chunk, place]
                product = 0.0
                for byte in range(n_bytes):
                    product += tables[byte, rows[item, byte]]
                measured = np.float32((offset - product) * 0.5)
                if measured <= limit:
                    distance[0] = measured + np.float32(0)
                    found = _insert(keys[row], found, k, _key(bits_of_distance[0], item))
                    if found == k:
                        bits_of_distance[0] = _bits_of_key(keys[row, k - 1])
                        limit = distance[0]
            before = sums[chunk, 0]
            sizes[chunk] = _advance(
                sums[chunk], states[chunk], sizes[chunk], costs[chunk], flips[chunk], lengths[chunk]
            )
            if sizes[chunk] == 0:  # every value of this chunk, hence every item
                finished = True
                break
            if sizes[chunk] >= _MOST_VISITS:
                break
            bound += sums[chunk, 0] - before
        proven[row] = finished and found == k
        work[row] = total


@njit(nogil=True, cache=True)
def _fill_tables(vector, tables):
    """v·u for every value of every byte; returns Σ|v|."""
    best = 0.0
    for byte in range(len(tables)):
        lowest = 0.0
        for bit in range(8):
            lowest -= vector[8 * byte + bit]
            best += abs(vector[8 * byte + bit])
        table = tables[byte]
        table[0] = lowest
        for bit in range(8):
            step = 2 * vector[8 * byte + bit]
            for value in range(1 << bit):
                table[value | 1 << bit] = table[value] + step
    return best


@njit(nogil=True, cache=True)
def _sort_flips(vector, first, length, costs, flips):
    """Costs and masks of the bits of a chunk, cheapest first; returns the value that costs nothing."""
    value = 0
    for bit in range(length):
        cost = abs(vector[first + bit])
        if vector[first + bit] > 0:
            value |= 1 << bit
        place = bit
        while place > 0 and costs[place - 1] > cost:
            costs[place], flips[place] = costs[place - 1], flips[place - 1]
            place -= 1
        costs[place], flips[place] = cost, 1 << bit
    return value


@njit(nogil=True, cache=True)
def _advance(sums, states, size, costs, flips, length):
    """Replace the cheapest subset on the heap by its two successors; returns the new size."""
    total, state = sums[0], states[0]
    last, mask = state >> 16, state & 0xFFFF
    if last == 31:  # the empty subset
        sums[0], states[0] = costs[0], flips[0]
        return 1
    if last + 1 == length:
        size -= 1
        if size:
            _sink(sums, states, size, sums[size], states[size])
        return size
    following = (last + 1) << 16
    _sink(sums, states, size, total + costs[last + 1], following | mask | flips[last + 1])
    total, state = total - costs[last] + costs[last + 1], following | mask ^ flips[last] | flips[last + 1]
    place = size
    while place > 0 and sums[(place - 1) >> 1] > total:
        parent = (place - 1) >> 1
        sums[place], states[place] = sums[parent], states[parent]
        place = parent
    sums[place], states[place] = total, state
    return size + 1


@njit(nogil=True, cache=True)
def _sink(sums, states, size, total, state):
    """Put a subset at the root of the heap and move it down."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and sums[child + 1] < sums[child]:
            child += 1
        if sums[child] >= total:
            break
        sums[place], states[place] = sums[child], states[child]
        place = child
    sums[place], states[place] = total, state


@njit(nogil=True, cache=True)
def _key(bits, position):
    """As `index._exact.make_keys`."""
    wide = np.uint64(bits)
    ascending = wide ^ np.uint64(0xFFFFFFFF) if wide >> np.uint64(31) else wide | np.uint64(1 << 31)
    return ascending << np.uint64(32) | np.uint64(position)


@njit(nogil=True, cache=True)
def _bits_of_key(key):
    ascending = key >> np.uint64(32)
    wide = ascending ^ np.uint64(1 << 31) if ascending >> np.uint64(31) else ascending ^ np.uint64(0xFFFFFFFF)
    return np.uint32(wide)


@njit(nogil=True, cache=True)
def _insert(keys, found, k, key):
    """Insert a key into the first `found` sorted keys unless it is there or sorts after the k-th; the new count."""
    if found == k and key >= keys[k - 1]:
        return found
    low, high = 0, found
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < found and keys[low] == key:
        return found
    for place in range(min(found, k - 1), low, -1):
        keys[place] = keys[place - 1]
    keys[low] = key
    return min(found + 1, k)


@njit(nogil=True, cache=True)
def measure(rows, vectors, offsets, positions, keys):
    """Sort keys (n, K) of each query's own candidates; position -1 gives the key that sorts last."""
    n_bytes = rows.shape[1]
    tables = np.empty((n_bytes, 256))
    distance = np.empty(1, np.float32)
    bits_of_distance = distance.view(np.uint32)
    for row in range(len(vectors)):
        _fill_tables(vectors[row], tables)
        for place in range(positions.shape[1]):
            item = positions[row, place]
            if item < 0:
                keys[row, place] = np.uint64(0xFFFFFFFFFFFFFFFF)
                continue
            product = 0.0
            for byte in range(n_bytes):
                product += tables[byte, rows[item, byte]]
            distance[0] = np.float32((offsets[row] - product) * 0.5) + np.float32(0)
            keys[row, place] = _key(bits_of_distance[0], item)
