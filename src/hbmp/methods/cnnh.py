"""CNNH: factorise the matrix of similar pairs into real-valued codes in [-1, 1], round them, and learn them.

Stage one takes one entry of the codes at a time to the minimum of its quadratic model inside the box (coordinate
Newton). Stage two trains a function on the signs; CNNH+ lets it predict the labels beside the codes, from shared
layers.

    S      similar     (n, n)   +1 where two samples share a label, -1 elsewhere
    H      relaxed     (n, q)   in [-1, 1]
    L      H Hᵀ - q S  (n, n)   what is not yet explained, never formed
    G      HᵀH         (q, q)
    loss_                       ‖S - H Hᵀ/q‖² / n², at the start and after each sweep

Reference: Xia, Pan, Lai, Liu & Yan, Supervised Hashing for Image Retrieval via Image Representation Learning, AAAI
2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp import hamming
from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.methods._shared.bqp_losses import sampled_rows, similar_pairs
from hbmp.methods._shared.checks import need_counts
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.label_rows import label_rows

_ROWS = 1024


def factorisation_loss(affinity: np.ndarray, relaxed: np.ndarray) -> float:
    """‖S - HHᵀ/q‖² / n² for S of ±1, through q×q products."""
    n_items, n_bits = relaxed.shape
    gram = relaxed.T @ relaxed
    blocks = (slice(start, start + _ROWS) for start in range(0, n_items, _ROWS))
    match = sum(float((relaxed[rows] * (affinity[rows].astype(np.float64) @ relaxed)).sum()) for rows in blocks)
    return float((gram**2).sum() / n_bits**2 - 2 * match / n_bits + n_items**2) / n_items**2


def newton_sweep(affinity: np.ndarray, relaxed: np.ndarray, rng: np.random.Generator) -> None:
    """One coordinate Newton step on every entry of H, in place. The loss never rises.

    Departs from the publication, which visits all entries in one random order and keeps the n×n matrix L: rows in
    random order and the bits of a row in random order, because then G and one row of S give every slope, in O(q).
    """
    gram = relaxed.T @ relaxed
    for item in rng.permutation(len(relaxed)):
        row = relaxed[item]
        match = affinity[item].astype(np.float64) @ relaxed  # S_i· H
        for bit in rng.permutation(len(row)):
            slope = row @ gram[bit] - len(row) * match[bit]  # L_i· H_·j
            curve = gram[bit, bit] + row[bit] ** 2 + row @ row - len(row) * affinity[item, item]
            step = _box_step(float(slope), float(curve), float(row[bit]))
            if step != 0:
                gram[bit] += step * row
                gram[:, bit] += step * row
                gram[bit, bit] += step**2
                match[bit] += step * affinity[item, item]
                row[bit] += step


def _box_step(slope: float, curve: float, value: float) -> float:
    """The Newton step of one entry, kept in [-1, 1] and shortened until it helps.

    Moved by d the entry changes ‖HHᵀ - qS‖² by 4 slope d + 2 curve d² + 4 value d³ + d⁴.
    """

    def change(step: float) -> float:
        return step * (4 * slope + step * (2 * curve + step * (4 * value + step)))

    ends = (-1 - value, 1 - value)
    step = min(max(-slope / curve, ends[0]), ends[1]) if curve > 0 else min(ends, key=change)
    for _ in range(30):
        if change(step) < 0:
            return step
        step /= 2
    return 0.0


class CNNH(Hasher):
    """Codes from a factorisation of the similarity matrix, then a function that predicts them.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    plus : bool, default=False
        CNNH+: the function also predicts the labels, through layers shared with the codes.
    function : str or HashFunction, default="auto"
        Hash function, by name or as an object. "auto" is a kernel, or an MLP with `plus`.
    sweeps : int, default=5
        Coordinate Newton steps per entry of the codes.
    max_samples : int, default=5000
        The most samples to train on. Larger data is sampled.
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
        Error of the factorisation at the start and after each sweep.

    Notes
    -----
    Departs from the publication, where the function is a convolutional network and CNNH+ has a softmax over the
    labels. Here the labels are further outputs under the loss of the function.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import CNNH
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = CNNH(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Xia et al., AAAI 2014"
    supervised = True
    smoke = {"function": Linear(epochs=2), "max_samples": 60, "sweeps": 2}
    never_rises = "loss_"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        plus: bool = False,
        function: str | HashFunction = "auto",
        sweeps: int = 5,
        max_samples: int = 5000,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.plus = plus
        self.function = function
        self.sweeps = sweeps
        self.max_samples = max_samples
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, y: Any) -> None:
        need_counts(sweeps=self.sweeps, max_samples=self.max_samples)
        rng = as_generator(self.random_state)
        labels = label_rows(y)
        rows = sampled_rows(len(X), self.max_samples, rng)
        affinity = np.where(similar_pairs(labels[rows]), np.float32(1), np.float32(-1))
        relaxed = rng.uniform(-1, 1, (len(rows), self.n_bits))
        self.loss_ = [factorisation_loss(affinity, relaxed)]
        for _ in range(self.sweeps):
            newton_sweep(affinity, relaxed, rng)
            self.loss_.append(factorisation_loss(affinity, relaxed))
        codes = hamming.signs(relaxed)
        targets = np.hstack([codes, (2 * labels[rows] - 1).astype(np.int8)]) if self.plus else codes
        given = "mlp" if self.plus and isinstance(self.function, str) and self.function == "auto" else self.function
        self.function_ = make_function(given, X[rows], device=self.device, verbose=self.verbose)
        self.function_.fit(X[rows], targets, random_state=draw_seed(rng))
        self.unmatched_ = float(((self._project(X[rows]) >= 0) != (codes > 0)).mean())

    def _project(self, X: Any) -> np.ndarray:
        return self.function_.project(X)[:, : self.n_bits]
