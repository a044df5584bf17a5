"""Codes without labels: features on principal axes, rebuilt from bits (HBMP, y=None).

Squared error over all pairs rewards the coarse structure of the data, but a search depends on near pairs.
So the bits rebuild the features themselves, Y = X on its leading principal axes. A gain above 1 lengthens axes of
little variance λ: axis j is scaled by (λ_j/λ_1)^(-s/2), with s such that the n_bits-th axis gains as much on the first.

Relation to ITQ: with a gain of 1, b axes, no coupling and orthogonal atoms this *is* iterative quantisation, whose
rotation is the start here. What the pursuit adds is that atoms are refitted freely, that bits look at one another, and
that a row's own score counts more than the rest of its error (`hbmp.pursuit.radial`). With full coupling, more bits
than axes, or axes of very different variance, start as layers of at most one bit per axis (`stages`).

    X      features   (n, d)
    Y      points     (n, m)   m = 4 b at most
    λ      variances  (m,)     of the axes before scaling
    a      origin     (m,)     products with y - a rank points as distances from y do, where these are linear (`axes`)

References: Cakir, He & Sclaroff, ECCV 2018 (the pursuit); Gong & Lazebnik, CVPR 2011 (the rotation).
"""

from __future__ import annotations

import numpy as np

from hbmp import hamming
from hbmp._core.progress import stage
from hbmp._core.seeds import as_generator
from hbmp.functions import HashFunction
from hbmp.methods._shared.checks import need_counts, need_positive
from hbmp.methods.hbmp.axes import in_parts, nearest_by_product, scaled_axes
from hbmp.methods.hbmp.recall import RecallEstimate, estimate_recall, shares_of_nearest
from hbmp.methods.hbmp.stages import ALIKE, SWEEPS, layered_atoms, squares, stage_sizes, staged_atoms, staged_codes
from hbmp.pursuit.codebook import CodeBook
from hbmp.pursuit.features import choose_codes, code_book, fit_atoms, overlaps_of
from hbmp.pursuit.radial import Radial, RadialTerms, origin_factor

_ROWS = 8192  # rows measured at a time
_QUERIES, _FEWEST_QUERIES = 500, 20  # rows held out to measure recall
_TRIED, _CLEARLY = 200, 0.02  # of them choose the scores of queries; recall that free scores must gain
_COUPLING = 0.6  # chosen on training rows, see docs/without-labels.md


