"""FastHash: codes by block graph cuts, hash functions of boosted trees, and every bit corrected before the next.

The problem of a bit is submodular within groups of similar samples, so that minimum cuts solve it group by group. Trees
then learn the bit, and what they give replaces it: the bits after make up for what the trees could not learn.

    y_ij   similar      (n, n)   which training samples share a label
    a_ij   matrix       (n, n)   coefficients of one bit's problem, see `_bqp_losses`
    z      signs        (n,)     the bit as the cuts find it
    h_r    functions_            one ensemble a bit; h_r(X) is the bit that later ones build on

References: Lin et al., Fast Supervised Hashing with Decision Trees for High-Dimensional Data, CVPR 2014; Lin, Shen &
van den Hengel, Supervised Hashing Using Graph Cuts and Boosted Decision Trees, TPAMI 2015.
"""

from __future__ import annotations

import numpy as np

from hbmp import hamming
from hbmp._core.seeds import as_generator, draw_seed
from hbmp.functions.trees import Trees
from hbmp.hasher import Hasher
from hbmp.methods._shared.bqp_losses import add_bit, coefficients, sampled_rows, similar_pairs
from hbmp.methods._shared.bqp_spectral import spectral_signs
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.graph_cut import block_graph_cut, similar_blocks
from hbmp.methods._shared.label_rows import label_rows


class FastHash(Hasher):
    """Bits by graph cuts over groups of similar samples, learned by boosted trees one after the other.

    Parameters
    ----------
    n_bits : length of the codes
    loss : "ksh" (inner products), "bre" (distances) or "hinge" (distances up to half the bits)
    function : "auto" (200 boosted trees of 16 leaves, the publication's depth of 4, each split looking at a tenth of
        the features), a name from `hbmp.functions` or an object from there. Departs from the publication's AdaBoost
        with quantised features and weight trimming: histogram gradient boosting, its faster descendant, which
        quantises too
    sweeps : how often all groups are solved for a bit
    max_block : groups larger than this are split
    correct : let the learned bit replace the found one before the next
    max_samples : more samples than this are drawn down to it; both steps see those alone
    device : "auto", "cpu" or "cuda", for functions that use one
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr
    """

    citation = "Lin et al., CVPR 2014"
    supervised = True
    smoke = {"function": Trees(n_trees=2), "max_samples": 60}
    search = {"loss": ["ksh", "bre", "hinge"]}

    def __init__(
        self,
        n_bits=32,
        *,
        loss="ksh",
        function="auto",
        sweeps=2,
        max_block=500,
        correct=True,
        max_samples=5000,
        device="auto",
        random_state=None,
        verbose=False,
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

    def _fit(self, X, y):
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

    def _function(self, X):
        if isinstance(self.function, str) and self.function == "auto":
            return Trees(n_trees=200, max_leaf_nodes=16, max_features=0.1)
        return make_function(self.function, X, device=self.device, verbose=self.verbose)

    def _project(self, X):
        return np.hstack([function.project(X) for function in self.functions_])
