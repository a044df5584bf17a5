"""Binary matrix pursuit: rebuild an affinity from sign vectors, one per step (HBMP Algorithm 1).

    R      affinity    (n, n) symmetric, in [-1, 1]               HBMP Eq. 3
    v_t    signs       (n,)   bit t of every item                 HBMP Eq. 6
    α      weights     (t,)   of all bits                         HBMP Eq. 10
    Q_t    residual    (n, n) R - Σ α_k v_k v_kᵀ, what t bits leave unexplained
    c      item weights (n,)  pairs count c_i c_j; 1 in the paper
    b      n_bits

Departs from Algorithm 1, line 3, by several spectral starts instead of one eigenvector, of which the one that
lowers the refitted residual most is taken (docs/inference.md has the measurements; `restarts=1` and
`improve="none"` or `"resample"` is the paper's line).
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from hbmp.pursuit.bqp import improve_starts, one_flip
from hbmp.pursuit.codebook import CodeBook
from hbmp.pursuit.fit import SMALL_ITEMS, Fit, solve_weights
from hbmp.pursuit.operator import as_operator
from hbmp.pursuit.settings import Settings, item_weights_from
from hbmp.pursuit.spectral import Eigenspace, canonical_signs, spectral_starts

_EXPLAINED = 1e-6  # a relative residual below this is rounding: everything is explained


def infer_codes(
    affinity,
    n_bits,
    *,
    scheme="regress",
    improve="one-flip",
    item_weights=None,
    diagonal="ignore",
    tol=1e-6,
    random_state=0,
    restarts="auto",
    weighting="least-squares",
    ridge=1e-2,
    intercept=False,
    refine=0,
    max_residual=0.1,
    max_bits=256,
    device="auto",
    progress=False,
) -> CodeBook:
    """Target codes for the items of an affinity.

    Parameters
    ----------
    affinity : symmetric array in [-1, 1], or a fitted Affinity
    n_bits : int, or "auto" to add bits until the relative residual is at most `max_residual` (or `max_bits` is hit)
    scheme : "regress" (all weights refitted each step), "greedy" (the step size of HBMP Theorem 2), "constant" (R
        scaled by n_bits, unit steps: plain Hamming distance)
    improve : "none", "resample" (redraw at random until the match is positive), "one-flip", "tabu"
    item_weights : None, "count", "sqrt-count" (instances behind an item), or an array (items,) of positive numbers
    diagonal : "ignore" leaves the affinity of an item to itself out of the fit; "fit" is the paper's Eq. 10
    tol : stop before n_bits once the relative residual is at most this. A perfect fit (tol <= 1e-6) does not stop
        before there is a bit for every pair of items, and tol=0 never stops: later bits explain the affinity
        again, and codes with such a reserve bear more wrong bits
    random_state : seed of the starts in degenerate eigenspaces
    restarts : spectral starts a bit, or "auto"
    weighting, ridge : the weights "regress" reports: "least-squares" (of least norm), "non-negative", or "ridge"
        (shrunk and not negative; the residual may then rise a little). The bits themselves are always searched by
        least squares
    intercept : fit R ≈ Σ α_k v_k v_kᵀ + β with a free β ("regress" only): ranking does not see a constant
    refine : passes that search every bit again, given all the others, after the greedy pass
    device : where large dense affinities are multiplied: "auto", "cpu" or "cuda"
    progress : show a bar on stderr
    """
    settings = Settings(
        n_bits, scheme, improve, diagonal, restarts, weighting, ridge, intercept, refine, tol, max_residual, max_bits
    )
    operator = as_operator(affinity, device)
    weights = item_weights_from(item_weights, operator.affinity.counts_)
    fit = Fit(operator, weights, diagonal=diagonal, scale=settings.scale, intercept=intercept)
    pursuit = _Pursuit(fit, settings, np.random.default_rng(random_state))
    with threadpool_limits(1 if operator.n_items <= SMALL_ITEMS else None, user_api="blas"):
        pursuit.run(progress)
        for _ in range(refine):
            pursuit.refine()
    return pursuit.code_book(operator.affinity)


class _Pursuit:
    """The state of one run: the fit, the weights that are reported, and the bits already taken."""

    def __init__(self, fit: Fit, settings: Settings, rng: np.random.Generator):
        self.fit, self.settings, self.rng = fit, settings, rng
        self.eigenspace = Eigenspace(fit.operator.n_items, fit.operator.dtype, rng, exact=not settings.searches)
        self.round_start = 0  # first bit of the present explanation of R
        self.taken: set[bytes] = set()
        self.weights = np.empty(0)  # of all directions
        self.residuals: list[float] = []
        self._set_weights()

    def run(self, progress: bool) -> None:
        """Add bits until there are as many as asked for, or what they leave is little enough."""
        bits = range(self.settings.limit)
        for _ in tqdm(bits, desc="bits", unit="bit", disable=None if progress else True, leave=False):
            if self._is_enough():
                break
            self._add_bit()

    def _is_enough(self) -> bool:
        enough, n_items = self.settings.enough, self.fit.operator.n_items
        bit_a_pair = self.fit.n_bits >= n_items * (n_items - 1) // 2
        met = enough > 0 and self.residuals[-1] <= enough * self.residuals[0]
        return met and (enough > _EXPLAINED or bit_a_pair)

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

    def _resample(self, signs, match):
        """What the released code calls Improve: random signs until the match is positive and the bit is new."""
        for _ in range(1000):
            if match[0] > 0 and signs[:, 0].tobytes() not in self.taken:
                break
            signs = canonical_signs(self.rng.standard_normal(len(signs)))[:, None]
            signs, match = improve_starts("none", self.fit, signs, self.rng)
        return signs, match

    def _choose(self, signs, match) -> int | None:
        """The candidate that lowers the residual most and repeats no earlier bit, or None if none lowers it."""
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
        """Weights of all bits by the scheme, and the residual they leave (HBMP Alg. 1, line 7)."""
        self.weights = self._weights_of_first(self.fit.directions.shape[1])
        self.residuals.append(self.fit.residual(self.weights))
        self._set_search_weights()

    def _weights_of_first(self, size: int) -> np.ndarray:
        """Weights the scheme gives the first directions: refitted, or as they were set in their turn."""
        if self.settings.scheme == "regress":
            return self._solve(np.arange(size))
        return np.ones(size) if self.settings.scheme == "constant" else self.weights[:size]

    def _set_search_weights(self) -> None:
        """Weights the next step looks past: those of the present explanation alone."""
        active, weights = self._active(), np.zeros(self.fit.directions.shape[1])
        solved = self.settings.weighting == "least-squares" and not self.round_start
        again = self.settings.scheme == "regress" and not solved
        weights[active] = self._solve(active, "least-squares") if again else self.weights[active]
        self.fit.weights = weights

    def refine(self) -> None:
        """One cyclic pass: search each bit again from where it is, given all others; keep what lowers the residual."""
        fit = self.fit
        for position in range(fit.free, fit.directions.shape[1]):
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
        """Regressed weights of some directions alone."""
        part, settings = np.ix_(directions, directions), self.settings
        gram, match = self.fit.gram[part], self.fit.match[directions]
        return solve_weights(gram, match, weighting or settings.weighting, settings.ridge, self.fit.free)

    def _recompute_residuals(self) -> None:
        """The residual of every prefix, after earlier bits have changed."""
        fit = self.fit
        for size in range(fit.free, fit.directions.shape[1] + 1):
            self.residuals[size - fit.free] = fit.residual(self._weights_of_first(size))

    def code_book(self, affinity) -> CodeBook:
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
    """The first of the largest values: equal ones must not be told apart by rounding."""
    return int(np.argmax(values >= values.max() - 1e-7 * np.abs(values.max())))
