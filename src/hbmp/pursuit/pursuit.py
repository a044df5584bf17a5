"""Binary matrix pursuit: rebuild an affinity from sign vectors, one a step (Algorithm 1).

    R      affinity    (n, n) symmetric, in [-1, 1]                    Eq. 3
    v_t    signs       (n,)   bit t of every item                      Eq. 6
    α      weights     (t,)   of all bits                              Eq. 10
    Q_t    residual    (n, n) R - Σ α_k v_k v_kᵀ, what t bits leave unexplained
    c      item weights (n,)  pairs count c_i c_j; 1 in the paper
    b      n_bits

Departs from Algorithm 1, line 3, by several spectral starts instead of one eigenvector, of which the one that
lowers the refitted residual most is taken (docs/inference.md has the measurements; `restarts=1` and
`improve="none"` or `"resample"` is the paper's line).
"""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

from hbmp.pursuit.bqp import NAMES as IMPROVEMENTS
from hbmp.pursuit.bqp import improve_starts, one_flip
from hbmp.pursuit.codebook import CodeBook
from hbmp.pursuit.fit import Fit, solve_weights
from hbmp.pursuit.operator import as_operator
from hbmp.pursuit.spectral import Eigenspace, canonical_signs, spectral_starts

SCHEMES = ("constant", "greedy", "regress")
WEIGHTINGS = ("least-squares", "non-negative", "ridge")
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
    scheme : "regress" (all weights refitted each step), "greedy" (the step size of Theorem 2), "constant" (R scaled
        by n_bits, unit steps: plain Hamming distance)
    improve : "none", "resample" (redraw at random until the match is positive), "one-flip", "tabu"
    item_weights : None, "count", "sqrt-count" (instances behind an item), or an array (items,) of positive numbers
    diagonal : "ignore" leaves the affinity of an item to itself out of the fit; "fit" is the paper's Eq. 10
    tol : stop before n_bits once the relative residual is at most this. A perfect fit (tol <= 1e-6) does not stop
        before there is a bit for every pair of items, and tol=0 never stops: later bits explain the affinity
        again, and codes with such a reserve bear more wrong bits
    random_state : seed of the starts in degenerate eigenspaces
    restarts : spectral starts a bit, or "auto"
    weighting, ridge : how "regress" chooses weights: "least-squares" (of least norm), "non-negative", "ridge"
    intercept : fit R ≈ Σ α_k v_k v_kᵀ + β with a free β ("regress" only): ranking does not see a constant
    refine : passes that search every bit again, given all the others, after the greedy pass
    device : where large dense affinities are multiplied: "auto", "cpu" or "cuda"
    progress : show a bar on stderr
    """
    _check_choices(scheme, improve, weighting, diagonal, intercept, restarts, refine)
    count, limit = _check_bits(n_bits, max_bits)
    operator = as_operator(affinity, device)
    weights = _item_weights(item_weights, operator)
    scale = float(limit) if scheme == "constant" else 1.0
    fit = Fit(operator, weights, diagonal=diagonal, scale=scale, intercept=intercept)
    pursuit = _Pursuit(fit, scheme, improve, weighting, ridge, restarts, np.random.default_rng(random_state))
    stop_at = tol if count else max_residual
    pursuit.run(limit, stop_at, progress)
    for _ in range(refine):
        pursuit.refine()
    return pursuit.code_book(operator.affinity)


class _Pursuit:
    """The state of one run: the fit, the weights that are reported, and the bits already taken."""

    def __init__(self, fit: Fit, scheme, improve, weighting, ridge, restarts, rng):
        self.fit, self.scheme, self.improve, self.rng = fit, scheme, improve, rng
        self.weighting, self.ridge = weighting, ridge
        n_items = fit.operator.n_items
        self.restarts = _restarts(restarts, improve, n_items)
        exact = improve in ("none", "resample")
        self.eigenspace = Eigenspace(n_items, fit.operator.dtype, rng, tol=1e-3 if exact else 1.0)
        self.round_start = 0  # first bit of the present explanation of R
        self.taken: set[bytes] = set()
        self.weights = np.empty(0)  # of all directions
        self.residuals: list[float] = []
        self._set_weights()

    def run(self, limit: int, stop_at: float, progress: bool) -> None:
        """Add bits until `limit`, or until the relative residual is at most `stop_at` (if that is above 0)."""
        for _ in tqdm(range(limit), desc="bits", unit="bit", disable=None if progress else True, leave=False):
            if self._is_enough(stop_at):
                break
            self._add_bit()

    def _is_enough(self, stop_at: float) -> bool:
        n_items = self.fit.operator.n_items
        bit_a_pair = self.fit.n_bits >= n_items * (n_items - 1) // 2
        met = stop_at > 0 and self.residuals[-1] <= stop_at * self.residuals[0]
        return met and (stop_at > _EXPLAINED or bit_a_pair)

    def _add_bit(self) -> None:
        if self._round_is_done():
            self.round_start = self.fit.directions.shape[1]
            self._set_search_weights()
        signs, match = self._candidates()
        chosen = self._choose(signs, match)
        if chosen is None:  # nothing new helps: this explanation is as good as it gets, begin another
            self.round_start = self.fit.directions.shape[1]
            self._set_search_weights()
            signs, match = self._candidates()
            chosen = self._choose(signs, match)
        best = int(match.argmax()) if chosen is None else chosen  # every direction is taken: one repeats
        self.fit.append(signs[:, best])
        self.taken.add(signs[:, best].tobytes())
        if self.scheme == "greedy":
            # Step size of Theorem 2, r / (n² L). Departs from its proof, where L bounds the norm of the gradient:
            # the gradient of f is 1-Lipschitz, so L = 1 satisfies the inequality used and is the exact line search.
            self.weights = np.append(self.weights, match[best] / self.fit.own_size)
        self._set_weights()

    def _candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Sign vectors for the next bit and their matches with the residual (Alg. 1, lines 3-5)."""
        values, vectors = self.eigenspace.update(self.fit.residual_times)
        starts = spectral_starts(values, vectors, self.restarts, self.rng)
        signs, match = improve_starts(self.improve, self.fit, starts, self.rng)
        if self.improve == "resample":
            signs, match = self._resample(signs, match)
        return signs, match

    def _resample(self, signs, match):
        """What the released code calls Improve: random signs until the match is positive and the bit is new."""
        for _ in range(1000):
            if match[0] > 0 and signs[:, 0].tobytes() not in self.taken:
                break
            signs = canonical_signs(self.rng.standard_normal(len(signs)))[:, None]
            signs, match = improve_starts("none", self.fit, signs, self.rng)
        return signs, match

    def _choose(self, signs, match) -> int | None:
        """The candidate that lowers the residual most and repeats no earlier bit, or None."""
        fresh = np.array([column.tobytes() not in self.taken for column in signs.T])
        if self.scheme == "regress":
            active = np.r_[np.arange(self.fit.free), np.arange(self._first_active(), self.fit.directions.shape[1])]
            decrease = self.fit.decrease(signs, match, np.unique(active))
        elif self.scheme == "greedy":
            decrease = np.maximum(match, 0) ** 2 / self.fit.own_size
        else:
            decrease = 2 * match - self.fit.own_size  # of a unit step
        decrease = np.where(fresh, decrease, 0.0)
        return int(decrease.argmax()) if decrease.max() > 1e-12 * self.fit.squared_norm else None

    def _round_is_done(self) -> bool:
        if self.scheme == "constant":
            return False
        return self.fit.residual() <= _EXPLAINED * self.residuals[0]

    def _first_active(self) -> int:
        return max(self.round_start, self.fit.free)

    def _set_weights(self) -> None:
        """Weights of all bits by the scheme, and the residual they leave (Alg. 1, line 7)."""
        fit, size = self.fit, self.fit.directions.shape[1]
        if self.scheme == "constant":
            self.weights = np.ones(size)
        elif self.scheme == "regress":
            self.weights = solve_weights(fit.gram, fit.match, self.weighting, self.ridge, fit.free)
        self.residuals.append(fit.residual(self.weights))
        self._set_search_weights()

    def _set_search_weights(self) -> None:
        """Weights the next step looks past: those of the bits of the present round alone."""
        fit, first = self.fit, self._first_active()
        active = np.r_[0 : fit.free, first : fit.directions.shape[1]]
        fit.weights = np.zeros(fit.directions.shape[1])
        if self.scheme == "regress" and self.round_start:
            part = np.ix_(active, active)
            fit.weights[active] = solve_weights(fit.gram[part], fit.match[active], "least-squares", 0.0, fit.free)
        else:
            fit.weights[active] = self.weights[active]

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
            weights = self._refitted()
            if fit.residual(weights) < best * (1 - 1e-9):
                self.taken.discard(before.astype(np.int8).tobytes())
                self.taken.add(signs.tobytes())
                self.weights = weights
            else:
                fit.replace(position, before)
        self._recompute_residuals()

    def _weights_without(self, position: int, others: np.ndarray) -> np.ndarray:
        fit = self.fit
        weights = self.weights.copy()
        if self.scheme == "regress":
            part = np.ix_(others, others)
            weights[others] = solve_weights(fit.gram[part], fit.match[others], self.weighting, self.ridge, fit.free)
        weights[position] = 0
        return weights

    def _refitted(self) -> np.ndarray:
        if self.scheme != "regress":
            return self.weights
        return solve_weights(self.fit.gram, self.fit.match, self.weighting, self.ridge, self.fit.free)

    def _recompute_residuals(self) -> None:
        """The residual of every prefix, after earlier bits have changed."""
        fit = self.fit
        for size in range(fit.free, fit.directions.shape[1] + 1):
            weights = self.weights[:size]
            if self.scheme == "regress":
                part = fit.gram[:size, :size]
                weights = solve_weights(part, fit.match[:size], self.weighting, self.ridge, fit.free)
            self.residuals[size - fit.free] = fit.residual(weights)

    def code_book(self, affinity) -> CodeBook:
        """The result, without the working state."""
        fit, free = self.fit, self.fit.free
        return CodeBook(
            codes=np.ascontiguousarray(fit.directions[:, free:].astype(np.int8)),
            weights=self.weights[free:].copy(),
            residuals=np.array(self.residuals),
            intercept=float(self.weights[0]) if free else 0.0,
            scale=fit.scale,
            scheme=self.scheme,
            weighting=self.weighting,
            ridge=self.ridge,
            item_weights=None if (fit.item_weights == 1).all() else fit.item_weights,
            gram=fit.gram,
            match=fit.match,
            affinity=affinity,
        )


