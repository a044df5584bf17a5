"""Settings of HBMP that depend on the data, chosen on training instances that the function has not seen.

           feature_share   how much features say in the affinity of classes, and so which code book
           centre_share    how much of its mean affinity a label set loses, and whether a constant is free, likewise
    λ      label_share     how much of a score comes from the labels' votes, the rest from the bit itself
    s      weight_share    how far bit weights go from equal ones (0) to those of the pursuit (1)
           asks            whether real-valued queries ask for labels (`_label_queries`)

A part of the training instances is held out and queries twice: each instance all others of the part, as new items in a
database would be, and the instances that were learned from, which a database often holds too. What counts is the mean
of both mAPs, for label sets, which have many neighbours, each the mean of the full ranking's and that of its first
twentieth; but bits are weighted only where that lifts both, by more than a price: differences of a tenth of a point say
little about new data. One training serves all code books: its scores are their bits side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hbmp.hamming import signs
from hbmp.methods.hbmp.label_queries import make_queries
from hbmp.methods.hbmp.label_votes import make_votes, split_scores
from hbmp.metrics import mean_average_precision, self_retrieval_map

LABEL_SHARES = (0.0, 0.25, 0.5, 0.75)
WEIGHT_SHARES = (0.5, 1.0)
WEIGHT_PRICE = 0.002
"""mAP that whole weights must earn on held-out instances, half weights half of it. Without a price VOC 2007 at 12 bits
took whole weights for a gain of 0.0003, and lost 0.011 on its test."""
ASKING_PRICE = 0.005
"""mAP of real-valued queries that asking for labels may cost on held-out instances before it is given up. Text of 167
classes loses 0.007, and on its test 0.005. Digits are level (0.975 at 16 bits), and on their test asking has 0.990, not
asking 0.988; VOC 2007 gains 0.009, and on its test 0.014, but now and then loses 0.002 by chance."""
MOST_LABELS = 2000  # with more, label scores would cost more than the bits, and labels do not vote unless told to
FEWEST = 200  # instances; with fewer, or where a training is too dear to repeat, the defaults stand
_HELD, _MOST, _QUERIES = 0.2, 4000, 1000  # share held out, most instances of a database, and how many query it
_MOST_AMONG = 2000  # held-out instances that query each other
_HEAD, _SHORTEST_HEAD = 0.05, 20  # share of a ranking that is its head, and items it has at least
CERTAIN = 0.999  # the largest expected bit that is taken at its word


Scores = tuple[np.ndarray, np.ndarray]  # of the bits, and the codes that label scores expect


@dataclass(frozen=True)
class Shares:
    """What was chosen; book: which of the code books."""

    book: int = 0
    label_share: float = 0.25
    weight_share: float = 0.5
    asks: bool = True


def parts(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(instances to learn from, instances held out, those of the first that are searched)."""
    order = rng.permutation(n)
    held = min(round(_HELD * n), _MOST)
    return order[held:], order[:held], order[held : held + _MOST]


def blend(bit_scores: np.ndarray, expected_codes: np.ndarray, label_share: float) -> np.ndarray:
    """Log-odds of the bits: a logistic function's scores are such, and those of an expected bit e in [-1, 1] are
    log (1 + e) / (1 - e); λ of the second."""
    if label_share == 0:
        return bit_scores
    votes = 2 * np.arctanh(np.clip(expected_codes, -CERTAIN, CERTAIN))
    return (1 - label_share) * bit_scores + label_share * votes


def shrink(weights: np.ndarray, share: float) -> np.ndarray:
    """Weights between equal ones and these; the equal ones are their mean, or that of their sizes where it is not
    positive, because a distance must grow with every bit that differs."""
    level = weights.mean()
    if level <= 0:
        level = np.abs(weights).mean() or 1.0
    return share * weights + (1 - share) * level


