"""Two-step hashing with stronger solvers: each bit by semidefinite relaxation, or by an augmented Lagrangian.

The codes of the training samples should reproduce which pairs are similar. With all other bits fixed one bit is a
binary quadratic problem; bits are found one after the other and then each again, given all others. A function learns
the codes.

    S      similar     (n, n)   +1 where two samples share a label, -1 elsewhere
    Z      codes       (n, b)
    A      matrix      (n, n)   inner products of the other bits - b S, 0 on the diagonal
    loss_                       mean of (b S - Z Zᵀ)² over pairs, after the first pass and after each sweep

Reference: Do, Doan, Nguyen & Cheung, Binary Hashing with Semidefinite Relaxation and Augmented Lagrangian, ECCV 2016.
"""

from __future__ import annotations

import numpy as np

from hbmp._core.seeds import as_generator, draw_seed
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.methods._shared.bqp_lifted import enough_rank, lagrangian_signs, relaxed_vectors, rounded
from hbmp.methods._shared.bqp_losses import bqp_value, coefficients, infer_bits, sampled_rows, similar_pairs, total_loss
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.label_rows import label_rows


def sweep_bits(similar: np.ndarray, codes: np.ndarray, solve, rng) -> np.ndarray:
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
    """Codes of a sample that reproduce its similar pairs, then a function that gives them.

    Parameters
    ----------
    n_bits : length of the codes
    solver : "sdr" (semidefinite relaxation, Gaussian rounding) or "al" (augmented Lagrangian)
    function : "auto" (kernel), a name from `hbmp.functions` or an object from there; the publication trains support
        vector machines
    sweeps : how often every bit is found again, given all others
    rank : columns of the factor that stands for the semidefinite matrix, or None for as many as the theory asks for,
        about √(2n); on classes 32 gave the same bits in half the time
    draws : Gaussian vectors tried for a bit, of which the best is kept
    max_samples : more samples than this are drawn down to it; both steps see those alone
    steps : steps of a continuous search
    device : "auto", "cpu" or "cuda", for the function
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr
    """

    citation = "Do et al., ECCV 2016"
    supervised = True
    smoke = {"function": Linear(epochs=2), "max_samples": 60, "steps": 5, "draws": 5}
    search = {"solver": ["sdr", "al"]}
    never_rises = "loss_"

    def __init__(
        self,
        n_bits=32,
        *,
        solver="sdr",
        function="auto",
        sweeps=1,
        rank=32,
        draws=100,
        max_samples=5000,
        steps=50,
        device="auto",
        random_state=None,
        verbose=False,
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

    def _fit(self, X, y):
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

    def _solve(self, matrix, rng):
        if self.solver == "al":
            return lagrangian_signs(matrix, rng, self.steps)
        rank = enough_rank(len(matrix)) if self.rank is None else self.rank
        return rounded(matrix, relaxed_vectors(matrix, rank, rng, self.steps), self.draws, rng)

    def _project(self, X):
        return self.function_.project(X)
