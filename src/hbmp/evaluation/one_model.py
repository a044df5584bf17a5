"""Scores of a fitted model on given arrays, with the conventions of every number.

    found = hbmp.evaluate(model, X, y)                                  # queries drawn from X; the rest is searched
    found = hbmp.evaluate(model, X, y, query_X=queries, query_y=labels) # given queries; all of X is searched
    found.scores["map"], found.caption

`hold_out` returns the rows that `evaluate` draws as queries for the same arguments. A model fitted on the other rows is
then scored on queries it has never seen.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from hbmp._core.table import Table
from hbmp.evaluation.first_results import ABOUT, HEADINGS, FirstResults, first_results
from hbmp.evaluation.trial import TIES, as_inputs, as_labels, check_alike, draw_split, drawn_words, trial_of
from hbmp.hasher import Hasher
from hbmp.protocols import Split


@dataclass(frozen=True)
class Evaluation:
    """Result of `evaluate`.

    Parameters
    ----------
    scores : dict of str to float
        Scores by name, as in `hbmp.protocols`: "map", "map.tie-aware", "map.weighted", …
    split : Split
        Queries and database.
    caption : str
        The conventions behind the scores, in words.
    first : FirstResults, default=None
        Measures of the first ten results: precision, recall, distinct codes and ties.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> from hbmp import evaluation
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> found = evaluation.evaluate(hbmp.get_method("pca_sign")(4).fit(X), X, X[:, 0] > 0, queries=10)
    >>> sorted(found.scores)
    ['map', 'map.tie-aware']
    """

    scores: dict[str, float]
    split: Split
    caption: str
    first: FirstResults | None = None

    def to_markdown(self) -> str:
        """Render one score per line, the first ten results in words and numbers, and the caption.

        Returns
        -------
        str
            Markdown.
        """
        return f"{self.tables()}\n\n{self.caption}"

    def tables(self, *, graded: bool = True) -> str:
        """Render the scores and the first ten results, without the caption.

        Parameters
        ----------
        graded : bool, default=True
            Include the scores of the whole ranking. Without labels, the first ten results say more.

        Returns
        -------
        str
            Markdown.
        """
        rows = tuple((name, f"{value:.4f}") for name, value in self.scores.items())
        parts = [Table(("score", "value"), rows).text()] if graded or self.first is None else []
        if self.first is not None:
            shown = tuple(line for line in zip(HEADINGS, self.first.cells(), strict=True) if line[1] != "—")
            parts += [Table(("first ten results", "value"), shown).text(), self.first.sentence()]
        return "\n\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Convert to values that JSON holds; a score without any query is None.

        Returns
        -------
        dict
            "scores", "first_results" and "caption".
        """
        scores = {name: value if math.isfinite(value) else None for name, value in self.scores.items()}
        first = None if self.first is None else asdict(self.first)
        return {"scores": scores, "first_results": first, "caption": self.caption}


def hold_out(X: Any, y: Any = None, *, queries: float | None = None, seed: int = 0) -> Split:
    """Draw query rows and database rows.

    Parameters
    ----------
    X : array-like of shape (n, d), or images
        Features or images.
    y : array-like of shape (n,) or (n, c), default=None
        Classes or 0/1 labels; queries are drawn evenly over them.
    queries : int or float, default=None
        Number of rows drawn as queries, or a fraction below 1; a tenth, at most 1,000, if None.
    seed : int, default=0
        Seed of the draw.

    Returns
    -------
    Split
        `query` and `database` rows; all rows of the database may train.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> from hbmp import evaluation
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> split = evaluation.hold_out(X, queries=0.2)
    >>> len(split.query), len(split.train)
    (12, 48)
    """
    X = as_inputs(X, y)
    return draw_split(len(X), as_labels(y, len(X)), queries=queries, train=None, seed=seed)


def evaluate(
    model: Hasher,
    X: Any,
    y: Any = None,
    *,
    query_X: Any = None,
    query_y: Any = None,
    queries: float | None = None,
    cutoff: int | None = None,
    seed: int = 0,
    name: str = "X",
    note: str = "",
) -> Evaluation:
    """Score a fitted model.

    Parameters
    ----------
    model : Hasher
        The fitted model.
    X : array-like of shape (n, d), or images
        Features; for a model of images, images (`hbmp.Images`, a folder), which need labels.
    y : array-like of shape (n,) or (n, c), default=None
        Classes or 0/1 labels; without labels, neighbours are defined by distance.
    query_X : array-like of shape (m, d), or images, default=None
        Given queries; all of X is then searched.
    query_y : array-like of shape (m,) or (m, c), default=None
        Labels of the given queries.
    queries : int or float, default=None
        Number of rows drawn as queries, or a fraction below 1; a tenth, at most 1,000, if None.
    cutoff : int, default=None
        How many ranks count; the full ranking if None.
    seed : int, default=0
        Seed of the draw.
    name : str, default="X"
        Name of the data in the caption.
    note : str, default=""
        A sentence added to the caption.

    Returns
    -------
    Evaluation
        Scores with their conventions.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> from hbmp import evaluation
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> split = evaluation.hold_out(X, queries=10)
    >>> model = hbmp.get_method("pca_sign")(4).fit(X[split.train])
    >>> 0 < evaluation.evaluate(model, X, queries=10).scores["map"] < 1
    True
    """
    X, given_y = as_inputs(X, y), y
    y = as_labels(y, len(X), others=query_y)
    if query_X is None and query_y is not None:
        raise ValueError("query_y= holds the labels of query_X=, which is missing.")
    if query_X is not None:
        if queries is not None:
            raise ValueError("Either queries= draws rows of X as queries or query_X= brings them; pass one of the two.")
        query_X = as_inputs(query_X, query_y, "query_X")
        query_y = as_labels(query_y, len(query_X), "query_y", others=given_y)
        check_alike(X, y, query_X, query_y)
    n_given = None if query_X is None else len(query_X)
    split = draw_split(len(X), y, queries=queries, train=None, seed=seed, n_given_queries=n_given)
    trial = trial_of(X, y, split, query_X=query_X, query_y=query_y, cutoff=cutoff)
    codes = model.transform(trial.queries), model.transform(trial.database), model.bit_weights_
    scores, first = trial.scores(*codes), first_results(trial, *codes, model)
    measured = ". ".join(measure.caption for measure in trial.measures)
    queried = drawn_words(len(split.query), trial.kind, query_X is not None)
    others = "rows" if query_X is not None else "other rows"
    caption = (
        f"{name}: {queried}; the database is the {len(split.database):,} {others} (seed {seed}, split "
        f"{split.checksum}). {trial.neighbours} {measured}. {TIES} {ABOUT}"
    )
    return Evaluation(scores, split, f"{caption} {note}".strip(), first)
