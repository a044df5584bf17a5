"""How well codes distinguish items: distinct codes, tied first results, items that find themselves.

Class codes can score a perfect mAP with one code per class. These measures show it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hbmp import hamming
from hbmp.metrics.ranking import RankedList, make_ranker, score_queries
from hbmp.metrics.relevance import Graded
from hbmp.metrics.settings import mean_of


def distinct_codes(codes: ArrayLike) -> int:
    """Number of different codes.

    Parameters
    ----------
    codes : array of shape (n, n_bits)
        Signs.

    Examples
    --------
    >>> from hbmp.metrics import distinct_codes
    >>> distinct_codes([[1, 1], [1, -1], [1, 1]])
    2
    """
    packed = hamming.pack(codes)
    return len(np.unique(packed, axis=0))


def tied_share(
    query_codes: ArrayLike, database_codes: ArrayLike, *, k: int = 10, bit_weights: ArrayLike | None = None
) -> float:
    """Share of queries whose first k results are all at one distance, so that their order is arbitrary.

    Parameters
    ----------
    query_codes : array of shape (n_queries, n_bits)
        Signs, or real-valued scores.
    database_codes : array of shape (n_database, n_bits)
        Signs.
    k : int, default=10
        Number of results, or the whole database if it is smaller.
    bit_weights : array of shape (n_bits,), default=None
        Weights of the Hamming distance.

    Examples
    --------
    >>> from hbmp.metrics import tied_share
    >>> tied_share([[1, 1], [-1, -1]], [[1, 1], [1, 1], [-1, 1]], k=2)
    0.5
    """
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    nothing = Graded(lambda start, stop: np.zeros((stop - start, ranker.shape[1]), np.uint8), ranker.shape)
    k = min(int(k), ranker.shape[1])

    def all_tied(ranked: RankedList) -> bool:
        level = np.searchsorted(ranked.bounds, [0, k - 1], side="right")
        return bool(level[0] == level[1])

    return mean_of(np.array(score_queries(ranker, nothing, all_tied), dtype=np.float64))


def self_first_share(codes: ArrayLike, vectors: ArrayLike | None = None) -> float:
    """Share of indexed items that come first when they are searched again, equal distances in database order.

    With positive bit weights an item is at distance 0 from its own code alone, so it comes first where no earlier item
    has its code. This holds for real-valued queries whose signs are the code, too.

    Parameters
    ----------
    codes : array of shape (n, n_bits)
        Signs of the indexed items, in database order.
    vectors : array of shape (n, d), default=None
        The original vectors. If given, an item also counts as found where the first item of its code has the same
        vector, since no code can distinguish them.

    Examples
    --------
    >>> from hbmp.metrics import self_first_share
    >>> self_first_share([[1, 1], [1, -1], [1, 1], [-1, 1]])
    0.75
    """
    packed = hamming.pack(codes)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    leader = first[inverse.reshape(-1)]
    found = leader == np.arange(len(packed))
    if vectors is not None:
        table = np.asarray(vectors)
        found |= (table[leader] == table).all(axis=1)
    return mean_of(found.astype(np.float64))
