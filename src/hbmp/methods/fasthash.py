"""FastHash: codes by block graph cuts, hash functions of boosted trees, and every bit corrected before the next.

The problem of a bit is submodular within groups of similar samples, so that minimum cuts solve it group by group. Trees
then learn the bit, and their output replaces it, so that later bits compensate for errors of the trees.

    y_ij   similar      (n, n)   which training samples share a label
    a_ij   matrix       (n, n)   coefficients of one bit's problem, see `bqp_losses`
    z      signs        (n,)     the bit as the cuts find it
    h_r    functions_            one ensemble per bit; later bits build on h_r(X)

References: Lin et al., Fast Supervised Hashing with Decision Trees for High-Dimensional Data, CVPR 2014; Lin, Shen &
van den Hengel, Supervised Hashing Using Graph Cuts and Boosted Decision Trees, TPAMI 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp import hamming
from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp.functions import HashFunction
from hbmp.functions.trees import Trees
from hbmp.hasher import Hasher
from hbmp.methods._shared.bqp_losses import add_bit, coefficients, sampled_rows, similar_pairs
from hbmp.methods._shared.bqp_spectral import spectral_signs
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.graph_cut import block_graph_cut, similar_blocks
from hbmp.methods._shared.label_rows import label_rows


class FastHash(Hasher):
    """Bits found by graph cuts over groups of similar samples and learned by boosted trees, one by one.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    loss : {"ksh", "bre", "hinge"}, default="ksh"
        Pairwise loss: of inner products, of distances, or of distances up to half the bits.
    function : str or HashFunction, default="auto"
        Hash function of each bit. "auto" is 200 boosted trees of 16 leaves.
    sweeps : int, default=2
        Passes over all groups per bit.
    max_block : int, default=500
        Largest group. Larger ones are split.
    correct : bool, default=True
        Whether the learned bit replaces the found one before the next bit.
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
        One fitted function per bit.
    unmatched_ : float
        Bit error rate of the functions on the training samples.

    Notes
    -----
    Departs from the AdaBoost of the publication, which has quantised features and weight trimming, by histogram
    gradient boosting, which quantises too. Leaves and features per split match the depth of 4 and the tenth of the
    features there.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import FastHash
    >>> from hbmp.functions import Trees
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = FastHash(8, function=Trees(n_trees=5), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Lin et al., CVPR 2014"
    supervised = True
    smoke = {"function": Trees(n_trees=2), "max_samples": 60}
    search = {"loss": ["ksh", "bre", "hinge"]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "ksh",
        function: str | HashFunction = "auto",
        sweeps: int = 2,
        max_block: int = 500,
        correct: bool = True,
        max_samples: int = 5000,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.loss = loss
        self.function = function
        self.sweeps = sweeps
        self.max_block = max_block
        self.correct = correct
        self.max_samples = max_samples
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, y: Any) -> None:
        need_counts(sweeps=self.sweeps, max_block=self.max_block, max_samples=self.max_samples)
        rng = as_generator(self.random_state)
        labels = label_rows(y)
        rows = sampled_rows(len(X), self.max_samples, rng)
        X, similar = X[rows], similar_pairs(labels[rows])
        blocks = similar_blocks(similar, rng, self.max_block)
        distances = np.zeros(similar.shape, dtype=np.int16)
        self.functions_, unmatched = [], []
        for bit in range(self.n_bits):
            matrix = coefficients(self.loss, distances, similar, bit, self.n_bits)
            start = spectral_signs(matrix, rng)
            target = block_graph_cut(matrix, start, blocks, self.sweeps)
            function = self._function(X).fit(X, target[:, None], random_state=draw_seed(rng))
            learned = hamming.signs(function.project(X)[:, 0])
            unmatched.append(float((learned != target).mean()))
            add_bit(distances, learned if self.correct else target)
            self.functions_.append(function)
        self.unmatched_ = float(np.mean(unmatched))

    def _function(self, X: Any) -> HashFunction:
        if isinstance(self.function, str) and self.function == "auto":
            return Trees(n_trees=200, max_leaf_nodes=16, max_features=0.1)
        return make_function(self.function, X, device=self.device, verbose=self.verbose)

    def _project(self, X: Any) -> np.ndarray:
        return np.hstack([function.project(X) for function in self.functions_])
