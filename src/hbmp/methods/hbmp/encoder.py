"""Stage three: instances to bits. The layout of the scores is known only here.

A hash function gives `n_bits` bit scores, then a score for each label where labels are learned. Labels vote on bits
(`label_votes`), and a real-valued query adds the value of agreeing with the labels it expects (`label_queries`).
Detail bits follow (`detail`): they depend on the features, for images those of the layer before the last, and on the
signs of the label bits alone.

    scores     (n, n_bits + labels)    of the hash function
    odds       (n, n_bits)             log-odds of the label bits: bit scores, blended with the votes
    held       (n, n_bits)             odds minus the thresholds of the bits (`dither`)
    details    (n, details)            scores of the detail bits
    signs      (n, n_bits + details)   held, details; their signs are the code
    project    (n, n_bits + details)   the same signs, sized for real-valued queries
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from hbmp import hamming
from hbmp._core.progress import stage
from hbmp._core.seeds import as_generator, draw_seed
from hbmp.functions import HashFunction
from hbmp.methods._shared.weights import fit_codes
from hbmp.methods.hbmp.detail import DetailBits
from hbmp.methods.hbmp.dither import thresholds, with_signs_of
from hbmp.methods.hbmp.label_queries import LabelQueries, make_queries
from hbmp.methods.hbmp.label_votes import LabelVotes, blend, label_targets, make_votes
from hbmp.methods.hbmp.plan import Plan
from hbmp.methods.hbmp.targets import Target
from hbmp.methods.hbmp.unlabelled import Rebuilding


@dataclass(frozen=True)
class Scores:
    """Scores of the hash function for some instances."""

    bits: np.ndarray  # (n, n_bits)
    labels: np.ndarray  # (n, labels), labels = 0 where none are learned


@dataclass(frozen=True)
class Layout:
    """Columns of the scores: bits first, then labels."""

    bits: slice
    labels: slice


@dataclass
class BitEncoder:
    """A trained hash function with what turns its scores into bits."""

    function: HashFunction
    n_bits: int  # that the function gives: label bits
    label_share: float = 0.0
    votes: LabelVotes | None = None
    queries: LabelQueries | None = None
    unmatched: float = 0.0  # share of the training rows' label bits that miss their target
    detail: DetailBits | None = None
    thresholds: np.ndarray | None = None  # of the label bits, (n_bits,); None where all are 0

    @classmethod
    def fit(
        cls, X: Any, y: Any, target: Target, plan: Plan, seed: int, weights: np.ndarray | None = None
    ) -> BitEncoder:
        """Train the plan's hash function on the target codes; weights: of the instances, of mean 1."""
        with stage("hash function", until=0.95 if plan.detail_bits else 1.0):
            encoder = cls.of_label_bits(X, y, target, plan, seed, weights)
        scores, features = encoder.read(X, bool(plan.detail_bits))
        odds = encoder.odds_of(scores)
        if plan.dither:
            encoder.thresholds = thresholds(odds, plan.dither, plan.n_plain_bits)
        held = encoder.held(odds)
        found = hamming.signs(held)
        wanted = target.book.codes[target.item_of, : plan.n_label_bits]
        encoder.unmatched = float((found != wanted).mean())
        if plan.learns_labels and plan.label_queries:
            labels, n_labels = label_targets(y), scores.labels.shape[1]
            encoder.queries = make_queries(found, labels, n_labels).levelled(odds, scores.labels)
        if plan.detail_bits:
            size = plan.detail_total_real / plan.detail_total
            with stage("detail bits"):
                encoder.detail = DetailBits().fit(features, held, plan.detail_bits, size=size, random_state=seed)
        return encoder

    @classmethod
    def of_label_bits(
        cls,
        X: Any,
        y: Any,
        target: Target,
        plan: Plan,
        seed: int,
        weights: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> BitEncoder:
        """Hash function and label votes alone; rows: the instances to learn from, all by default."""
        labels = label_targets(y) if plan.learns_labels else None
        codes, votes = target.book.codes[:, : plan.n_label_bits], None
        if labels is not None:
            votes = make_votes(labels, target.affinity, codes, weights)
        if rows is not None:
            X, target = X[rows], target.of_rows(rows)
            labels, weights = (None if each is None else each[rows] for each in (labels, weights))
        n_labels = 0 if votes is None else votes.label_rows.shape[1]
        function = _trained(X, labels, n_labels, target, plan, seed, weights)
        return cls(function, plan.n_label_bits, plan.label_share, votes)

    @property
    def layout(self) -> Layout:
        """Which columns of the function's scores are what."""
        return Layout(slice(self.n_bits), slice(self.n_bits, None))

    def scores(self, X: Any) -> Scores:
        """Bit scores and label scores."""
        found, columns = self.function.project(X), self.layout
        return Scores(found[:, columns.bits], found[:, columns.labels])

    def read(self, X: Any, with_features: bool) -> tuple[Scores, np.ndarray]:
        """Scores, and the features that detail bits describe; X where these are not needed."""
        if not with_features:
            return self.scores(X), X
        (found, features), columns = self.function.project_with_features(X), self.layout
        return Scores(found[:, columns.bits], found[:, columns.labels]), features

    def odds(self, X: Any) -> np.ndarray:
        """Log-odds of the label bits, (n, n_bits)."""
        return self.odds_of(self.scores(X))

    def sign_scores(self, X: Any) -> np.ndarray:
        """Scores whose signs are the code."""
        if isinstance(self.function, Rebuilding):
            return self.function.bits(X)
        scores, features = self.read(X, self.detail is not None)
        return self._with_details(features, self.held(self.odds_of(scores)))

    def held(self, odds: np.ndarray) -> np.ndarray:
        """Log-odds held against the thresholds: what label bits take their signs from."""
        return odds if self.thresholds is None else odds - self.thresholds

    def odds_of(self, scores: Scores) -> np.ndarray:
        """The same from scores."""
        if self.votes is None or self.label_share == 0:
            return scores.bits
        return blend(scores.bits, self.votes.expected_codes(scores.labels), self.label_share)

    def project(self, X: Any) -> np.ndarray:
        """Scores of real-valued queries; they have the signs of `sign_scores`, see `Rebuilding.queries` for others."""
        if isinstance(self.function, Rebuilding):
            return self.function.queries(X)
        scores, features = self.read(X, self.detail is not None)
        odds = self.odds_of(scores)
        wanted = odds if self.queries is None else odds + self.queries.wanted(scores.labels)
        return self._with_details(features, with_signs_of(wanted, self.held(odds)))

    def _with_details(self, features: np.ndarray, label_scores: np.ndarray) -> np.ndarray:
        """Label scores, then detail scores."""
        if self.detail is None:
            return label_scores
        return np.hstack([label_scores, self.detail.project(features, label_scores)])


def _trained(
    X: Any,
    labels: np.ndarray | None,
    n_labels: int,
    target: Target,
    plan: Plan,
    seed: int,
    weights: np.ndarray | None,
) -> HashFunction:
    """The hash function, trained on target codes and label scores; extra bits are dropped afterwards."""
    from hbmp.methods.hbmp.objective import Objective

    function, book = clone(plan.function), target.book
    codes = np.ascontiguousarray(book.codes[target.item_of])
    if plan.learns_bits_alone:
        fit_codes(function, X, codes, weights, bit_weights=book.weights, random_state=seed)
    else:
        rng = as_generator(seed)
        n, n_bits = codes.shape
        items = np.asarray(target.item_of, dtype=np.int64)
        objective = Objective(plan, n_bits, _certain_codes(target, plan), function.code_loss(book.weights), n_labels)
        learned = np.empty((n, 0), np.float32) if labels is None else labels
        n_scores = n_bits + n_labels
        inputs = (codes, items, learned, *(() if weights is None else (weights.astype(np.float32),)))
        function.learn(X, objective, *inputs, n_bits=n_scores, random_state=draw_seed(rng))
        if (affine := objective.affine(n_scores)) is not None:
            function.rescale(*affine)
    if plan.extra_bits:
        function.drop(range(plan.n_label_bits, book.n_bits))
    return function


def _certain_codes(target: Target, plan: Plan) -> np.ndarray | None:
    """The code book if its items are classes, which are maximally different."""
    return target.book.codes if plan.n_classes == target.affinity.n_items_ else None
