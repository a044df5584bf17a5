"""One seeded split of somebody's arrays, and how codes are scored on it: what comparisons and evaluations stand on.

Queries are drawn first and no method ever sees them. Training rows are drawn from all others, which are the database;
or, for a score that memorising cannot raise, the database is what was not trained on. Draws are even over classes or
label sets: rows are shuffled, sorted by class, and every k-th is taken, so that each class gives its share to within
one row, however rare it is.
"""

from __future__ import annotations

import numbers
from functools import cached_property, partial

import numpy as np
from scipy import sparse

from hbmp import metrics
from hbmp._core.labels import as_array, as_classes, as_label_sets, distinct_rows
from hbmp.images import Images, as_images, is_images
from hbmp.protocols import Measure, Protocol, Split

TIES = (
    "Items at equal distance keep the order of the database; “tie-aware” is the mean over all their orders, “weighted” "
    "the distance with the method's bit weights, where it has any."
)
PERCENTILES, GRADES = (2, 5, 10, 20), (10, 5, 2, 1)  # without labels: the paper's setting
_MOST_QUERIES = 1000  # where no number is asked for
_MOST_PAIRED = 2000  # training rows whose distances set the thresholds
_MOST_GRADES = 1 << 28  # bytes of grades that are kept rather than computed again for every code length


