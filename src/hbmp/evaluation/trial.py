"""One seeded split of given arrays, and the scores of codes on it: the basis of comparisons and evaluations.

Queries are drawn first, and no method sees them. Training rows are drawn from the other rows, which are the database.
With `unseen` the database holds only rows that did not train, so that memorising cannot raise a score. Draws are even
over classes or label sets: rows are shuffled, sorted by class, and every k-th is taken. Each class therefore has its
proportion to within one row, however rare it is.
"""

from __future__ import annotations

import numbers
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hbmp import metrics
from hbmp._core.labels import (
    are_label_lists,
    as_array,
    as_classes,
    as_label_rows,
    as_label_sets,
    distinct_rows,
    label_names_in,
)
from hbmp.datasets import Data
from hbmp.evaluation.first_results import SHOWN
from hbmp.images import Images, as_images, is_images
from hbmp.protocols import Measure, Protocol, Split

TIES = (
    "Tied items keep their order in the database, and “tie-aware” scores are averaged over all orders of tied items. "
    "“weighted” is the distance with the method's bit weights, if it has any."
)
PERCENTILES, GRADES = (2, 5, 10, 20), (10, 5, 2, 1)  # without labels: the paper's setting
_MOST_QUERIES = 1000  # without a given number
_MOST_PAIRED = 2000  # training rows whose distances set the thresholds
_MOST_GRADES = 1 << 28  # bytes of grades that are kept rather than computed again for every code length


_Part = tuple[Any, Any]  # features or images, and labels


