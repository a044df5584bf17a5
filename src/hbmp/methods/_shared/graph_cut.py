"""Block graph cuts: min zᵀAz over z in {-1, +1}ⁿ, one block of items after the other, each block solved exactly.

Where all coefficients inside a block are at most 0 the problem of that block, with all other signs fixed, is
submodular: a minimum cut of a small graph solves it. Items that are similar to each other make such blocks (Lin et
al., CVPR 2014).

    A      matrix   (n, n)   symmetric, zero diagonal, dense or sparse
    z      signs    (n,)     int8
    u      pull     (k,)     what the items outside the block add up to, A[block, outside] z[outside]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from hbmp.methods._shared.bqp_losses import bqp_value

_CAPACITY = 2.0**29  # all capacities of a graph add up to less: the flow is counted in 32 bits


def similar_blocks(similar: np.ndarray, rng: np.random.Generator, most: int) -> list[np.ndarray]:
    """Blocks of at most `most` mutually similar items, every item in one.

    A block starts with an item that is in none yet and takes in others as long as they are similar to all of it.
    Departs from the publication, where blocks may overlap: each item is solved once a sweep, because with overlaps the
    blocks of many label sets grow far beyond the number of items.
    """
    waiting, blocks = np.ones(len(similar), dtype=bool), []
    for seed in rng.permutation(len(similar)):
        if not waiting[seed]:
            continue
        block, fitting = [seed], similar[seed] & waiting
        fitting[seed] = False
        while len(block) < most and fitting.any():
            block.append(int(fitting.argmax()))
            fitting &= similar[block[-1]]
            fitting[block[-1]] = False
        waiting[block] = False
        blocks.append(np.sort(np.array(block)))
    return blocks


def minimum_cut(pull: np.ndarray, within: np.ndarray) -> np.ndarray:
    """The signs that minimise zᵀ(within)z + 2 zᵀ(pull), exact to rounding. within: (k, k), no entry above 0.

    A pair that differs costs -a_ij more than one that agrees, an item at +1 costs u_i more than at -1, all divided by
    4. Items on the side of the source get +1.
    """
    n_items = len(pull)
    source, sink = n_items, n_items + 1
    left, right = np.nonzero(within)
    apart, towards, against = -within[left, right], np.maximum(-pull, 0), np.maximum(pull, 0)
    total = float(apart.sum(dtype=np.float64) + towards.sum(dtype=np.float64) + against.sum(dtype=np.float64))
    if total == 0:
        return np.ones(n_items, dtype=np.int8)
    scale = 2.0 ** np.floor(np.log2(_CAPACITY / total))  # a power of two: whole numbers stay exact
    items = np.arange(n_items)
    tails = np.concatenate([left, np.full(n_items, source), items])
    heads = np.concatenate([right, items, np.full(n_items, sink)])
    capacities = np.rint(np.concatenate([apart, towards, against]).astype(np.float64) * scale).astype(np.int32)
    graph = csr_matrix((capacities, (tails, heads)), shape=(n_items + 2, n_items + 2))
    graph.eliminate_zeros()
    residual = graph - maximum_flow(graph, source, sink).flow
    residual.eliminate_zeros()
    signs = np.full(n_items, -1, dtype=np.int8)
    reached = breadth_first_order(residual, source, return_predecessors=False)
    signs[reached[reached < n_items]] = 1
    return signs


def block_graph_cut(matrix: Any, signs: np.ndarray, blocks: list[np.ndarray], sweeps: int) -> np.ndarray:
    """Solve block after block, all of them `sweeps` times or until none changes: signs never worse than the start."""
    signs = signs.copy()
    for _ in range(sweeps):
        changed = False
        for block in blocks:
            rows = matrix[block]
            within = rows[:, block].toarray() if issparse(rows) else rows[:, block]
            before = signs[block]
            pull = rows @ signs.astype(matrix.dtype) - within @ before.astype(matrix.dtype)
            after = minimum_cut(pull, within)
            if _block_value(within, pull, after) < _block_value(within, pull, before):
                signs[block], changed = after, True
        if not changed:
            break
    return signs


def _block_value(within: Any, pull: np.ndarray, signs: np.ndarray) -> float:
    return bqp_value(within, signs) + 2 * float(signs.astype(np.float64) @ pull.astype(np.float64))