class Trial(Protocol):
    """Training rows, database and queries, each as (features (n, d), labels or None), and what is relevant to whom."""

    def __init__(self, train, database, queries, *, cutoff=None):
        self.train, self.train_labels = train
        self.database, self.database_labels = database
        self.queries, self.query_labels = queries
        self.cutoff = cutoff

    @property
    def kind(self) -> str:
        """What decides relevance: "classes", "label sets" or "distances"."""
        if self.database_labels is None:
            return "distances"
        return "classes" if self.database_labels.ndim == 1 else "label sets"

    @property
    def measures(self) -> tuple[Measure, ...]:  # type: ignore[override]
        """mAP, and NDCG where relevance has grades."""
        precision = Measure("map", self.cutoff)
        gain = {"label sets": "shared", "distances": "scaled"}.get(self.kind)
        return (precision,) if gain is None else (precision, Measure("ndcg", self.cutoff, gain))

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """What is relevant, in words."""
        if self.kind == "classes":
            return "Neighbours have the same class."
        if self.kind == "label sets":
            return "Neighbours share a label; the grade c is the number of labels shared."
        levels = ", ".join(f"{share} % ({grade})" for share, grade in zip(PERCENTILES, GRADES, strict=True))
        return (
            "Neighbours lie near in Euclidean distance; the grade c follows from the percentile of the distances "
            f"between training rows: {levels}, 0 beyond."
        )

    def relevance(self, data=None, split=None) -> metrics.Relevance:
        """What is relevant to the queries in the database; the arguments of a protocol are not needed."""
        return self._relevance

    @cached_property
    def _relevance(self) -> metrics.Relevance:
        if self.kind == "distances":
            return self._distance_levels()
        kind = metrics.SameClass if self.kind == "classes" else metrics.SharedLabels
        return kind(self.query_labels, self.database_labels)

    def _distance_levels(self) -> metrics.Relevance:
        from scipy.spatial.distance import pdist

        some = self.train[:: -(-len(self.train) // _MOST_PAIRED)]
        thresholds = np.percentile(pdist(np.asarray(some, dtype=np.float64)), PERCENTILES)
        levels = metrics.DistanceLevels(self.queries, self.database, thresholds, GRADES)
        n_queries, n_database = levels.shape
        if n_queries * n_database > _MOST_GRADES:
            return levels
        grades = np.empty((n_queries, n_database), dtype=np.uint8)
        for start in range(0, n_queries, 64):
            stop = min(start + 64, n_queries)
            grades[start:stop] = levels.grades(start, stop)
        return metrics.Graded(partial(_rows_between, grades), levels.shape)

    def scores(self, query_codes, database_codes, bit_weights) -> dict[str, float]:
        """All readings of all measures, named as in `hbmp.protocols`."""
        return self.scores_with_curve(query_codes, database_codes, bit_weights)[0]

    def scores_with_curve(self, query_codes, database_codes, bit_weights) -> tuple[dict[str, float], dict[str, list]]:
        """The same, and the precision–recall curve."""
        return self.evaluate_with_curve(query_codes, database_codes, None, None, bit_weights=bit_weights)

    def within_training(self, seed: int) -> Trial:
        """The training rows split in the same way, a fifth of them as queries, to choose settings on."""
        split = draw_split(len(self.train), self.train_labels, queries=0.2, train=None, seed=seed)
        return trial_of(self.train, self.train_labels, split, cutoff=self.cutoff)


def trial_of(X, y, split: Split, *, query_X=None, query_y=None, cutoff=None) -> Trial:
    """The trial of a split of X (n, d) and y; with query_X the split's queries are rows of that instead."""

    def part(inputs, labels, rows):
        mine = inputs[rows]
        return mine if isinstance(mine, Images) else np.asarray(mine), None if labels is None else labels[rows]

    database = part(X, y, split.database)
    train = database if np.array_equal(split.train, split.database) else part(X, y, split.train)
    queries = part(*((X, y) if query_X is None else (query_X, query_y)), split.query)
    return Trial(train, database, queries, cutoff=cutoff)


def draw_split(
    n_rows: int, y, *, queries, train, seed: int, unseen: bool = False, n_given_queries: int | None = None
) -> Split:
    """Rows that ask, train and answer; sorted, the same for the same seed.

    queries : how many, or a share below 1; a tenth, at most 1,000, where None · train : the same, of all others; all of
        them where None, half with `unseen` · unseen : the database holds only what was not trained on ·
        n_given_queries : that many queries come from elsewhere, and no row here is one
    """
    rng, strata = np.random.default_rng(seed), _strata(y)
    others = np.arange(n_rows)
    if n_given_queries is not None:
        asking = np.arange(n_given_queries)
    else:
        wanted = min(_MOST_QUERIES, max(1, n_rows // 10)) if queries is None else queries
        asking = draw_evenly(_count(wanted, n_rows, "queries"), others, strata, rng)
        others = np.delete(others, asking)
    train = (0.5 if unseen else len(others)) if train is None else train
    training = draw_evenly(_count(train, len(others), "train"), others, strata, rng) if len(others) else others
    answering = np.setdiff1d(others, training) if unseen else others
    if len(answering) < 2:
        raise ValueError(
            f"{len(asking)} queries and {len(training)} rows to train on leave nothing to search; ask for fewer."
        )
    return Split(training, asking, answering)


def draw_evenly(count: int, rows: np.ndarray, strata: np.ndarray | None, rng) -> np.ndarray:
    """`count` of the rows, sorted: every row equally likely, every stratum with its share to within one row."""
    if count >= len(rows):
        return rows
    order = rng.permutation(rows)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    places = ((np.arange(count) + rng.random()) * (len(rows) / count)).astype(np.int64)
    return np.sort(order[np.minimum(places, len(rows) - 1)])


def as_labels(y, n_rows: int, name: str = "y") -> np.ndarray | None:
    """Labels as all parts of a comparison take them: (n,) classes or (n, c) 0/1 float32."""
    if y is None:
        return None
    y = y if sparse.issparse(y) else as_array(y, name)
    as_sets = sparse.issparse(y) or (y.ndim == 2 and y.shape[1] > 1)
    labels = as_label_sets(y, name) if as_sets else as_classes(y, name)
    if len(labels) != n_rows:
        raise ValueError(f"There are {n_rows} rows but {name} has {len(labels)}; every row needs its label.")
    return labels


def as_features(X, name: str = "X") -> np.ndarray:
    """Features (n, d) of finite numbers, not copied where they are an array already."""
    features = np.asanyarray(X)
    if features.ndim != 2 or features.dtype.kind not in "fiub" or 0 in features.shape:
        raise ValueError(
            f"{name} must be an (n, d) array of numbers; found {features.dtype} of shape {features.shape}."
        )
    for start in range(0, len(features), 8192):
        if not np.isfinite(features[start : start + 8192]).all():
            raise ValueError(f"{name} holds NaN or infinity from row {start} on; fill or drop those rows.")
    return features


def as_inputs(X, y, name: str = "X"):
    """Features as above, or images, whose neighbours only labels can name."""
    if not is_images(X):
        return as_features(X, name)
    if y is None:
        raise ValueError("Images are neighbours by their labels: pass y, or features in place of the images.")
    return as_images(X)


def check_alike(X, y, query_X, query_y) -> None:
    """Queries of somebody's own have the features and the kind of labels that the database has."""
    if isinstance(X, Images) != isinstance(query_X, Images):
        raise ValueError("X and query_X must both be images, or both features.")
    if not isinstance(X, Images) and X.shape[1] != query_X.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features and query_X {query_X.shape[1]}; both need the same ones.")
    if (y is None) != (query_y is None) or (y is not None and y.shape[1:] != query_y.shape[1:]):
        raise ValueError("y and query_y must both be classes, or 0/1 matrices with the same columns, or missing.")


def drawn_words(n_queries: int, kind: str, given: bool) -> str:
    """How queries came about, for a caption."""
    evenly = {"classes": " evenly over classes", "label sets": " evenly over label sets"}.get(kind, "")
    return f"{n_queries:,} queries " + ("as given" if given else f"drawn{evenly}")


def _rows_between(grades: np.ndarray, start: int, stop: int) -> np.ndarray:
    return grades[start:stop]


def _strata(y) -> np.ndarray | None:
    if y is None:
        return None
    return np.unique(y, return_inverse=True)[1] if y.ndim == 1 else distinct_rows(y)[1]


def _count(wanted, n_rows: int, name: str) -> int:
    """A number of rows from a number, or from a share below 1."""
    whole = isinstance(wanted, numbers.Integral) and not isinstance(wanted, bool)
    if not whole and not (isinstance(wanted, numbers.Real) and 0 < float(wanted) < 1):
        raise ValueError(f"{name} must be a number of rows or a share between 0 and 1, found {wanted!r}.")
    count = int(wanted) if whole else max(1, round(float(wanted) * n_rows))
    if not 1 <= count <= n_rows:
        raise ValueError(f"{name} must lie between 1 and the {n_rows} rows there are, found {count}.")
    return count
