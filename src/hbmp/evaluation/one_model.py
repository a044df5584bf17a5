"""How well a fitted model retrieves on somebody's arrays, with the conventions of every number beside it.

    found = hbmp.evaluate(model, X, y)                                  # queries drawn from X, the rest is searched
    found = hbmp.evaluate(model, X, y, query_X=queries, query_y=labels) # queries of your own, all of X is searched
    found.scores["map"], found.caption

`hold_out` gives the rows that `evaluate` draws as queries for the same arguments, so that a model can be fitted on the
others alone: then nothing it is scored with was seen in fitting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hbmp._core.table import Table
from hbmp.evaluation.trial import TIES, as_inputs, as_labels, check_alike, draw_split, drawn_words, trial_of
from hbmp.protocols import Split


@dataclass(frozen=True)
class Evaluation:
    """Scores by name, as in `hbmp.protocols` ("map", "map.tie-aware", "map.weighted", …), and what they depend on."""

    scores: dict[str, float]
    split: Split
    caption: str

    def to_markdown(self) -> str:
        """A score a line, and the caption."""
        rows = tuple((name, f"{value:.4f}") for name, value in self.scores.items())
        return f"{Table(('score', 'value'), rows).text()}\n\n{self.caption}"

    def to_json(self) -> dict:
        """What JSON can hold of it; a score that no query decides is None."""
        scores = {name: value if math.isfinite(value) else None for name, value in self.scores.items()}
        return {"scores": scores, "caption": self.caption}


def hold_out(X, y=None, *, queries: float | None = None, seed: int = 0) -> Split:
    """Rows that ask and rows that answer: a tenth as queries, at most 1,000, unless told a number or a share."""
    X = as_inputs(X, y)
    return draw_split(len(X), as_labels(y, len(X)), queries=queries, train=None, seed=seed)


def evaluate(
    model,
    X,
    y=None,
    *,
    query_X=None,
    query_y=None,
    queries: float | None = None,
    cutoff: int | None = None,
    seed: int = 0,
    name: str = "X",
    note: str = "",
) -> Evaluation:
    """Score a fitted model on features X (n, d) with classes, 0/1 labels or nothing (neighbours by distance) in y.

    A model of images takes images (`hbmp.Images`, a folder) in X, and needs labels.

    queries : rows of X drawn as queries, a number or a share below 1; a tenth, at most 1,000, if None
    query_X, query_y : queries of your own; then all of X is searched
    cutoff : how many ranks count; the full ranking if None · seed : of the draw
    name, note : what the caption calls the data, and a sentence to add to it
    """
    X = as_inputs(X, y)
    y = as_labels(y, len(X))
    if query_X is None and query_y is not None:
        raise ValueError("query_y= holds the labels of query_X=, which is missing.")
    if query_X is not None:
        if queries is not None:
            raise ValueError("Either queries= draws rows of X as queries or query_X= brings them; pass one of the two.")
        query_X = as_inputs(query_X, query_y, "query_X")
        query_y = as_labels(query_y, len(query_X), "query_y")
        check_alike(X, y, query_X, query_y)
    n_given = None if query_X is None else len(query_X)
    split = draw_split(len(X), y, queries=queries, train=None, seed=seed, n_given_queries=n_given)
    trial = trial_of(X, y, split, query_X=query_X, query_y=query_y, cutoff=cutoff)
    scores = trial.scores(model.transform(trial.queries), model.transform(trial.database), model.bit_weights_)
    measured = ". ".join(measure.caption for measure in trial.measures)
    asked = drawn_words(len(split.query), trial.kind, query_X is not None)
    others = "rows" if query_X is not None else "others"
    caption = (
        f"{name}: {asked}; the database is the {len(split.database):,} {others} (seed {seed}, split "
        f"{split.checksum}). {trial.neighbours} {measured}. {TIES}"
    )
    return Evaluation(scores, split, f"{caption} {note}".strip())
