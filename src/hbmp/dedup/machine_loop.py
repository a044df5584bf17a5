"""The inner loop of the join as machine code. Import this module only with numba.

The first pass counts the differing bits of a block of rows in a loop without branches, so that the compiler takes eight
rows per instruction. The block is looked at again only where its smallest count is within the radius.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from hbmp._core.compiled import compiled

_BLOCK = np.uint64(1024)  # rows of a first pass; their counts stay in the cache
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_MANY = np.uint64(1 << 62)


def _population_count(_context: Any, _word: Any) -> Any:
    """Of a 64-bit word."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_ones: Any = intrinsic(_population_count)


def _join(words, place, stop, radius, first, counts, rows, others, distances):  # noqa: PLR0912
    """Fill `rows`, `others` and `distances` until they are full or row `stop` is reached; the number of pairs."""
    n_words, found, room = np.uint64(words.shape[0]), 0, len(rows)
    row, begin = np.uint64(place[0]), np.uint64(place[1])
    while row < stop:
        while begin < row:
            width = min(_BLOCK, row - begin)
            if found + width > room:
                place[0], place[1] = row, begin
                return found
            least = _MANY
            mine, block = words[_ZERO, row], words[_ZERO, begin : begin + width]
            if first == _ONE:
                for b in range(width):
                    count = _ones(block[b] ^ mine)
                    counts[b] = count
                    least = min(least, count)
            else:
                mine2, block2 = words[_ONE, row], words[_ONE, begin : begin + width]
                for b in range(width):
                    count = _ones(block[b] ^ mine) + _ones(block2[b] ^ mine2)
                    counts[b] = count
                    least = min(least, count)
                for w in range(_TWO, first):
                    least = _MANY
                    mine, block = words[w, row], words[w, begin : begin + width]
                    for b in range(width):
                        count = counts[b] + _ones(block[b] ^ mine)
                        counts[b] = count
                        least = min(least, count)
            if least <= radius:
                for b in range(width):
                    total = counts[b]
                    if total <= radius:
                        for w in range(first, n_words):
                            total += _ones(words[w, begin + b] ^ words[w, row])
                        if total <= radius:
                            rows[found], others[found], distances[found] = row, begin + b, total
                            found += 1
            begin += width
        row += _ONE
        begin = _ZERO
    place[0] = stop
    return found


join: Any = compiled(_join)