def _restarts(restarts, improve: str, n_items: int) -> int:
    if restarts != "auto":
        return int(restarts)
    if improve in ("none", "resample"):
        return 1
    return 16 if n_items <= 512 else 4


def _item_weights(item_weights, operator) -> np.ndarray:
    """Weights of mean 1, so that residuals stay comparable."""
    counts = operator.affinity.counts_
    if item_weights is None:
        return np.ones(operator.n_items)
    if isinstance(item_weights, str):
        if item_weights not in ("count", "sqrt-count"):
            raise ValueError(f"item_weights must be None, 'count', 'sqrt-count' or an array, found {item_weights!r}.")
        weights = counts.astype(np.float64) if item_weights == "count" else np.sqrt(counts)
    else:
        weights = np.asarray(item_weights, dtype=np.float64)
    if weights.shape != (operator.n_items,):
        raise ValueError(f"item_weights needs one number for each of {operator.n_items} items, found {weights.shape}.")
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() == 0:
        raise ValueError("item_weights must be finite, not negative and not all zero.")
    return weights / weights.mean()


def _check_bits(n_bits, max_bits) -> tuple[bool, int]:
    """(whether n_bits is a number, the most bits to add)."""
    if isinstance(n_bits, str):
        if n_bits != "auto":
            raise ValueError(f"n_bits must be a positive number or 'auto', found {n_bits!r}.")
        return False, _positive(max_bits, "max_bits")
    return True, _positive(n_bits, "n_bits")


def _positive(value, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a positive whole number, found {value!r}.")
    return int(value)


def _check_choices(scheme, improve, weighting, diagonal, intercept, restarts, refine) -> None:
    choices = {
        "scheme": (scheme, SCHEMES),
        "improve": (improve, IMPROVEMENTS),
        "weighting": (weighting, WEIGHTINGS),
        "diagonal": (diagonal, ("ignore", "fit")),
    }
    for name, (value, known) in choices.items():
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; found {value!r}.")
    if intercept and scheme != "regress":
        raise ValueError(f"intercept=True needs scheme='regress', which refits all weights; found {scheme!r}.")
    if restarts != "auto":
        _positive(restarts, "restarts")
    if isinstance(refine, bool) or not isinstance(refine, (int, np.integer)) or refine < 0:
        raise ValueError(f"refine must be a whole number of passes, 0 or more; found {refine!r}.")