class Trial:
    """Scores of held-out and of learned instances by one code book, and how well they retrieve."""

    def __init__(self, held: Scores, learned: Scores, held_labels: np.ndarray, learned_labels: np.ndarray):
        """held, learned: (bit scores, expected codes) of each; labels: classes or rows of 0/1."""
        self.held, self.learned = held, learned
        self.held_labels, self.learned_labels = held_labels, learned_labels

    def best(self, weights: np.ndarray, label_shares=LABEL_SHARES, weight_shares=WEIGHT_SHARES):
        """(mean mAP, λ, s): the λ of the highest mean without weights, then the s of the largest smaller gain, less
        its price."""
        plain = {share: self.retrieval(share) for share in label_shares}
        label_share = max(plain, key=lambda share: (round(float(plain[share].mean()), 4), -share))
        found = {0.0: plain[label_share]}
        for share in weight_shares if np.ptp(weights) > 0 else ():
            found[share] = self.retrieval(label_share, shrink(weights, share))
        smaller = {share: float((scores - found[0.0]).min()) for share, scores in found.items()}
        gains = {share: round(gain - WEIGHT_PRICE * share, 4) for share, gain in smaller.items()}
        weight_share = max(gains, key=lambda share: (gains[share], -share))
        return float(found[weight_share].mean()), label_share, weight_share

    def asks(self, label_scores: np.ndarray, label_share: float) -> bool:
        """Whether real-valued queries retrieve as well or better when they ask for labels."""
        odds, of_learned = self._odds(label_share)
        held, learned = signs(odds), signs(of_learned)
        queries = make_queries(learned, self.learned_labels, label_scores.shape[1]).levelled(odds, label_scores)
        asking = self._by_scores(queries.ask(odds, label_scores), held, learned)
        return asking > self._by_scores(odds, held, learned) - ASKING_PRICE

    def _by_scores(self, scores: np.ndarray, held: np.ndarray, learned: np.ndarray) -> float:
        """How well some of the held-out instances, as real-valued queries, retrieve the others and the learned ones."""
        n, labels = min(len(scores) // 2, _QUERIES), self.held_labels
        databases = ((held[n:], labels[n:]), (learned, self.learned_labels))
        found = [_precision(mean_average_precision, scores[:n], codes, labels[:n], of) for codes, of in databases]
        return float(np.mean(found))

    def _odds(self, label_share: float) -> list[np.ndarray]:
        """Log-odds of the held-out and of the learned instances."""
        return [blend(bits, votes, label_share) for bits, votes in (self.held, self.learned)]

    def retrieval(self, label_share: float, weights=None) -> np.ndarray:
        """How well held-out queries retrieve among themselves, and among the learned instances."""
        held, learned = map(signs, self._odds(label_share))
        labels = self.held_labels
        among = _precision(self_retrieval_map, held[:_MOST_AMONG], labels[:_MOST_AMONG], weights=weights)
        queries = (held[:_QUERIES], learned, labels[:_QUERIES], self.learned_labels)
        return np.array([among, _precision(mean_average_precision, *queries, weights=weights)])


def choose(trials: list[Trial], weights: list[np.ndarray], **choices) -> Shares:
    """The code book that retrieves best, with its λ and s; the first of equal ones."""
    found = [trial.best(of_book, **choices) for trial, of_book in zip(trials, weights, strict=True)]
    book = max(range(len(found)), key=lambda index: (round(found[index][0], 4), -index))
    return Shares(book, found[book][1], found[book][2])


def judged(held: tuple, learned: tuple, affinity, books, labels: np.ndarray, fixed: dict[str, Any]) -> Shares:
    """What retrieves best, shares that are fixed as they are.

    held, learned : (rows among the instances, their scores: the bits of all books, then those of labels)
    labels : of all instances
    """
    votes = [make_votes(labels, affinity, book.codes) for book in books]
    scores = [split_scores(of_part, votes) for _, of_part in (held, learned)]
    trials = [Trial(a, b, labels[held[0]], labels[learned[0]]) for a, b in zip(*scores, strict=True)]
    choices = {f"{name}s": (share,) for name, share in fixed.items()}
    chosen = replace(choose(trials, [book.weights for book in books], **choices), **fixed)
    label_scores = held[1][:, sum(book.n_bits for book in books) :]
    return replace(chosen, asks=trials[chosen.book].asks(label_scores, chosen.label_share))


def _precision(metric, *codes_and_labels, weights=None) -> float:
    """mAP, ties averaged; of label sets its mean with that over the heads of the rankings."""
    labels = codes_and_labels[-1]  # of the database
    cutoffs = (None,) if labels.ndim == 1 else (None, max(_SHORTEST_HEAD, round(_HEAD * len(labels))))
    scores = [metric(*codes_and_labels, bit_weights=weights, cutoff=cutoff, ties="average") for cutoff in cutoffs]
    return float(np.nan_to_num(np.mean(scores)))  # where no query has a neighbour
