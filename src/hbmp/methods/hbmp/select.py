"""Which candidate to learn: the one whose codes, given by a probe, retrieve best among held-out rows.

Training the hash function on every candidate would cost several fits. A probe stands in for it: ridge regression of
the bits on kernel features, whose one factorisation serves all bits of all candidates.

    Φ      kernel features      (n, m)       of the rows it learns from, less their mean
    B      bits                 (n, all)     of all candidates side by side
    ν      ridge                             a share of the mean eigenvalue of ΦᵀΦ
    W      (ΦᵀΦ + νI)⁻¹ ΦᵀB     (m, all)

A fifth of the rows is held out and queries twice: each other, as new items of a database would, and the rows that were
learned from. A candidate's score is the mean of both mAPs; for multi-label rows each is the mean of the full ranking's
and of its first twentieth. Of candidates that are all but equal, the one whose first bits make the best shorter codes
is taken: a half, a quarter and an eighth of the bits.

How many bits can be spared for details (`detail_choice`) depends on how well the function itself learns few bits. So it
learns those of the best candidate from the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hbmp._core.progress import parts
from hbmp._core.seeds import draw_seed
from hbmp.functions.kernel import squared_distances
from hbmp.hamming import signs
from hbmp.methods.hbmp.detail_choice import DetailChoice, choose_details
from hbmp.methods.hbmp.detail_trials import ScoredRows
from hbmp.methods.hbmp.dither import thresholds
from hbmp.methods.hbmp.encoder import BitEncoder
from hbmp.methods.hbmp.label_votes import label_targets
from hbmp.methods.hbmp.plan import Plan
from hbmp.methods.hbmp.targets import Target, shrink
from hbmp.metrics import mean_average_precision, self_retrieval_map

_HELD, _MOST_HELD, _MOST_LEARNED = 0.2, 1000, 4000
_ANCHORS, _WIDTH, _RIDGE = 1000, 0.5, 0.1
EQUAL = 0.003  # difference in score that says nothing
_HEAD, _SHORTEST_HEAD = 0.05, 20  # share of a ranking that is its head, and items it has at least


def select(targets: list[Target], plan: Plan, X: Any, y: Any, rng: np.random.Generator) -> Target:
    """The best candidate on held-out rows; the only one where nothing is open."""
    if not plan.open:
        return targets[0]
    held_out = HeldOut.split(X, label_targets(y), rng)
    codes = held_out.probe([target.book.codes[target.item_of, : plan.n_bits] for target in targets])
    scores = np.array([held_out.retrieval(held, learned) for held, learned in parts(codes)])
    leaders = np.flatnonzero(scores >= scores.max() - EQUAL)
    if len(leaders) == 1:
        return targets[leaders[0]]
    return targets[max(leaders, key=lambda place: round(held_out.retrieval_of_prefixes(*codes[place]), 4))]


def spare_bits(
    target: Target, plan: Plan, X: Any, y: Any, rng: np.random.Generator, weights: np.ndarray | None = None
) -> tuple[Target, Plan]:
    """Target and plan with the number of detail bits that held-out rows allow, where the plan leaves it open."""
    if plan.detail_bits != "auto":
        return target, plan
    held_out, book = HeldOut.split(X, label_targets(y), rng), target.book
    whole = plan.with_details(DetailChoice(0))
    encoder = BitEncoder.of_label_bits(X, y, target, whole, draw_seed(rng), weights, held_out.learned)
    learned, held = (
        ScoredRows(encoder.odds(X[rows]), X[rows], held_out.labels[rows]) for rows in (held_out.learned, held_out.held)
    )

    def thresholds_of(k: int) -> np.ndarray:
        """Of the first k label bits, as the encoder will hold them against."""
        shorter = plan.with_details(DetailChoice(plan.n_bits - k))
        return thresholds(learned.scores[:, :k], shorter.dither, shorter.n_plain_bits)

    def label_weights(k: int) -> np.ndarray:
        return shrink(book.weights_for(k), plan.weight_share)

    plan = plan.with_details(choose_details(learned, held, label_weights, thresholds_of, random_state=draw_seed(rng)))
    return target.first_bits(plan.n_label_bits + plan.extra_bits), plan


@dataclass(frozen=True)
class HeldOut:
    """Rows that a probe learns from, and rows that query."""

    X: np.ndarray
    labels: np.ndarray  # (n,) classes or (n, labels)
    learned: np.ndarray  # positions
    held: np.ndarray  # positions

    @classmethod
    def split(cls, X: Any, labels: np.ndarray, rng: np.random.Generator) -> HeldOut:
        """A fifth of the rows is held out, neither part larger than it needs to be."""
        order = rng.permutation(len(X))
        held = min(round(_HELD * len(X)), _MOST_HELD)
        return cls(X, labels, order[held : held + _MOST_LEARNED], order[:held])

    def probe(self, codes: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each candidate the codes that a probe gives to held-out and to learned rows; codes: of all rows."""
        targets = np.concatenate([of_rows[self.learned] for of_rows in codes], axis=1).astype(np.float32)
        learned, held = self._kernel_features()
        centre, level = learned.mean(axis=0), targets.mean(axis=0)
        learned -= centre
        held -= centre
        gram = learned.T @ learned
        gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
        weights = cho_solve(cho_factor(gram, overwrite_a=True), learned.T @ (targets - level))
        ends = np.cumsum([of_rows.shape[1] for of_rows in codes])[:-1]
        parts = [np.split(signs(rows @ weights + level), ends, axis=1) for rows in (held, learned)]
        return list(zip(*parts, strict=True))

    def _kernel_features(self) -> tuple[np.ndarray, np.ndarray]:
        """Φ of the learned and of the held-out rows, with learned rows as anchors."""
        rows, held = self.X[self.learned], self.X[self.held]
        mean, scale = rows.mean(axis=0), max(float(rows.std()), 1e-12)
        rows, held = (rows - mean) / scale, (held - mean) / scale
        anchors = rows[:_ANCHORS]
        spread = max(float(np.median(squared_distances(rows[-_ANCHORS:], anchors))) * _WIDTH**2, 1e-12)
        learned, new = (np.exp(squared_distances(part, anchors) / np.float32(-2 * spread)) for part in (rows, held))
        return learned, new

    def retrieval_of_prefixes(self, held: np.ndarray, learned: np.ndarray) -> float:
        """The mean of `retrieval` over a half, a quarter and an eighth of the bits."""
        lengths = {max(1, held.shape[1] // part) for part in (2, 4, 8)}
        return float(np.mean([self.retrieval(held[:, :k], learned[:, :k]) for k in sorted(lengths)]))

    def retrieval(self, held: np.ndarray, learned: np.ndarray) -> float:
        """Mean of the mAP of held-out codes among themselves and among the learned ones."""
        own = self.labels[self.held]
        among = _precision(self_retrieval_map, held, own)
        return (among + _precision(mean_average_precision, held, learned, own, self.labels[self.learned])) / 2


def _precision(metric: Callable[..., float], *codes_and_labels: np.ndarray) -> float:
    """mAP, ties averaged; for multi-label rows its mean with that over the heads of the rankings."""
    labels = codes_and_labels[-1]  # of the database
    cutoffs = (None,) if labels.ndim == 1 else (None, max(_SHORTEST_HEAD, round(_HEAD * len(labels))))
    scores = [metric(*codes_and_labels, cutoff=cutoff, ties="average") for cutoff in cutoffs]
    return float(np.nan_to_num(np.mean(scores)))  # where no query has a neighbour
