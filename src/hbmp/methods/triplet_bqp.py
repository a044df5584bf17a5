"""Binary embedding from triplets: the bits as quadratic problems, a function for each group of bits.

A query should be nearer to a sample that shares a label than to one that does not, by a margin that grows with the
bits. With the bits before fixed, the loss of a triplet depends on three products of its new bits, and exactly so: all
triplets together are one binary quadratic problem, solved by block graph cuts. Once a group of bits is found a
function learns them, and what it gives takes their place before the next group.

    q, p, s   triplets    (t,) each   query, positive, negative
    D         gap         (t,)        distance to the negative - distance to the positive, of the bits before
    m         margin                  half the number of bits, this one included
    A         matrix      (n, n)      sparse, zero diagonal; no entry of a similar pair is above 0
    z         signs       (n,)        the new bit

Reference: Zhuang, Lin, Shen & Reid, Fast Training of Triplet-Based Deep Binary Embedding Networks, CVPR 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from hbmp import hamming
from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.methods._shared.bqp_losses import sampled_rows, similar_pairs
from hbmp.methods._shared.bqp_spectral import spectral_signs
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.graph_cut import block_graph_cut, similar_blocks
from hbmp.methods._shared.label_rows import label_rows


def draw_triplets(similar: np.ndarray, each: int, rng: np.random.Generator) -> np.ndarray:
    """Triplets (3, t): `each` for every query that has a negative; a query without another positive is its own."""
    queries, positives, negatives = [], [], []
    for query, row in enumerate(similar):
        far, near = np.flatnonzero(~row), np.flatnonzero(row)
        if len(far) == 0:
            continue
        near = near[near != query] if len(near) > 1 else near
        queries.append(np.full(each, query))
        positives.append(near[rng.integers(len(near), size=each)])
        negatives.append(far[rng.integers(len(far), size=each)])
    if not queries:
        raise ValueError("Every two samples share a label: triplets need samples that share none.")
    return np.stack([np.concatenate(part) for part in (queries, positives, negatives)])


def triplet_gaps(codes: np.ndarray, triplets: np.ndarray) -> np.ndarray:
    """D of each triplet for codes (n, r), float32."""
    query, positive, negative = (codes[part].astype(np.float32) for part in triplets)
    return (np.einsum("tr,tr->t", query, positive) - np.einsum("tr,tr->t", query, negative)) / 2


def triplet_matrix(triplets: np.ndarray, gaps: np.ndarray, margin: float, n_items: int) -> csr_array:
    """A such that the triplet losses Σ max(0, margin - gap) after the new bit are zᵀAz plus a constant.

    The four patterns of signs that matter: all agree or only the query differs (gap stays), only the positive differs
    (gap - 1), only the negative differs (gap + 1). Three products and a constant meet all four values.
    """
    stays, falls, rises = (np.maximum(0, margin - gaps + change) for change in (0, 1, -1))
    pull = (rises - falls) / 4  # query with positive, at most 0; with the negative the opposite
    side = (2 * stays - falls - rises) / 4  # positive with negative, at most 0
    query, positive, negative = triplets
    tails = np.concatenate([query, query, positive])
    heads = np.concatenate([positive, negative, negative])
    values = np.concatenate([pull, -pull, side]).astype(np.float32) / 2
    values[tails == heads] = 0  # a query that is its own positive
    matrix = csr_array((np.r_[values, values], (np.r_[tails, heads], np.r_[heads, tails])), shape=(n_items, n_items))
    matrix.eliminate_zeros()
    return matrix


class TripletBQP(Hasher):
    """Bits from triplets by block graph cuts, in groups that a function learns one by one.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    group : int, default=8
        Bits found before the function learns them and its codes replace them.
    function : str or HashFunction, default="auto"
        Hash function, by name or as an object. "auto" is a kernel, or an MLP from 20,000 samples.
    triplets : int, default=50
        Triplets drawn per sample, anew for every group.
    sweeps : int, default=1
        Passes over all blocks of similar samples per bit. The publication has one.
    max_block : int, default=500
        Largest block. Larger ones are split.
    max_samples : int, default=5000
        The most samples to train on. Larger data is sampled.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where gradients are computed.
    random_state : int, Generator, RandomState or None, default=None
        Seed. The same seed gives the same model.
    verbose : bool, default=False
        Show progress on stderr.

    Attributes
    ----------
    functions_ : list of HashFunction
        One fitted function per group of bits.
    unmatched_ : float
        Bit error rate of the functions on the training samples.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import TripletBQP
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = TripletBQP(8, triplets=10, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Zhuang et al., CVPR 2016"
    supervised = True
    smoke = {"function": Linear(epochs=2), "max_samples": 60, "triplets": 5, "group": 3}
    search = {"group": [4, 8, 16], "triplets": [20, 50]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        group: int = 8,
        function: str | HashFunction = "auto",
        triplets: int = 50,
        sweeps: int = 1,
        max_block: int = 500,
        max_samples: int = 5000,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.group = group
        self.function = function
        self.triplets = triplets
        self.sweeps = sweeps
        self.max_block = max_block
        self.max_samples = max_samples
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, y: Any) -> None:
        need_counts(group=self.group, triplets=self.triplets, sweeps=self.sweeps)
        need_counts(max_block=self.max_block, max_samples=self.max_samples)
        rng = as_generator(self.random_state)
        labels = label_rows(y)
        rows = sampled_rows(len(X), self.max_samples, rng)
        X, similar = X[rows], similar_pairs(labels[rows])
        blocks = similar_blocks(similar, rng, self.max_block)
        codes = np.empty((len(X), self.n_bits), dtype=np.int8)
        self.functions_, wrong = [], 0
        for first in range(0, self.n_bits, self.group):
            bits = slice(first, min(first + self.group, self.n_bits))
            triplets = draw_triplets(similar, self.triplets, rng)
            for bit in range(bits.start, bits.stop):
                gaps = triplet_gaps(codes[:, :bit], triplets)
                matrix = triplet_matrix(triplets, gaps, (bit + 1) / 2, len(X))
                start = spectral_signs(matrix, rng)
                codes[:, bit] = block_graph_cut(matrix, start, blocks, self.sweeps)
            function = make_function(self.function, X, device=self.device, verbose=self.verbose)
            function.fit(X, codes[:, bits], random_state=draw_seed(rng))
            learned = hamming.signs(function.project(X))
            wrong += int((learned != codes[:, bits]).sum())
            codes[:, bits] = learned
            self.functions_.append(function)
        self.unmatched_ = wrong / codes.size

    def _project(self, X: Any) -> np.ndarray:
        return np.hstack([function.project(X) for function in self.functions_])
