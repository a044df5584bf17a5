"""Two-step hashing with stronger solvers: each bit by semidefinite relaxation, or by an augmented Lagrangian.

The codes of the training samples should reproduce which pairs are similar. With all other bits fixed one bit is a
binary quadratic problem; bits are found one by one and then each again, given all others. A function learns
the codes.

    S      similar     (n, n)   +1 where two samples share a label, -1 elsewhere
    Z      codes       (n, b)
    A      matrix      (n, n)   inner products of the other bits - b S, 0 on the diagonal
    loss_                       mean of (b S - Z Zᵀ)² over pairs, after the first pass and after each sweep

Reference: Do, Doan, Nguyen & Cheung, Binary Hashing with Semidefinite Relaxation and Augmented Lagrangian, ECCV 2016.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.methods._shared.bqp_lifted import enough_rank, lagrangian_signs, relaxed_vectors, rounded
from hbmp.methods._shared.bqp_losses import bqp_value, coefficients, infer_bits, sampled_rows, similar_pairs, total_loss
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.label_rows import label_rows


def sweep_bits(
    similar: np.ndarray,
    codes: np.ndarray,
    solve: Callable[[Any, np.random.Generator], np.ndarray],
    rng: np.random.Generator,
) -> np.ndarray:
    """Find every bit again, given all others, and keep it where the loss falls: codes that are never worse."""
    codes, n_bits = codes.copy(), codes.shape[1]
    signs = codes.astype(np.float32)
    for bit in range(n_bits):
        others = np.delete(signs, bit, axis=1)
        distances = ((n_bits - 1 - others @ others.T) / 2).astype(np.int16)
        matrix = coefficients("ksh", distances, similar, n_bits - 1, n_bits)
        found = solve(matrix, rng)
        if bqp_value(matrix, found) < bqp_value(matrix, codes[:, bit]):
            codes[:, bit], signs[:, bit] = found, found
    return codes


class SDR(Hasher):
    """Codes that reproduce pairwise similarities, found by semidefinite relaxation, then a function that predicts them.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    solver : {"sdr", "al"}, default="sdr"
        Semidefinite relaxation with Gaussian rounding, or augmented Lagrangian.
    function : str or HashFunction, default="auto"
        Hash function, by name or as an object. "auto" is a kernel, or an MLP from 20,000 samples.
    sweeps : int, default=1
        Passes that search every bit again, given all others.
    rank : int or None, default=32
        Columns of the factor of the semidefinite matrix. None takes about √(2n), as the theory requires; on classes
        32 gave the same bits in half the time.
    draws : int, default=100
        Gaussian vectors per bit, of which the best is kept.
    max_samples : int, default=5000
        The most samples to train on. Larger data is sampled.
    steps : int, default=50
        Steps of a continuous search.
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
    loss_ : list of float
        Mean squared error over pairs after the first pass and each sweep.

    Notes
    -----
    Departs from the publication, which trains support vector machines.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import SDR
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = SDR(8, steps=5, draws=10, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Do et al., ECCV 2016"
    supervised = True
    smoke = {"function": Linear(epochs=2), "max_samples": 60, "steps": 5, "draws": 5}
    search = {"solver": ["sdr", "al"]}
    never_rises = "loss_"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        solver: str = "sdr",
        function: str | HashFunction = "auto",
        sweeps: int = 1,
        rank: int | None = 32,
        draws: int = 100,
        max_samples: int = 5000,
        steps: int = 50,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.solver = solver
        self.function = function
        self.sweeps = sweeps
        self.rank = rank
        self.draws = draws
        self.max_samples = max_samples
        self.steps = steps
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, y: Any) -> None:
        if self.solver not in ("sdr", "al"):
            raise ValueError(f"solver must be 'sdr' or 'al', found {self.solver!r}.")
        need_counts(draws=self.draws, max_samples=self.max_samples, steps=self.steps)
        if self.rank is not None:
            need_counts(rank=self.rank)
        if self.sweeps != 0:
            need_counts(sweeps=self.sweeps)
        rng = as_generator(self.random_state)
        labels = label_rows(y)
        rows = sampled_rows(len(X), self.max_samples, rng)
        similar = similar_pairs(labels[rows])
        codes = infer_bits(similar, self.n_bits, "ksh", self._solve, rng)
        self.loss_ = [total_loss("ksh", codes, similar, self.n_bits)]
        for _ in range(self.sweeps):
            codes = sweep_bits(similar, codes, self._solve, rng)
            self.loss_.append(total_loss("ksh", codes, similar, self.n_bits))
        self.function_ = make_function(self.function, X[rows], device=self.device, verbose=self.verbose)
        self.function_.fit(X[rows], codes, random_state=draw_seed(rng))
        self.unmatched_ = self.function_.unmatched(X[rows], codes)

    def _solve(self, matrix: Any, rng: np.random.Generator) -> np.ndarray:
        if self.solver == "al":
            return lagrangian_signs(matrix, rng, self.steps)
        rank = enough_rank(len(matrix)) if self.rank is None else self.rank
        return rounded(matrix, relaxed_vectors(matrix, rank, rng, self.steps), self.draws, rng)

    def _project(self, X: Any) -> np.ndarray:
        return self.function_.project(X)