class Rebuilding(HashFunction):
    """Bits that rebuild the features, found by a pursuit on them; the function and its codes come together.

    Parameters
    ----------
    coupling : float or "auto", default="auto"
        How much a bit looks at the others: 0 for a linear function, 1 for the codes that rebuild best. Below 1 codes
        also rank by Hamming distance; at 1 only real-valued queries or rebuilt vectors rank them well, and axes of much
        variance get several bits. "auto" is 0.6, and 1 above one and a half bits per feature and for nested bits.
    radial : float, default=2.0
        Weight of the error of a row's score with its own code, beside its squared error. It fades where codes are
        coarse, and has no effect on nested bits.
    gain : float, default=1.0
        Length of the n_bits-th principal axis over the first; 1 leaves the features as they are.
    metric : {"l2", "ip"}, default="l2"
        What real-valued queries rank by: distance, or inner product. They are the same for rows of unit length, and so
        is the cosine, for which rows are scaled to unit length first.
    n_iter : int, default=15
        Maximum number of rounds of choosing codes and refitting atoms; fewer if they converge.
    max_rows : int, default=100_000
        More samples than this are drawn down to it for training.
    nested : bool, default=False
        Learn the bits in stages, so that the first eighth, quarter and half of the bits are good codes too.
    length_bits : int or "auto", default="auto"
        Bits at the end of the code for a row's distance from the mean; the others rebuild its direction. They count in
        float queries and rebuilt vectors, but not in weighted Hamming distance. `HBMP` reads it. "auto" is 0 for nested
        bits and where rows are about equally far from the mean.

    Attributes
    ----------
    recall_ : RecallEstimate or None
        Recall of held-out rows against the training rows; None below 200 samples.
    decoder_ : ndarray of shape (n_bits, n_features)
        What each bit adds to a rebuilt vector.
    coupling_ : float
        The coupling in use.
    unexplained_ : list of float
        Share of the squared length of the training rows that is not rebuilt, after each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    >>> function = Rebuilding()
    >>> codes = function.pursue(X, 16, random_state=0).codes
    >>> function.rebuild(codes).shape
    (300, 8)
    """

    scale_: np.ndarray

    smoke = {"n_iter": 2}
    by_spectrum = True  # layers of axes of like variance

    recall_: RecallEstimate | None

    def __init__(
        self,
        *,
        coupling="auto",
        radial=2.0,
        gain=1.0,
        metric="l2",
        n_iter=15,
        max_rows=100_000,
        nested=False,
        length_bits="auto",
    ):
        self.coupling = coupling
        self.radial = radial
        self.gain = gain
        self.metric = metric
        self.n_iter = n_iter
        self.max_rows = max_rows
        self.nested = nested
        self.length_bits = length_bits

    def pursue(self, X, n_bits: int, *, weighting: str | None = None, ridge=0.1, random_state=None):
        """Learn codes of n_bits from features alone; the code book of the rows learned from, with its weights.

        weighting : rule for the weights; by default each bit is weighted by the squared length of its atom
        """
        self._check()
        rng = as_generator(random_state)
        if len(X) > self.max_rows:
            X = X[np.sort(rng.choice(len(X), self.max_rows, replace=False))]
        held = _held_out(len(X), rng)
        with stage("bits that rebuild", until=0.9):
            book = self._found(X, held, n_bits, rng, weighting, ridge)
        with stage("recall of held-out rows"):
            self.free_queries_, self.recall_ = self.coupling_ == 1, None
            if len(held):
                rows, codes = X - self.mean_, book.codes
                if not self.free_queries_:
                    self.free_queries_ = self._products_find_more(X, rows, held, codes, book.weights)
                self.recall_ = self._measure(X, rows, held, codes, book.weights)
        return book

    def bits(self, X) -> np.ndarray:
        """The codes as floats, float32 (n, n_bits)."""
        return in_parts(X, lambda rows: self._chosen(rows, self._agreement(rows)), len(self.scale_))

    def project(self, X) -> np.ndarray:
        """Scores whose signs are the codes, for items whose codes must follow from their scores; see `queries`.

        The score of a real-valued query would be its agreement with each atom, and what decided its bit is that less
        the pull of the other bits. Half the pull and half the shift of the origin are taken off, which was best on
        training rows (docs/without-labels.md), and the sign is that of the bit.
        """
        smallest = np.float32(1e-6) * max(float(np.abs(self.directions_).max()), 1e-30)

        pull = np.float32(self._coupling() / 2) * self.overlaps_
        shift = getattr(self, "shift_", np.float32(0))  # of models saved before there was an origin

        def scores(rows):
            agreement = self._agreement(rows)
            codes = self._chosen(rows, agreement)
            agreement -= shift
            agreement -= codes @ pull
            agreement *= codes
            np.maximum(agreement, smallest, out=agreement)
            agreement *= codes
            return agreement * self.scale_

        return in_parts(X, scores, len(self.scale_))

    def queries(self, X) -> np.ndarray:
        """Scores of real-valued queries: those of `project`, whose signs are the codes, or free of these signs.

        Free scores are inner products of a query with what each bit adds to a rebuilt vector. Codes of full coupling
        need them, because their bits are wrong alone and right together; so do rows far from the origin. They are in
        use where held-out rows find clearly more by them.
        """
        older = self._coupling() == 1 and getattr(self, "products_rank_", False)  # models from before this choice
        return self._products(X) if getattr(self, "free_queries_", older) else self.project(X)

    def rebuild(self, codes) -> np.ndarray:
        """Feature vectors that codes stand for, float32 (n, n_features): compare them with queries by any distance."""
        return self.mean_ + hamming.check_codes(codes, len(self.scale_)).astype(np.float32) @ self.decoder_

    def query_scores(self, X, bit_weights) -> np.ndarray:
        """Scores of queries alone: their weighted agreement with a code is the inner product with its rebuilt vector.

        Their signs are not the codes of the queries. Items are found by inner product, or by cosine where they have
        unit length.
        """
        weights = np.where(np.abs(bit_weights) > 1e-12, bit_weights, 1e-12).astype(np.float32)
        return np.asarray(X, dtype=np.float32) @ (self.decoder_.T / weights)

    def rescale(self, factor: np.ndarray, shift: np.ndarray) -> None:
        """Multiply every score by a positive factor; the bits depend on one another, so a shift makes no sense."""
        if np.any(np.asarray(shift) != 0) or np.any(np.asarray(factor) <= 0):
            raise ValueError("Scores that rebuild features can be scaled by positive factors alone, not shifted.")
        self.scale_ = (self.scale_ * factor).astype(np.float32)

    def fit(self, X, targets, *, bit_weights=None, random_state=None):
        """Not a function of given codes."""
        raise ValueError("Rebuilding finds its own codes: call `pursue(X, n_bits)`, or choose a function that learns.")

    def _found(self, X, held, n_bits, rng, weighting, ridge) -> CodeBook:
        """Learn from the rows that are not held out; the code book of all."""
        rows = np.delete(np.arange(len(X)), held) if len(held) else slice(None)
        points = self._learn(X, rows, n_bits, rng)
        codes = hamming.signs(self.bits(X))
        if n_bits <= X.shape[1] or not self.layers_:  # free atoms of more bits would fit the sample, not the data
            self.decoder_ = _decoder(X, self.mean_, codes)
        lengths = None if weighting else self._squared_lengths()
        book = code_book(codes, points, weighting=weighting or "ridge", ridge=ridge, given=lengths)
        self._take_out(book, weighting)
        return book

    def _take_out(self, book, weighting) -> None:
        """Divide the scores by the bits' weights, which weigh real-valued queries too: they are right as they are."""
        mean_weight = max(float(np.abs(book.weights).mean()), 1e-12)
        least = 0.1 if weighting else 1e-9
        self.rescale(1 / np.maximum(book.weights / mean_weight, least), np.zeros(len(book.weights)))

    def _learn(self, X, rows, n_bits, rng):
        """Axes from all rows, atoms from `rows`; the points of all rows."""
        self.mean_, axes = scaled_axes(X, n_bits, self.gain)
        points = in_parts(X, lambda part: (part - self.mean_) @ axes, axes.shape[1])
        origin = nearest_by_product(points) if self.metric == "l2" else -(self.mean_ @ axes)
        full = self.nested or n_bits > 1.5 * X.shape[1]
        self.coupling_ = float(self.coupling) if self.coupling != "auto" else 1.0 if full else _COUPLING
        alike = ALIKE if self.coupling == 1 and self.by_spectrum else 0.0  # an "auto" coupling has layers of all axes
        self.layers_ = self.coupling_ == 1 and not self.nested and (alike > 0 or n_bits > points.shape[1])
        self.sizes_ = stage_sizes(n_bits, self.nested)
        mean_square = squares(points[rows]) / len(points[rows])
        aligned = self.radial > 0 and self.gain == 1 and not self.nested
        radial = Radial(self.radial, origin, mean_square, self.metric == "ip") if aligned else None
        if self.layers_:
            first, self.sizes_, C, self.unexplained_ = layered_atoms(
                points[rows], n_bits, self.n_iter, radial, rng, alike
            )
            self.first_directions_ = np.ascontiguousarray(axes @ first.T)
            self.first_overlaps_ = overlaps_of(first)
        else:
            C, self.unexplained_ = staged_atoms(points[rows], self.sizes_, self.coupling_, self.n_iter, rng, radial)
        unscaled = axes / np.square(axes).sum(axis=0)
        left = self.unexplained_[-1]
        self.origin_ = np.zeros_like(self.mean_)
        if self.metric == "l2":
            self.origin_ = self.mean_ + unscaled @ origin * np.float32(origin_factor(left))
        self.shift_ = origin @ C.T / 2
        self.directions_ = np.ascontiguousarray(axes @ C.T)  # (d, b): scores straight from features
        self.offsets_ = self.mean_ @ self.directions_
        self.overlaps_ = overlaps_of(C)
        self.scale_ = np.ones(n_bits, dtype=np.float32)
        self.decoder_ = C @ unscaled.T
        if radial is not None:
            terms = radial.terms(C, left)
            self.radial_root_, self.radial_constant_, self.radial_shift_ = terms.root, terms.constant, terms.shift
        return points

    def _squared_lengths(self) -> np.ndarray:
        """Of the atoms, at most 1. Regression would give no weight to bits that others outweigh; queries need all."""
        lengths = np.square(self.decoder_, dtype=np.float64).sum(axis=1)
        found: np.ndarray = np.maximum(lengths / max(lengths.max(), 1e-30), 1e-6)
        return found

    def _agreement(self, rows):
        """How much each atom agrees with centred rows, (n, b)."""
        agreement = rows @ self.directions_
        agreement -= self._offsets()
        return agreement

    def _chosen(self, rows, agreement):
        """The codes of rows by their agreement with each atom."""
        sizes = getattr(self, "sizes_", [agreement.shape[1]])
        if not getattr(self, "layers_", False) and len(sizes) > 1:
            return staged_codes(agreement, self.overlaps_, self._coupling(), sizes)
        start = None
        if getattr(self, "layers_", False):
            first = rows @ self.first_directions_ - self.mean_ @ self.first_directions_
            start = staged_codes(first, self.first_overlaps_, 1.0, sizes)
        radial = (self._radial_terms(), self._own_targets(rows)) if hasattr(self, "radial_root_") else None
        return choose_codes(agreement, self.overlaps_, self._coupling(), start=start, sweeps=SWEEPS, radial=radial)

    def _radial_terms(self) -> RadialTerms:
        return RadialTerms(self.radial_root_, self.radial_shift_, self.radial_constant_)

    def _own_targets(self, rows) -> np.ndarray:
        """`Radial.targets` of the centred rows, from the rows as they are."""
        squares, along = np.einsum("nd,nd->n", rows, rows), rows @ self.mean_
        if self.metric == "ip":
            return squares - along
        return squares / 2 - along + np.float32(self.mean_ @ self.mean_ / 2)

    def _products(self, X) -> np.ndarray:
        """Inner products of rows with what each bit adds to a rebuilt vector, float32 (n, n_bits)."""
        return in_parts(X, lambda rows: (rows - self.origin_) @ (self.decoder_.T * self.scale_), len(self.scale_))

    def _products_find_more(self, X, rows, held, codes, weights) -> bool:
        """Whether held-out rows find clearly more of their ten nearest by products than by scores with codes' signs."""
        few, signs = held[:_TRIED], codes.astype(np.float32)
        queries = X[few] if self.metric == "ip" else rows[few]
        free, own = (
            shares_of_nearest(queries, rows, score(X[few]) * weights.astype(np.float32), signs, few, 10, self.metric)[0]
            for score in (self._products, self.project)
        )
        return bool(free.mean() > own.mean() + _CLEARLY)

    def _measure(self, X, rows, held, codes, weights):
        scores = self.queries(X[held]) * weights.astype(np.float32)
        total, left = 0.0, 0.0
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            total += squares(rows[part])
            left += squares(rows[part] + self.mean_ - self.rebuild(codes[part]))
        queries = X[held] if self.metric == "ip" else rows[held]
        return estimate_recall(queries, rows, scores, codes, unexplained=left / total, own=held, metric=self.metric)

    def _coupling(self) -> float:
        return getattr(self, "coupling_", self.coupling)  # models saved before there was "auto" have the number alone

    def _offsets(self):
        return self.offsets_ if hasattr(self, "offsets_") else self.mean_ @ self.directions_

    def _check(self):
        need_counts(n_iter=self.n_iter, max_rows=self.max_rows)
        need_positive(gain=self.gain)
        if self.coupling != "auto" and (isinstance(self.coupling, (bool, str)) or not 0 <= self.coupling <= 1):
            raise ValueError(f"coupling must be a number from 0 to 1, found {self.coupling!r}.")
        if self.length_bits not in ("auto", 0):
            need_counts(length_bits=self.length_bits)
        if self.metric not in ("l2", "ip"):
            raise ValueError(f"metric must be 'l2' or 'ip', found {self.metric!r}.")
        if not 0 <= self.radial < np.inf:
            raise ValueError(f"radial must be a number of at least 0, found {self.radial!r}.")
        if self.gain < 1:
            raise ValueError(f"gain must be at least 1, which leaves the features as they are; found {self.gain!r}.")


def _held_out(n_rows: int, rng) -> np.ndarray:
    """A tenth of the rows, at most 500; none if that is too few."""
    n_held = min(_QUERIES, n_rows // 10)
    return np.sort(rng.choice(n_rows, n_held, replace=False)) if n_held >= _FEWEST_QUERIES else np.empty(0, np.int64)


def _decoder(X, mean, codes) -> np.ndarray:
    """Least-squares atoms in the space of the features, (b, d)."""
    return fit_atoms(codes.astype(np.float32), X - mean)
