"""The first ten results of a search: do they have the right label, and are they the nearest items?

    precision@10   right kind: fraction of the first ten that share the query's class or a label
    recall@10      right ones: fraction of the ten nearest by the original vectors (with labels: of the same class or
                   label) that are among the first ten; also with real-valued queries
    distinct       number of different codes in the database
    all tied       fraction of queries whose first ten are all at one distance, so that their order is arbitrary

mAP measures only the first: one code per class can have an mAP of 1. The ranking is by the method's own distance, and
scores are averaged over all orders of tied items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hbmp import metrics
from hbmp.images import is_images
from hbmp.metrics.ranking import Ranker, make_ranker, score_queries

if TYPE_CHECKING:
    from hbmp.evaluation.trial import Trial
    from hbmp.hasher import Hasher

SHOWN = 10
ABOUT = (
    "The first ten results are ranked by the method's own distance, and scores are averaged over ties. “precision@10” "
    "is the fraction of these results that share the query's class or a label. “recall@10” is the fraction of the ten "
    "nearest items, by cosine of the original vectors, that are among them; if there are labels, only items of the "
    "same class or label count. “real-valued queries” are scores before the sign. “all tied” is the fraction of "
    "queries whose first ten results are at the same distance."
)


@dataclass(frozen=True)
class FirstResults:
    """Measures of the first ten results.

    Parameters
    ----------
    right_kind : float or None
        Fraction of the first ten of the query's class or labels; None without labels.
    right_ones : float or None
        Fraction of the ten nearest by the original vectors among the first ten; None for images.
    distinct : int
        Number of different codes in the database.
    items : int
        Number of items in the database.
    tied : float
        Fraction of queries whose first ten are all at one distance.
    right_ones_float : float, default=None
        `right_ones` with real-valued queries; None if not measured.

    Examples
    --------
    >>> from hbmp.evaluation import FirstResults
    >>> FirstResults(0.98, 0.1, 10, 1000, 1.0).cells()
    ('0.980', '0.100', '—', '10', '100 %')
    """

    right_kind: float | None
    right_ones: float | None
    distinct: int
    items: int
    tied: float
    right_ones_float: float | None = None

    @property
    def best_recall(self) -> float | None:
        """Recall of the ten nearest, with real-valued queries if measured."""
        return self.right_ones if self.right_ones_float is None else self.right_ones_float

    def cells(self) -> tuple[str, ...]:
        """Format the measures for a table.

        Returns
        -------
        tuple of str
            Precision, recall, recall with real-valued queries, distinct codes, tied.
        """
        found = (self.right_kind, self.right_ones, self.right_ones_float)
        shares = ("—" if share is None else f"{share:.3f}" for share in found)
        return (*shares, f"{self.distinct:,}", f"{self.tied:.0%}".replace("%", " %"))

    def sentence(self) -> str:
        """Describe the measures in a sentence.

        Returns
        -------
        str
            One or two sentences.

        Examples
        --------
        >>> from hbmp.evaluation import FirstResults
        >>> FirstResults(0.98, 0.1, 10, 1000, 1.0).sentence()[:51]
        'Of the first ten results, 98 % share a label with t'
        """
        parts = []
        if self.right_kind is not None:
            parts.append(f"Of the first ten results, {self.right_kind:.0%} share a label with the query.")
        if self.right_ones is not None:
            floats = self.right_ones_float
            who, such = ("The first ten results", "") if self.right_kind is None else ("They", " that share a label,")
            more = "" if floats is None else f"; with real-valued queries, {floats:.0%}"
            parts.append(
                f"{who} include {self.right_ones:.0%} of the ten nearest items{such} by the original vectors{more}."
            )
        parts.append(f"{self.items:,} items have {self.distinct:,} distinct codes.")
        if self.tied >= 0.5:
            parts.append(
                f"For {self.tied:.0%} of the queries, the first ten results are all tied and their order is arbitrary."
            )
        return " ".join(parts).replace("%", " %")


HEADINGS = ("precision@10", "recall@10", "recall@10, real-valued queries", "distinct codes", "all tied")


def first_results(
    trial: Trial,
    query_codes: ArrayLike,
    database_codes: ArrayLike,
    bit_weights: ArrayLike | None,
    model: Hasher | None = None,
) -> FirstResults:
    """Measure the first ten results of all queries of a trial; `model` gives the real-valued queries."""
    ranker = make_ranker(query_codes, database_codes, bit_weights)
    ranks = np.array([min(SHOWN, ranker.shape[1])])
    scorer = metrics.hits_scorer(ranks, ties="average")

    def hits(ranker: Ranker, relevance: metrics.Relevance) -> tuple[np.ndarray, np.ndarray]:
        counts = np.array(score_queries(ranker, relevance, scorer), dtype=np.float64).reshape(-1, 2)
        return counts[:, 0], counts[:, 1]

    def recall(ranker: Ranker) -> float | None:
        found, total = hits(ranker, trial.nearest)
        return float((found[total > 0] / total[total > 0]).mean()) if (total > 0).any() else None

    kind = ones = floats = None
    if trial.database_labels is not None:
        kind = float(hits(ranker, trial.relevance())[0].mean() / ranks[0])
    if not is_images(trial.database):
        ones = recall(ranker)
        if model is not None:
            floats = recall(make_ranker(model.project(trial.queries), database_codes, bit_weights))
    return FirstResults(
        right_kind=kind,
        right_ones=ones,
        distinct=metrics.distinct_codes(database_codes),
        items=ranker.shape[1],
        tied=metrics.tied_share(query_codes, database_codes, k=SHOWN, bit_weights=bit_weights),
        right_ones_float=floats,
    )
