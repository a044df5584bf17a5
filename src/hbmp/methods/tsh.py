"""Two-step hashing: first the codes of the training samples, bit after bit, then a classifier for every bit.

The first step is free of the form of the hash function: any pairwise loss gives a binary quadratic problem a bit,
solved by its spectral relaxation and then a box-constrained search. The second step is a standard classification
problem.

    y_ij   similar     (n, n)   which training samples share a label
    Z      codes       (n, b)   found in step one
    a_ij   matrix      (n, n)   coefficients of one bit's problem, see `_bqp_losses`
    Φ      function_            features to codes, learned in step two

Reference: Lin, Shen, Suter & van den Hengel, A General Two-Step Approach to Learning-Based Hashing, ICCV 2013.
"""

from __future__ import annotations

from hbmp._core.seeds import as_generator, draw_seed
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.methods._shared.bqp_losses import infer_bits, sampled_rows, similar_pairs, total_loss
from hbmp.methods._shared.bqp_spectral import relaxed_signs
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.label_rows import label_rows


class TSH(Hasher):
    """Codes of a sample from pairs that share a label or not, then a function that gives them.

    Parameters
    ----------
    n_bits : length of the codes
    loss : "ksh" (inner products), "bre" (distances) or "hinge" (distances up to half the bits)
    function : "auto" (kernel), a name from `hbmp.functions` or an object from there. Departs from the publication,
        which trains support vector machines with RBF kernels, because those keep most samples: the kernel function is
        of the same form with a bounded number of anchors
    max_samples : more samples than this are drawn down to it; both steps see those alone
    steps : steps of the search in the box
    device : "auto", "cpu" or "cuda", for the function
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr
    """

    citation = "Lin et al., ICCV 2013"
    supervised = True
    smoke = {"function": Linear(epochs=2), "max_samples": 60, "steps": 5}
    search = {"loss": ["ksh", "bre", "hinge"]}

    def __init__(
        self,
        n_bits=32,
        *,
        loss="ksh",
        function="auto",
        max_samples=5000,
        steps=100,
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.loss = loss
        self.function = function
        self.max_samples = max_samples
        self.steps = steps
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X, y):
        need_counts(max_samples=self.max_samples, steps=self.steps)
        rng = as_generator(self.random_state)
        labels = label_rows(y)
        rows = sampled_rows(len(X), self.max_samples, rng)
        similar = similar_pairs(labels[rows])
        codes = infer_bits(similar, self.n_bits, self.loss, self._solve, rng)
        self.pair_loss_ = total_loss(self.loss, codes, similar, self.n_bits)
        self.function_ = make_function(self.function, X[rows], device=self.device, verbose=self.verbose)
        self.function_.fit(X[rows], codes, random_state=draw_seed(rng))
        self.unmatched_ = self.function_.unmatched(X[rows], codes)

    def _solve(self, matrix, rng):
        return relaxed_signs(matrix, rng, self.steps)

    def _project(self, X):
        return self.function_.project(X)
