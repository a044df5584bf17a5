"""The radial term: a row should get the score from its own code that its distance deserves.

Queries for which a row matters lie near it, so the error of its rebuilt vector along the row itself moves all their
scores, while an error across hardly moves them. With the score (q - a)·ŷ of a query q, whose target is q·y - ‖y‖²/2,
the choice of a code pays, beside the squared error,

    η f / mean‖y - a‖²  ·  ((y - a)·ŷ - ‖y‖²/2 - constant)²

    y    points    (n, m)   centred
    ŷ    rebuilt   (n, m)   Σ_k u_k c_k
    a    origin    (m,)     from which products rank as distances do (`axes`), times f
    D    share of the points' squared length that is not rebuilt
    f    (1 - D)², the best of several powers on training rows

Rebuilt vectors are least-squares estimates, so the mean of y·ŷ is 1 - D of the mean squared length. That gives the
constant, ½ - D of it. Coarse codes contain little information about lengths, so the origin and the whole term fade by
f.

Reference: Guo et al., Accelerating Large-Scale Inference with Anisotropic Vector Quantization, ICML 2020: errors along
the row weigh more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RadialTerms:
    """The radial term of given atoms: products (y - a)·c_k and what they should sum to, times the root of its weight.

    shift : products of the origin with the atoms, (b,)
    """

    root: float
    shift: np.ndarray
    constant: float

    def products(self, agreement: np.ndarray) -> np.ndarray:
        """(n, b) of the rows whose agreement with the atoms is y·c_k."""
        return (agreement - self.shift) * np.float32(self.root)

    def aims(self, targets: np.ndarray) -> np.ndarray:
        """(n,) of rows with these targets of their own scores."""
        return ((targets + self.constant) * self.root).astype(np.float32)


@dataclass(frozen=True)
class Radial:
    """The radial term of points, for whatever atoms."""

    weight: float
    origin: np.ndarray
    mean_square: float
    by_product: bool = False  # queries rank by inner products: the target is q·y without ‖y‖²/2, and a is not shrunk

    def targets(self, points: np.ndarray) -> np.ndarray:
        """What the own scores should be up to a constant, (n,)."""
        if self.by_product:
            found: np.ndarray = ((points - self.origin) * points).sum(axis=1)
            return found
        return np.square(points).sum(axis=1) / 2

    def terms(self, atoms: np.ndarray, unexplained: float) -> RadialTerms:
        """The term for these atoms, which leave this share of the points' squared length."""
        fade = origin_factor(unexplained)
        shrink = 1.0 if self.by_product else fade
        length = self.mean_square + shrink**2 * float(np.square(self.origin).sum())
        return RadialTerms(
            root=float(np.sqrt(self.weight * fade / length)),  # fades where codes are coarse
            shift=(np.float32(shrink) * (atoms @ self.origin)).astype(atoms.dtype),
            constant=((0.0 if self.by_product else 0.5) - unexplained) * self.mean_square,
        )


def origin_factor(unexplained: float) -> float:
    """How much of the origin remains for rebuilt vectors that leave this share."""
    return (1 - unexplained) ** 2
