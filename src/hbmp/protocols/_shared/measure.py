"""A metric with its conventions, by name and in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hbmp import metrics

GAINS = ("binary", "scaled", "shared")
_GAIN_TEXT = {"binary": "1 for any neighbour", "scaled": "2^(c/c_max) − 1", "shared": "2^c − 1"}


@dataclass(frozen=True)
class Measure:
    """A metric with its conventions.

    Parameters
    ----------
    metric : {"map", "ndcg"}
        The metric.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    gain : {"binary", "scaled", "shared"}, default=""
        Gain of NDCG.

    Examples
    --------
    >>> from hbmp.protocols import Measure
    >>> Measure("map", 5000).name, Measure("ndcg", gain="shared").name
    ('map@5000', 'ndcg-shared')
    """

    metric: str
    cutoff: int | None = None
    gain: str = ""

    @property
    def name(self) -> str:
        """Name of the score, such as "map", "map@5000" or "ndcg-shared"."""
        return self.metric + (f"-{self.gain}" if self.gain else "") + (f"@{self.cutoff}" if self.cutoff else "")

    @property
    def caption(self) -> str:
        """The conventions in words."""
        ranking = f"the first {self.cutoff:,} items" if self.cutoff else "the full ranking"
        if self.metric == "map":
            return (
                f"{self.name}: mean average precision over {ranking}, normalised by the number of relevant items in "
                "it; queries without any are left out"
            )
        return f"{self.name}: NDCG over {ranking}, gain {_GAIN_TEXT[self.gain]}"

    def scorer(self, relevance: metrics.Relevance, *, ties: str, largest_grade: float | None) -> Callable[[Any], float]:
        """The metric of one ranked list, for `metrics.score_together`.

        Parameters
        ----------
        relevance : Relevance
            Grades of all queries.
        ties : str
            Tie rule.
        largest_grade : float or None
            Largest grade, for the scaled gain.

        Returns
        -------
        callable
            Maps a ranked list to its score.
        """
        if self.metric == "map":
            return metrics.average_precision_scorer(relevance.shape[1], cutoff=self.cutoff, ties=ties)
        largest = largest_grade if self.gain == "scaled" else None
        return metrics.ndcg_scorer(relevance, cutoff=self.cutoff, gain=self.gain, ties=ties, largest_grade=largest)


def ndcg_measures(cutoff: int | None = None) -> tuple[Measure, ...]:
    """NDCG in its three readings: published numbers rarely state which one they are."""
    return tuple(Measure("ndcg", cutoff, gain) for gain in GAINS)
