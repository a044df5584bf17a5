"""Relevance: grades of database items for each query, computed block by block.

A grade is a number of at least 0, and 0 means irrelevant. Metrics read grades in blocks of queries; only `remembered`
ever holds the whole (queries, database) matrix.

    SharesClass          1 where two items have the same class
    CountsSharedLabels   number of labels that two items share
    DistanceGrades       grades by distance in a feature space
    Graded               grades from a function of a block
    remembered           any of them, kept in memory if it is small
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hbmp._core.labels import as_array, as_classes, distinct_rows, refuse_words

Labels: TypeAlias = "ArrayLike | sparse.sparray | sparse.spmatrix"
"""Classes (n,) or a 0/1 matrix (n, labels)."""

_MOST_DENSE_LABELS = 1 << 27  # temporary bytes of a dense label matrix while its distinct rows are found


@runtime_checkable
class Relevance(Protocol):
    """Protocol of graded relevance: any object with `shape` and `grades`.

    Attributes
    ----------
    shape : tuple of int
        (n_queries, n_database).

    Examples
    --------
    >>> from hbmp import metrics
    >>> isinstance(metrics.SharesClass([0], [0, 1]), metrics.Relevance)
    True
    """

    shape: tuple[int, int]

    def grades(self, start: int, stop: int) -> NDArray[Any]:
        """Grade a block of queries against the whole database.

        Parameters
        ----------
        start, stop : int
            First query, and one past the last.

        Returns
        -------
        ndarray of shape (stop - start, n_database)
            Grades, none negative.
        """
        ...


class SharesClass:
    """Grade 1 if query and item have the same class, else 0.

    Parameters
    ----------
    query_labels : array-like of shape (n_queries,)
        Classes of any dtype.
    database_labels : array-like of shape (n_database,)
        Classes of any dtype.

    Attributes
    ----------
    shape : tuple of int
        (n_queries, n_database).

    Examples
    --------
    >>> from hbmp import metrics
    >>> metrics.SharesClass(["cat"], ["cat", "dog"]).grades(0, 1).tolist()
    [[True, False]]
    """

    def __init__(self, query_labels: Labels, database_labels: Labels):
        queries = as_classes(query_labels, "query_labels")
        database = as_classes(database_labels, "database_labels")
        _, numbers = np.unique(np.concatenate([queries, database]), return_inverse=True)
        numbers = numbers.astype(np.min_scalar_type(max(int(numbers.max(initial=0)), 1)))
        self._queries, self._database = numbers[: len(queries)], numbers[len(queries) :]
        self.shape = (len(queries), len(database))

    def grades(self, start: int, stop: int) -> NDArray[Any]:
        """Grade a block of queries against the whole database.

        Parameters
        ----------
        start, stop : int
            First query, and one past the last.

        Returns
        -------
        ndarray of bool, shape (stop - start, n_database)
            Grades.
        """
        same: NDArray[Any] = self._queries[start:stop, None] == self._database
        return same


class CountsSharedLabels:
    """Grade = number of labels that query and item share.

    Parameters
    ----------
    query_labels : array-like of shape (n_queries, n_labels)
        0/1 matrix, NumPy or scipy.sparse.
    database_labels : array-like of shape (n_database, n_labels)
        0/1 matrix with the same columns.

    Attributes
    ----------
    shape : tuple of int
        (n_queries, n_database).

    Examples
    --------
    >>> from hbmp import metrics
    >>> metrics.CountsSharedLabels([[1, 1, 0]], [[1, 1, 1], [0, 0, 1]]).grades(0, 1).tolist()
    [[2, 0]]
    """

    def __init__(self, query_labels: Labels, database_labels: Labels):
        queries = _label_matrix(query_labels, "query_labels")
        database = _label_matrix(database_labels, "database_labels")
        if queries.shape[1] != database.shape[1]:
            raise ValueError(
                f"Queries and database must carry the same labels, found {queries.shape[1]} and {database.shape[1]} "
                "columns. Pass both in the same columns."
            )
        self._queries = queries
        distinct_sets, self._set_of_item = _distinct_sets(database)
        self._distinct_sets = distinct_sets.T.tocsr()
        self._dtype = np.min_scalar_type(int(queries.sum(axis=1).max())) if queries.shape[0] else np.dtype(np.uint8)
        self.shape = (queries.shape[0], database.shape[0])

    def grades(self, start: int, stop: int) -> NDArray[Any]:
        """Grade a block of queries against the whole database.

        Parameters
        ----------
        start, stop : int
            First query, and one past the last.

        Returns
        -------
        ndarray of unsigned int, shape (stop - start, n_database)
            Grades.
        """
        shared = (self._queries[start:stop] @ self._distinct_sets).toarray().astype(self._dtype)
        grades: NDArray[Any] = shared.take(self._set_of_item, axis=1)
        return grades


class Graded:
    """Grades from a function.

    Parameters
    ----------
    block : callable
        ``block(start, stop)`` returns grades of shape (stop - start, n_database), none negative.
    shape : tuple of int
        (n_queries, n_database).

    Attributes
    ----------
    shape : tuple of int
        (n_queries, n_database).

    Examples
    --------
    >>> from hbmp import metrics
    >>> import numpy as np
    >>> grades = np.array([[2, 0, 1]])
    >>> metrics.Graded(lambda start, stop: grades[start:stop], grades.shape).grades(0, 1).tolist()
    [[2, 0, 1]]
    """

    def __init__(self, block: Callable[[int, int], NDArray[Any]], shape: tuple[int, int]):
        self._block = block
        self.shape = (int(shape[0]), int(shape[1]))

    def grades(self, start: int, stop: int) -> NDArray[Any]:
        """Grade a block of queries against the whole database.

        Parameters
        ----------
        start, stop : int
            First query, and one past the last.

        Returns
        -------
        ndarray of the function's dtype, shape (stop - start, n_database)
            Grades.

        Raises
        ------
        ValueError
            If the block has a wrong shape or a negative grade, which would corrupt every metric silently.
        """
        block = np.asarray(self._block(start, stop))
        if block.shape != (stop - start, self.shape[1]):
            raise ValueError(
                f"The grade block of queries {start} to {stop} must be {(stop - start, self.shape[1])}, "
                f"found {block.shape}. Return one row per query and one column per database item."
            )
        if block.dtype.kind not in "bui" and not (block.size == 0 or block.min() >= 0):
            raise ValueError("Grades must be numbers of at least 0, found smaller ones or NaN. Use 0 for irrelevant.")
        if block.dtype.kind == "i" and block.size and block.min() < 0:
            raise ValueError(f"Grades must be at least 0, found {block.min()}. Use 0 for irrelevant.")
        return block


class DistanceGrades:
    """Grade of the smallest threshold that the Euclidean distance does not exceed, else 0.

    The paper's setting for data without labels: thresholds at the 2, 5, 10 and 20 % nearest, grades 10, 5, 2 and 1.

    Parameters
    ----------
    query_features : array-like of shape (n_queries, d)
        Features.
    database_features : array-like of shape (n_database, d)
        Features.
    thresholds : sequence of float
        Distances.
    grades : sequence of float
        One grade per threshold.

    Attributes
    ----------
    shape : tuple of int
        (n_queries, n_database).

    Examples
    --------
    >>> from hbmp import metrics
    >>> metrics.DistanceGrades([[0.0]], [[0.5], [1.5], [9.0]], thresholds=[1, 2], grades=[2, 1]).grades(0, 1).tolist()
    [[2, 1, 0]]
    """

    def __init__(
        self,
        query_features: ArrayLike,
        database_features: ArrayLike,
        thresholds: Sequence[float],
        grades: Sequence[float],
    ):
        order = np.argsort(thresholds)
        if len(thresholds) != len(grades) or len(thresholds) == 0:
            raise ValueError(f"One grade per threshold is needed, found {len(thresholds)} and {len(grades)}.")
        self._thresholds = np.asarray(thresholds, dtype=np.float64)[order]
        self._grades = np.append(np.asarray(grades)[order], 0)
        if self._grades.dtype.kind in "iu" and self._grades.min() >= 0:
            self._grades = self._grades.astype(np.min_scalar_type(int(self._grades.max())))
        self._queries = np.asarray(query_features, dtype=np.float64)
        self._database = np.asarray(database_features, dtype=np.float64)
        self._database_norms = np.einsum("ij,ij->i", self._database, self._database)
        self.shape = (len(self._queries), len(self._database))

    def grades(self, start: int, stop: int) -> NDArray[Any]:
        """Grade a block of queries against the whole database.

        Parameters
        ----------
        start, stop : int
            First query, and one past the last.

        Returns
        -------
        ndarray of the grades' dtype, shape (stop - start, n_database)
            Grades.
        """
        block = self._queries[start:stop]
        squared = self._database_norms - 2.0 * (block @ self._database.T)
        squared += np.einsum("ij,ij->i", block, block)[:, None]
        levels = np.searchsorted(self._thresholds, np.sqrt(np.maximum(squared, 0.0)))
        grades: NDArray[Any] = self._grades[levels]
        return grades


class Remembered:
    """Grades of another relevance, computed once for several rankings of the same queries and database.

    Parameters
    ----------
    relevance : Relevance
        The relevance to copy.

    Attributes
    ----------
    shape : tuple of int
        (n_queries, n_database).

    Examples
    --------
    >>> from hbmp import metrics
    >>> from hbmp.metrics.relevance import Remembered
    >>> Remembered(metrics.SharesClass([0], [0, 1])).grades(0, 1).tolist()
    [[True, False]]
    """

    def __init__(self, relevance: Relevance):
        self.shape = relevance.shape
        n_queries, n_database = relevance.shape
        step = max(1, (1 << 26) // max(8 * n_database, 1))
        blocks = [relevance.grades(start, min(start + step, n_queries)) for start in range(0, n_queries, step)]
        self._grades = np.concatenate(blocks) if blocks else np.zeros(relevance.shape, dtype=bool)

    def grades(self, start: int, stop: int) -> NDArray[Any]:
        """Grade a block of queries against the whole database.

        Parameters
        ----------
        start, stop : int
            First query, and one past the last.

        Returns
        -------
        ndarray of the copied dtype, shape (stop - start, n_database)
            Grades.
        """
        return self._grades[start:stop]


def remembered(relevance: Relevance, most_bytes: int = 1 << 30) -> Relevance:
    """Keep the grades of a relevance in memory, unless they are too large.

    Parameters
    ----------
    relevance : Relevance
        Any relevance.
    most_bytes : int, default=2**30
        Memory limit.

    Returns
    -------
    Relevance
        A copy in memory, or `relevance` itself.

    Examples
    --------
    >>> from hbmp import metrics
    >>> relevance = metrics.SharesClass([0], [0, 1])
    >>> metrics.remembered(relevance, most_bytes=1) is relevance
    True
    """
    n_queries, n_database = relevance.shape
    if n_queries == 0 or n_queries * n_database * relevance.grades(0, 1).dtype.itemsize > most_bytes:
        return relevance
    return Remembered(relevance)


def as_relevance(
    query_labels: Labels | None, database_labels: Labels | None, relevance: Relevance | None, shape: tuple[int, int]
) -> Relevance:
    """The relevance of the arguments of a metric: classes (n,), 0/1 labels (n, c), or the object given."""
    if relevance is None:
        relevance = _from_labels(query_labels, database_labels)
    elif query_labels is not None or database_labels is not None:
        raise ValueError("Labels and relevance= were both given. Pass one of the two.")
    elif not isinstance(relevance, Relevance):
        raise ValueError(
            f"relevance= needs shape and grades(start, stop), found {type(relevance).__name__}. Use Graded."
        )
    if tuple(relevance.shape) != shape:
        raise ValueError(
            f"There are {shape[0]} query and {shape[1]} database codes, but labels for {relevance.shape[0]} and "
            f"{relevance.shape[1]}. Pass one label per code."
        )
    return relevance


def _from_labels(query_labels: Labels | None, database_labels: Labels | None) -> Relevance:
    """The relevance that follows from the form of the labels."""
    if query_labels is None or database_labels is None:
        raise ValueError("Relevance is undefined. Pass query_labels and database_labels, or relevance=.")
    dimensions = [
        2 if sparse.issparse(labels) else as_array(labels, name).ndim
        for labels, name in ((query_labels, "query_labels"), (database_labels, "database_labels"))
    ]
    if dimensions == [1, 1]:
        return SharesClass(query_labels, database_labels)
    if dimensions == [2, 2]:
        return CountsSharedLabels(query_labels, database_labels)
    raise ValueError(
        f"Labels must be (n,) classes or (n, c) 0/1 matrices on both sides, found {dimensions[0]} and {dimensions[1]} "
        "dimensions. Give both in the same form."
    )


def _distinct_sets(labels: sparse.csr_array) -> tuple[sparse.csr_array, NDArray[Any]]:
    """Each label set once (sets, c), and the set of each item (n,); items usually far outnumber label sets."""
    if labels.shape[0] * labels.shape[1] > _MOST_DENSE_LABELS:
        return labels, np.arange(labels.shape[0])
    sets, set_of_item, _ = distinct_rows(labels.astype(bool).toarray())
    return sparse.csr_array(sets).astype(np.int32), set_of_item


def _label_matrix(labels: Labels, name: str) -> sparse.csr_array:
    given = labels if sparse.issparse(labels) else as_array(labels, name)
    refuse_words(given, name)
    matrix = sparse.csr_array(given)
    if matrix.nnz and not np.isin(matrix.data, (0, 1)).all():
        raise ValueError("A label matrix holds only 0 and 1, found other values. Use relevance=Graded(...) for grades.")
    return matrix.astype(np.int32)


SameClass, SharedLabels, DistanceLevels = SharesClass, CountsSharedLabels, DistanceGrades  # their former names
