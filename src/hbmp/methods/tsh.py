"""Two-step hashing: first the codes of the training samples, bit after bit, then a classifier for every bit.

The first step is free of the form of the hash function: any pairwise loss gives a binary quadratic problem a bit,
solved by its spectral relaxation and then a box-constrained search. The second step is a standard classification
problem.

    y_ij   similar     (n, n)   which training samples share a label
    Z      codes       (n, b)   found in step one
    a_ij   matrix      (n, n)   coefficients of one bit's problem, see `bqp_losses`
    Φ      function_            features to codes, learned in step two

Reference: Lin, Shen, Suter & van den Hengel, A General Two-Step Approach to Learning-Based Hashing, ICCV 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.methods._shared.bqp_losses import infer_bits, sampled_rows, similar_pairs, total_loss
from hbmp.methods._shared.bqp_spectral import relaxed_signs
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.label_rows import label_rows


class TSH(Hasher):
    """Two-step hashing: codes from pairs that share a label or not, then a function that predicts them.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    loss : {"ksh", "bre", "hinge"}, default="ksh"
        Pairwise loss: of inner products, of distances, or of distances up to half the bits.
    function : str or HashFunction, default="auto"
        Hash function, by name or as an object. "auto" is a kernel, or an MLP from 20,000 samples.
    max_samples : int, default=5000
        The most samples to train on. Larger data is sampled.
    steps : int, default=100
        Steps of the box-constrained search.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where gradients are computed.
    random_state : int, Generator, RandomState or None, default=None
        Seed. The same seed gives the same model.
    verbose : bool, default=False
        Show progress on stderr.

    Attributes
    ----------
    function_ : HashFunction
        The fitted hash function.
    unmatched_ : float
        Bit error rate of the function on the training samples.
    pair_loss_ : float
        Pairwise loss of the codes.

    Notes
    -----
    Departs from the publication, which trains support vector machines with RBF kernels. Those keep most samples; the
    kernel function has the same form with a bounded number of anchors.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import TSH
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = TSH(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Lin et al., ICCV 2013"
    supervised = True
    smoke = {"function": Linear(epochs=2), "max_samples": 60, "steps": 5}
    search = {"loss": ["ksh", "bre", "hinge"]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        loss: str = "ksh",
        function: str | HashFunction = "auto",
        max_samples: int = 5000,
        steps: int = 100,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.loss = loss
        self.function = function
        self.max_samples = max_samples
        self.steps = steps
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, y: Any) -> None:
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

    def _solve(self, matrix: Any, rng: np.random.Generator) -> np.ndarray:
        return relaxed_signs(matrix, rng, self.steps)

    def _project(self, X: Any) -> np.ndarray:
        return self.function_.project(X)
