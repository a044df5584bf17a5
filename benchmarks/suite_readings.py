"""Settings that only the reading of a trained function depends on, all measured on one fit of HBMP.

    python benchmarks/suite.py run suite-data --validation --methods hbmp --readings --output readings.jsonl
    python benchmarks/suite.py regret readings.jsonl

The weight of the labels' votes, their prior, label-aware queries, the weights of bits and their thresholds change
nothing about the training. `READINGS` names what differs from the default in each; every other setting stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

READINGS: dict[str, dict] = {
    "votes 0": {"label_share": 0.0},
    "votes 0.25": {"label_share": 0.25},
    "votes 0.5": {"label_share": 0.5},
    "votes 0.75": {"label_share": 0.75},
    "votes 1": {"label_share": 1.0},
    "prior -1": {"power": -1.0},
    "prior -0.5": {"power": -0.5},
    "prior 0": {"power": 0.0},
    "prior 0.5": {"power": 0.5},
    "plain queries": {"label_queries": False},
    "label-aware queries": {"label_queries": True},
    "equal weights": {"weight_share": 0.0},
    "weights 0.5": {"weight_share": 0.5},
    "weights of the pursuit": {"weight_share": 1.0},
    "no dither": {"dither": 0.0},
    "dither 0.15": {"dither": 0.15},
    "dither 0.3": {"dither": 0.3},
}


def readings(model, rows) -> Iterator[tuple[str, object]]:
    """(name, model that reads so) for each reading of a fitted HBMP; none where it learned no label scores."""
    encoder = getattr(model, "encoder_", None)
    if encoder is None or encoder.votes is None or encoder.detail is not None:
        return
    features, labels = rows.features[rows.train], rows.labels[rows.train]
    encoder.function = Remembered(encoder.function)
    for name, settings in READINGS.items():
        yield name, Reading(model, features, labels, **settings)


class Remembered:
    """A trained function that computes the scores of the same rows once."""

    def __init__(self, function):
        self.function, self.known = function, {}

    def project(self, X) -> np.ndarray:
        """The function's scores."""
        key = (X.shape, X[0].tobytes(), X[-1].tobytes())
        if key not in self.known:
            self.known[key] = self.function.project(X)
        return self.known[key]


class Reading:
    """A fitted HBMP whose trained function is read with other settings; it retrieves as the model does."""

    def __init__(self, model, X, y, label_share=None, power=None, label_queries=None, weight_share=None, dither=None):
        from hbmp import hamming
        from hbmp.methods.hbmp.dither import thresholds
        from hbmp.methods.hbmp.label_queries import make_queries
        from hbmp.methods.hbmp.label_votes import label_targets
        from hbmp.methods.hbmp.targets import shrink

        plan, encoder = model.plan_, model.encoder_
        share = plan.label_share if label_share is None else label_share
        votes = encoder.votes if power is None else with_prior(encoder.votes, model, label_targets(y), power)
        self.encoder = replace(encoder, label_share=share, votes=votes, queries=None, thresholds=None)
        scores = self.encoder.scores(X)
        odds = self.encoder.odds_of(scores)
        if spread := plan.dither if dither is None else dither:
            self.encoder.thresholds = thresholds(odds, spread, plan.n_plain_bits)
        if plan.label_queries if label_queries is None else label_queries:
            codes = hamming.signs(self.encoder.held(odds))
            found = make_queries(codes, label_targets(y), scores.labels.shape[1])
            self.encoder.queries = found.levelled(odds, scores.labels)
        self.bit_weights_ = shrink(model.codebook_.weights, plan.weight_share if weight_share is None else weight_share)

    def project(self, X) -> np.ndarray:
        """Scores of real-valued queries."""
        return self.encoder.project(X)

    def transform(self, X) -> np.ndarray:
        """Codes."""
        from hbmp import hamming

        return hamming.signs(self.encoder.sign_scores(X))


def with_prior(votes, model, labels: np.ndarray, power: float):
    """The same votes with the counts of classes or label sets to this power."""
    affinity = model.codebook_.affinity
    if labels.ndim == 1:
        first = np.unique(affinity.item_of_, return_index=True)[1]
        counts = np.bincount(labels)[labels[first]]
    else:
        counts = affinity.counts_
    return replace(votes, prior=(power * np.log(counts)).astype(np.float32))