class Trial(Protocol):
    """Training rows, database and queries, and what is relevant among them.

    Parameters
    ----------
    train, database, queries : tuple of (ndarray, ndarray or None)
        Features (n, d) or images, with labels.
    cutoff : int, default=None
        How many ranks count.

    Attributes
    ----------
    kind : str
        What defines relevance: "classes", "label sets" or "distances".
    """

    def __init__(self, train: _Part, database: _Part, queries: _Part, *, cutoff: int | None = None):
        self.train, self.train_labels = train
        self.database, self.database_labels = database
        self.queries, self.query_labels = queries
        self.cutoff = cutoff

    @property
    def kind(self) -> str:
        """What defines relevance: "classes", "label sets" or "distances"."""
        if self.database_labels is None:
            return "distances"
        return "classes" if self.database_labels.ndim == 1 else "label sets"

    @property
    def measures(self) -> tuple[Measure, ...]:  # type: ignore[override]
        """mAP, and NDCG if relevance has grades."""
        precision = Measure("map", self.cutoff)
        gain = {"label sets": "shared", "distances": "scaled"}.get(self.kind)
        return (precision,) if gain is None else (precision, Measure("ndcg", self.cutoff, gain))

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """Definition of relevance, for the caption."""
        if self.kind == "classes":
            return "Neighbours have the same class."
        if self.kind == "label sets":
            return "Neighbours share a label; the grade c is the number of shared labels."
        levels = ", ".join(f"{percent} % ({grade})" for percent, grade in zip(PERCENTILES, GRADES, strict=True))
        return (
            "Neighbours are close in Euclidean distance; the grade c follows from the percentile of the distances "
            f"between training rows: {levels}, 0 beyond."
        )

    def relevance(self, data: Any = None, split: Any = None) -> metrics.Relevance:
        """Relevance of the database for the queries; the arguments of a protocol are not used."""
        return self._relevance

    @cached_property
    def _relevance(self) -> metrics.Relevance:
        if self.kind == "distances":
            return self._distance_levels()
        kind: type = metrics.SharesClass if self.kind == "classes" else metrics.CountsSharedLabels
        relevance: metrics.Relevance = kind(self.query_labels, self.database_labels)
        return relevance

    @cached_property
    def nearest(self) -> metrics.Relevance:
        """The ten nearest items of each query by the original vectors; with labels, only items of the same label."""
        near = metrics.Nearest(self.queries, self.database, self.query_labels, self.database_labels, levels=(SHOWN,))
        return _kept(near)

    def _distance_levels(self) -> metrics.Relevance:
        from scipy.spatial.distance import pdist

        some = self.train[:: -(-len(self.train) // _MOST_PAIRED)]
        thresholds = np.percentile(pdist(np.asarray(some, dtype=np.float64)), PERCENTILES)
        levels = metrics.DistanceGrades(self.queries, self.database, thresholds, GRADES)
        return _kept(levels)

    def scores(
        self, query_codes: ArrayLike, database_codes: ArrayLike, bit_weights: ArrayLike | None
    ) -> dict[str, float]:
        """All readings of all measures, named as in `hbmp.protocols`."""
        return self.scores_with_curve(query_codes, database_codes, bit_weights)[0]

    def scores_with_curve(
        self, query_codes: ArrayLike, database_codes: ArrayLike, bit_weights: ArrayLike | None
    ) -> tuple[dict[str, float], dict[str, list[float]]]:
        """All readings of all measures, and the precision–recall curve."""
        data, split = cast(Data, None), cast(Split, None)  # `relevance` needs neither
        return self.evaluate_with_curve(query_codes, database_codes, data, split, bit_weights=bit_weights)

    def within_training(self, seed: int) -> Trial:
        """A split of the training rows alone, a fifth of them as queries, for choosing settings."""
        split = draw_split(len(self.train), self.train_labels, queries=0.2, train=None, seed=seed)
        return trial_of(self.train, self.train_labels, split, cutoff=self.cutoff)


def trial_of(
    X: Any, y: Any, split: Split, *, query_X: Any = None, query_y: Any = None, cutoff: int | None = None
) -> Trial:
    """The trial of a split of X (n, d) and y; with query_X the split's queries are rows of query_X."""

    def part(inputs: Any, labels: Any, rows: NDArray[Any]) -> _Part:
        mine = inputs[rows]
        return mine if isinstance(mine, Images) else np.asarray(mine), None if labels is None else labels[rows]

    database = part(X, y, split.database)
    train = database if np.array_equal(split.train, split.database) else part(X, y, split.train)
    queries = part(*((X, y) if query_X is None else (query_X, query_y)), split.query)
    return Trial(train, database, queries, cutoff=cutoff)


def draw_split(
    n_rows: int,
    y: NDArray[Any] | None,
    *,
    queries: float | None,
    train: float | None,
    seed: int,
    unseen: bool = False,
    n_given_queries: int | None = None,
) -> Split:
    """Draw query, training and database rows; sorted, the same for the same seed.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    y : ndarray or None
        Labels to draw evenly over.
    queries : int, float or None
        Number or fraction of queries; a tenth, at most 1,000, if None.
    train : int, float or None
        Number or fraction of the other rows; all of them if None, half with `unseen`.
    seed : int
        Seed of the draw.
    unseen : bool, default=False
        Whether the database holds only rows that did not train.
    n_given_queries : int, default=None
        Number of queries given separately; then no row here is a query.

    Returns
    -------
    Split
        The split.
    """
    rng, strata = np.random.default_rng(seed), _strata(y)
    others = np.arange(n_rows)
    if n_given_queries is not None:
        query_rows = np.arange(n_given_queries)
    else:
        wanted = min(_MOST_QUERIES, max(1, n_rows // 10)) if queries is None else queries
        query_rows = draw_evenly(_count(wanted, n_rows, "queries"), others, strata, rng)
        others = np.delete(others, query_rows)
    train = (0.5 if unseen else len(others)) if train is None else train
    training = draw_evenly(_count(train, len(others), "train"), others, strata, rng) if len(others) else others
    database_rows = np.setdiff1d(others, training) if unseen else others
    if len(database_rows) < 2:
        raise ValueError(
            f"{len(query_rows)} queries and {len(training)} training rows leave nothing to search; choose fewer."
        )
    return Split(training, query_rows, database_rows)


def draw_evenly(count: int, rows: NDArray[Any], strata: NDArray[Any] | None, rng: np.random.Generator) -> NDArray[Any]:
    """`count` of the rows, sorted: every row equally likely, every stratum in proportion to within one row."""
    if count >= len(rows):
        return rows
    order = rng.permutation(rows)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    places = ((np.arange(count) + rng.random()) * (len(rows) / count)).astype(np.int64)
    return np.sort(order[np.minimum(places, len(rows) - 1)])


def as_labels(y: Any, n_rows: int, name: str = "y", others: Any = None) -> NDArray[Any] | None:
    """Labels in the form that comparisons use: (n,) classes or (n, c) 0/1 float32.

    Lists of label names have a column for every name in them and in the lists of `others`.
    """
    if y is None:
        return None
    if are_label_lists(y):
        y = as_label_rows(y, label_names_in(y, others if are_label_lists(others) else ()), name)
    y = y if sparse.issparse(y) else as_array(y, name)
    as_sets = sparse.issparse(y) or (y.ndim == 2 and y.shape[1] > 1)
    labels = as_label_sets(y, name) if as_sets else as_classes(y, name)
    if len(labels) != n_rows:
        raise ValueError(f"There are {n_rows} rows but {name} has {len(labels)}; every row needs its label.")
    return labels


def as_features(X: Any, name: str = "X") -> NDArray[Any]:
    """Finite features (n, d); an array is not copied."""
    features: NDArray[Any] = X.toarray() if sparse.issparse(X) else np.asanyarray(X)
    if features.ndim != 2 or features.dtype.kind not in "fiub" or 0 in features.shape:
        raise ValueError(
            f"{name} must be an (n, d) array of numbers; found {features.dtype} of shape {features.shape}."
        )
    for start in range(0, len(features), 8192):
        if not np.isfinite(features[start : start + 8192]).all():
            raise ValueError(f"{name} holds NaN or infinity from row {start} on; fill or drop those rows.")
    return features


def as_inputs(X: Any, y: Any, name: str = "X") -> Any:
    """Features, or images, whose neighbours are defined by labels only."""
    if not is_images(X):
        return as_features(X, name)
    if y is None:
        raise ValueError("Neighbours of images are defined by labels: pass y, or features instead of images.")
    return as_images(X)


def check_alike(X: Any, y: Any, query_X: Any, query_y: Any) -> None:
    """Check that given queries have the features and the kind of labels of the database."""
    if isinstance(X, Images) != isinstance(query_X, Images):
        raise ValueError("X and query_X must both be images, or both features.")
    if not isinstance(X, Images) and X.shape[1] != query_X.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features and query_X {query_X.shape[1]}; both need the same ones.")
    if (y is None) != (query_y is None) or (y is not None and y.shape[1:] != query_y.shape[1:]):
        raise ValueError("y and query_y must both be classes, or 0/1 matrices with the same columns, or missing.")


def drawn_words(n_queries: int, kind: str, given: bool) -> str:
    """How the queries were chosen, for a caption."""
    evenly = {"classes": " evenly over classes", "label sets": " evenly over label sets"}.get(kind, "")
    return f"{n_queries:,} queries " + ("as given" if given else f"drawn{evenly}")


def _kept(relevance: metrics.Relevance) -> metrics.Relevance:
    """The same grades, held in memory where they fit, because every method and code length reads them."""
    n_queries, n_database = relevance.shape
    if n_queries * n_database > _MOST_GRADES:
        return relevance
    grades = np.empty((n_queries, n_database), dtype=np.uint8)
    for start in range(0, n_queries, 64):
        stop = min(start + 64, n_queries)
        grades[start:stop] = relevance.grades(start, stop)
    return metrics.Graded(partial(_rows_between, grades), relevance.shape)


def _rows_between(grades: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
    return grades[start:stop]


def _strata(y: NDArray[Any] | None) -> NDArray[Any] | None:
    """The class or label set of each row, as numbers."""
    if y is None:
        return None
    return np.unique(y, return_inverse=True)[1] if y.ndim == 1 else distinct_rows(y)[1]


def _count(wanted: float, n_rows: int, name: str) -> int:
    """A number of rows from a number, or from a fraction below 1."""
    whole = isinstance(wanted, numbers.Integral) and not isinstance(wanted, bool)
    if not whole and not (isinstance(wanted, numbers.Real) and 0 < float(wanted) < 1):
        raise ValueError(f"{name} must be a number of rows or a fraction between 0 and 1, found {wanted!r}.")
    count = int(wanted) if whole else max(1, round(float(wanted) * n_rows))
    if not 1 <= count <= n_rows:
        raise ValueError(f"{name} must lie between 1 and the {n_rows} available rows, found {count}.")
    return count
