"""Settings of a pursuit, checked before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hbmp.pursuit.bqp import NAMES as IMPROVEMENTS

SCHEMES = ("constant", "greedy", "regress")
WEIGHTINGS = ("least-squares", "non-negative", "ridge")


@dataclass(frozen=True)
class Settings:
    """The settings of `infer_codes`, which documents them."""

    n_bits: int | str
    scheme: str
    improve: str
    diagonal: str
    restarts: int | str
    weighting: str
    ridge: float
    intercept: bool
    refine: int
    tol: float
    max_residual: float
    max_bits: int

    def __post_init__(self) -> None:
        choices = {"scheme": SCHEMES, "improve": IMPROVEMENTS, "weighting": WEIGHTINGS, "diagonal": ("ignore", "fit")}
        for name, known in choices.items():
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; found {value!r}.")
        if isinstance(self.n_bits, str) and self.n_bits != "auto":
            raise ValueError(f"n_bits must be a positive whole number or 'auto', found {self.n_bits!r}.")
        _whole_number("n_bits", self.limit, least=1)
        _whole_number("refine", self.refine, least=0)
        if self.restarts != "auto":
            _whole_number("restarts", self.restarts, least=1)
        if self.intercept and self.scheme != "regress":
            raise ValueError(f"intercept=True needs scheme='regress', which refits all weights; found {self.scheme!r}.")

    @property
    def limit(self) -> int:
        """The most bits to add."""
        return self.max_bits if self.n_bits == "auto" else self.n_bits  # type: ignore[return-value]

    @property
    def enough(self) -> float:
        """The relative residual to stop at."""
        return self.max_residual if self.n_bits == "auto" else self.tol

    @property
    def scale(self) -> float:
        """Factor of R: unit steps sum to n_bits, not 1."""
        # HBMP Alg. 1, line 1
        return float(self.limit) if self.scheme == "constant" else 1.0

    @property
    def searches(self) -> bool:
        """Whether local search improves the starts, so that approximate eigenvectors suffice."""
        return self.improve in ("one-flip", "tabu")

    def starts(self, n_items: int) -> int:
        """Number of spectral starts per bit."""
        if self.restarts != "auto":
            return int(self.restarts)
        return 1 if not self.searches else 16 if n_items <= 128 else 2


def item_weights_from(given: Any, counts: np.ndarray) -> np.ndarray:
    """Item weights of mean 1 from None, a rule on the counts of instances, or an array."""
    if given is None:
        return np.ones(len(counts))
    if isinstance(given, str):
        if given not in ("count", "sqrt-count"):
            raise ValueError(f"item_weights must be None, 'count', 'sqrt-count' or an array, found {given!r}.")
        weights = counts.astype(np.float64) if given == "count" else np.sqrt(counts)
    else:
        weights = np.asarray(given, dtype=np.float64)
    if weights.shape != counts.shape:
        raise ValueError(f"item_weights needs one number for each of {len(counts)} items, found shape {weights.shape}.")
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() == 0:
        raise ValueError("item_weights must be finite, not negative and not all zero.")
    return weights / weights.mean()


def _whole_number(name: str, value: Any, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, found {value!r}.")
