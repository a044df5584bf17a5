"""Binary matrix pursuit: rebuild an affinity from sign vectors, one per step (HBMP Algorithm 1).

    R      affinity    (n, n) symmetric, in [-1, 1]               HBMP Eq. 3
    v_t    signs       (n,)   bit t of every item                 HBMP Eq. 6
    α      weights     (t,)   of all bits                         HBMP Eq. 10
    Q_t    residual    (n, n) R - Σ α_k v_k v_kᵀ, the part that t bits do not explain
    c      item weights (n,)  pairs count c_i c_j; 1 in the paper
    b      n_bits

Departs from Algorithm 1, line 3, by several spectral starts instead of one eigenvector. The start that lowers the
refitted residual most is used (docs/inference.md has the measurements). The line of the paper is `restarts=1` with
`improve="none"` or `"resample"`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hbmp._core.progress import parts, shown, steps
from hbmp.pursuit.bqp import improve_starts, one_flip
from hbmp.pursuit.codebook import CodeBook
from hbmp.pursuit.fit import HELD_ITEMS, Fit, solve_weights
from hbmp.pursuit.operator import as_operator
from hbmp.pursuit.settings import Settings, item_weights_from
from hbmp.pursuit.spectral import Eigenspace, canonical_signs, spectral_starts

_EXPLAINED = 1e-6  # a relative residual below this is rounding: everything is explained


def infer_codes(
    affinity: Any,
    n_bits: int | str,
    *,
    scheme: str = "regress",
    improve: str = "one-flip",
    item_weights: Any = None,
    diagonal: str = "ignore",
    tol: float = 0.0,
    random_state: int | np.random.Generator | None = 0,
    restarts: int | str = "auto",
    weighting: str = "least-squares",
    ridge: float = 1e-2,
    intercept: bool = False,
    refine: int = 0,
    max_residual: float = 0.1,
    max_bits: int = 256,
    device: str = "auto",
    progress: bool = False,
) -> CodeBook:
    """Infer target codes for the items of an affinity.

    Parameters
    ----------
    affinity : array-like of shape (n_items, n_items), or Affinity
        A symmetric array with values in [-1, 1], or a fitted affinity.
    n_bits : int or "auto"
        Length of the codes. "auto" adds bits until the relative residual is at most `max_residual`, or `max_bits` is
        reached.
    scheme : {"regress", "greedy", "constant"}, default="regress"
        Weights of the bits: all refitted in each step, the step size of HBMP Theorem 2, or unit steps on R scaled by
        `n_bits` (plain Hamming distance).
    improve : {"one-flip", "tabu", "resample", "none"}, default="one-flip"
        Local search for each bit. "resample" redraws at random until the match is positive.
    item_weights : {"count", "sqrt-count"}, array-like of shape (n_items,) or None, default=None
        Weights of the items: the number of instances, its square root, or given numbers. None weights all equally.
    diagonal : {"ignore", "fit"}, default="ignore"
        Whether the affinity of an item to itself is left out of the fit. "fit" is Eq. 10 of the paper.
    tol : float, default=0.0
        Relative residual at which to stop before `n_bits`; 0 always gives `n_bits`. With `tol <= 1e-6` the codes have
        at least one bit per pair of items: further bits explain the affinity again, and such codes tolerate more bit
        errors.
    random_state : int, Generator or None, default=0
        Seed of the starts in degenerate eigenspaces.
    restarts : int or "auto", default="auto"
        Spectral starts per bit.
    weighting : {"least-squares", "non-negative", "ridge"}, default="least-squares"
        Weights that "regress" reports: of least squares and least norm, non-negative, or shrunk and non-negative. The
        residual may rise slightly with "ridge". The search for bits always uses least squares.
    ridge : float, default=1e-2
        Penalty of "ridge", relative to the mean diagonal of the Gram matrix.
    intercept : bool, default=False
        Fit R ≈ Σ α_k v_k v_kᵀ + β with a free β, which does not change any ranking. Only for "regress".
    refine : int, default=0
        Passes after the greedy one that search every bit again, given all others.
    max_residual : float, default=0.1
        Relative residual at which `n_bits="auto"` stops.
    max_bits : int, default=256
        The most bits of `n_bits="auto"`.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where large dense affinities are multiplied.
    progress : bool, default=False
        Show a progress bar on stderr.

    Returns
    -------
    book : CodeBook
        Codes, weights and residuals.

    Examples
    --------
    Three classes, of which the first two are similar: their codes differ in fewer bits than the others.

    >>> import numpy as np
    >>> import hbmp
    >>> R = np.array([[1, 0.4, -1], [0.4, 1, -1], [-1, -1, 1]])
    >>> book = hbmp.infer_codes(R, 2)
    >>> book.codes
    array([[ 1,  1],
           [ 1, -1],
           [-1,  1]], dtype=int8)
    >>> book.relative_residuals.round(2)
    array([1.  , 0.33, 0.29])
    """
    settings = Settings(
        n_bits, scheme, improve, diagonal, restarts, weighting, ridge, intercept, refine, tol, max_residual, max_bits
    )
    operator = as_operator(affinity, device)
    weights = item_weights_from(item_weights, operator.affinity.counts_)
    fit = Fit(operator, weights, diagonal=diagonal, scale=settings.scale, intercept=intercept)
    pursuit = _Pursuit(fit, settings, np.random.default_rng(random_state))
    one = operator.n_items <= HELD_ITEMS  # a second thread gains little and spins while other processes are busy
    with shown("target codes", progress), threadpool_limits(1 if one else None, user_api="blas"):
        for take in parts([pursuit.run, *[pursuit.refine] * refine]):
            take()
    return pursuit.code_book(operator.affinity)


class _Pursuit:
    """The state of one run: the fit, the reported weights, and the bits already used."""

    def __init__(self, fit: Fit, settings: Settings, rng: np.random.Generator):
        self.fit, self.settings, self.rng = fit, settings, rng
        self.eigenspace = Eigenspace(fit.operator.n_items, fit.operator.dtype, rng, exact=not settings.searches)
        self.round_start = 0  # first bit of the present explanation of R
        self.taken: set[bytes] = set()
        self.weights = np.empty(0)  # of all directions
        self.residuals: list[float] = []
        self._set_weights()

    def run(self) -> None:
        """Add bits until there are `limit`, or the residual is small enough."""
        with steps(self.settings.limit, "bit") as done:
            while self.fit.n_bits < self.settings.limit and not self._is_enough():
                self._add_bit()
                done()

    def _is_enough(self) -> bool:
        enough, n_items = self.settings.enough, self.fit.operator.n_items
        bit_per_pair = self.fit.n_bits >= n_items * (n_items - 1) // 2
        met = enough > 0 and self.residuals[-1] <= enough * self.residuals[0]
        return met and (enough > _EXPLAINED or bit_per_pair)

    def _add_bit(self) -> None:
        signs, match = self._candidates()
        chosen = self._choose(signs, match)
        if chosen is None and self.settings.scheme == "regress":  # all is explained: begin another explanation
            self.round_start = self.fit.directions.shape[1]
            self._set_search_weights()
            signs, match = self._candidates()
            chosen = self._choose(signs, match)
        best = _first_of_largest(match) if chosen is None else chosen  # no new direction helps: one repeats
        self.fit.append(signs[:, best])  # HBMP Eq. 5; HBMP Alg. 1, line 8
        self.taken.add(signs[:, best].tobytes())
        if self.settings.scheme == "greedy":
            # Step size of HBMP Theorem 2, r / (n² L). Departs from its proof, where L bounds the norm of the gradient:
            # the gradient of f is 1-Lipschitz, so L = 1 satisfies the inequality used and is the exact line search.
            self.weights = np.append(self.weights, match[best] / self.fit.own_size)
        self._set_weights()

    def _candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Sign vectors for the next bit and their matches with the residual (HBMP Eq. 6; HBMP Alg. 1, lines 3-5)."""
        values, vectors = self.eigenspace.update(self.fit.residual_times)
        starts = spectral_starts(values, vectors, self.settings.starts(len(vectors)), self.rng)
        signs, match = improve_starts(self.settings.improve, self.fit, starts, self.rng)
        if self.settings.improve == "resample":
            signs, match = self._resample(signs, match)
        return signs, match + self.fit.diagonal_match()

    def _resample(self, signs: np.ndarray, match: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Improve step of the released code: random signs until the match is positive and the bit is new."""
        for _ in range(1000):
            if match[0] > 0 and signs[:, 0].tobytes() not in self.taken:
                break
            signs = canonical_signs(self.rng.standard_normal(len(signs)))[:, None]
            signs, match = improve_starts("none", self.fit, signs, self.rng)
        return signs, match

    def _choose(self, signs: np.ndarray, match: np.ndarray) -> int | None:
        """Index of the new candidate that lowers the residual most, or None if none lowers it."""
        fresh = np.array([column.tobytes() not in self.taken for column in signs.T])
        if self.settings.scheme == "regress":
            decrease = self.fit.decrease(signs, match, self._active())
        elif self.settings.scheme == "greedy":
            decrease = np.maximum(match, 0) ** 2 / self.fit.own_size  # of the squared residual: HBMP Eq. 8
        else:
            decrease = 2 * match - self.fit.own_size  # of a unit step
        decrease = np.where(fresh, decrease, 0.0)
        rounding = _EXPLAINED**2 * self.fit.squared_norm
        return _first_of_largest(decrease) if decrease.max() > rounding else None

    def _active(self) -> np.ndarray:
        """The directions of the present explanation of R: the intercept and the bits since `round_start`."""
        free = self.fit.free
        return np.r_[0:free, max(self.round_start, free) : self.fit.directions.shape[1]]

    def _set_weights(self) -> None:
        """Set the weights of all bits by the scheme and record the residual (HBMP Alg. 1, line 7)."""
        self.weights = self._weights_of_first(self.fit.directions.shape[1])
        self.residuals.append(self.fit.residual(self.weights))
        self._set_search_weights()

    def _weights_of_first(self, size: int) -> np.ndarray:
        """Weights of the first directions by the scheme: refitted, or as set in their step."""
        if self.settings.scheme == "regress":
            return self._solve(np.arange(size))
        return np.ones(size) if self.settings.scheme == "constant" else self.weights[:size]

    def _set_search_weights(self) -> None:
        """Set the weights that define the next residual: only the bits of the present explanation."""
        active, weights = self._active(), np.zeros(self.fit.directions.shape[1])
        solved = self.settings.weighting == "least-squares" and not self.round_start
        again = self.settings.scheme == "regress" and not solved
        weights[active] = self._solve(active, "least-squares") if again else self.weights[active]
        self.fit.weights = weights

    def refine(self) -> None:
        """One cyclic pass: search each bit again from its value, given all others; keep it if the residual falls."""
        fit = self.fit
        for position in parts(range(fit.free, fit.directions.shape[1])):
            others = np.delete(np.arange(fit.directions.shape[1]), position)
            before, best = fit.directions[:, position].copy(), fit.residual(self.weights)
            fit.weights = self._weights_without(position, others)
            field = fit.residual_times(before[:, None])[:, 0]
            signs = canonical_signs(one_flip(fit, before, field)[0].astype(float))
            if signs.tobytes() in self.taken:
                continue
            fit.replace(position, signs)
            weights = self._weights_of_first(fit.directions.shape[1])
            if fit.residual(weights) < best * (1 - 1e-9):
                self.taken.discard(before.astype(np.int8).tobytes())
                self.taken.add(signs.tobytes())
                self.weights = weights
            else:
                fit.replace(position, before)
        self._recompute_residuals()

    def _weights_without(self, position: int, others: np.ndarray) -> np.ndarray:
        weights = self.weights.copy()
        if self.settings.scheme == "regress":
            weights[others] = self._solve(others)
        weights[position] = 0
        return weights

    def _solve(self, directions: np.ndarray, weighting: str | None = None) -> np.ndarray:
        """Regressed weights of a subset of the directions."""
        part, settings = np.ix_(directions, directions), self.settings
        gram, match = self.fit.gram[part], self.fit.match[directions]
        return solve_weights(gram, match, weighting or settings.weighting, settings.ridge, self.fit.free)

    def _recompute_residuals(self) -> None:
        """The residual of every prefix, after earlier bits have changed."""
        fit = self.fit
        for size in range(fit.free, fit.directions.shape[1] + 1):
            self.residuals[size - fit.free] = fit.residual(self._weights_of_first(size))

    def code_book(self, affinity: Any) -> CodeBook:
        """The result, without the working state."""
        fit, free = self.fit, self.fit.free
        return CodeBook(
            codes=np.ascontiguousarray(fit.directions[:, free:].astype(np.int8)),
            weights=self.weights[free:].copy(),
            residuals=np.array(self.residuals),
            intercept=float(self.weights[0]) if free else 0.0,
            scale=fit.scale,
            scheme=self.settings.scheme,
            weighting=self.settings.weighting,
            ridge=self.settings.ridge,
            item_weights=None if (fit.item_weights == 1).all() else fit.item_weights,
            gram=fit.gram,
            match=fit.match,
            affinity=affinity,
        )


def _first_of_largest(values: np.ndarray) -> int:
    """The first of the largest values. Rounding must not decide between equal ones."""
    return int(np.argmax(values >= values.max() - 1e-7 * np.abs(values.max())))
